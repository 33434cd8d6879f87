"""Checks of sessions: opening, and whatever of listing, loading, resuming, closing, deleting and setting is offered."""

from __future__ import annotations

import os
from typing import Any

from acprt.cli.check.process import Answer, CheckedProcess
from acprt.cli.check.shapes import fault_in_result
from acprt.cli.check.subject import Subject
from acprt.cli.check.verdicts import Failed, NotApplicable, check
from acprt.errors import ErrorCode

__all__ = ["CHECKS"]

_SETUP = "ACP, Session setup"
_UNKNOWN_SESSION = "acprt-no-such-session"


@check("sessions.new", "Opens a session", rule=f"{_SETUP}: session/new")
async def new(subject: Subject) -> str:
    process = await subject.shared()
    answer = await process.call("session/new", subject.session_params())
    if answer.code == ErrorCode.AUTH_REQUIRED:
        raise NotApplicable(f"the agent wants a login first: {answer}")
    if answer.is_error:
        raise Failed(str(answer))
    _well_formed(subject, "session/new", answer)
    return f"{answer.result['sessionId']!r} after {answer.seconds:.2f} s"


@check("sessions.distinct", "Gives each session an id of its own", rule=f"{_SETUP}: session ids are unique")
async def distinct(subject: Subject) -> str:
    process = await subject.shared()
    ids = [await subject.new_session(process) for _ in range(3)]
    if len(set(ids)) < len(ids):
        raise Failed(f"three sessions, ids {ids}")
    return f"three sessions, three ids such as {ids[0]!r}"


@check("sessions.meta", "Takes _meta and members that it does not know", rule="ACP, Extensibility: _meta")
async def meta(subject: Subject) -> str:
    process, _ = await subject.session()
    params = subject.session_params() | {"_meta": {"acprt.check": {"a": [1]}}, "acprtUnknownMember": True}
    answer = await process.call("session/new", params)
    if answer.is_error:
        raise Failed(str(answer))
    return "opened a session all the same"


@check(
    "sessions.unknown",
    "Refuses a prompt for a session that does not exist",
    rule=f"{_SETUP}: sessionId names a session",
    level="should",
)
async def unknown(subject: Subject) -> str:
    process, _ = await subject.session()
    block = {"type": "text", "text": subject.options.prompt}
    answer = await process.call("session/prompt", {"sessionId": _UNKNOWN_SESSION, "prompt": [block]})
    if not answer.is_error:
        raise Failed(f"answered {answer.members.get('result')!r:.120}")
    return str(answer)


@check(
    "sessions.relative",
    "Refuses a working directory that is not absolute",
    rule=f"{_SETUP}: cwd must be an absolute path",
    level="should",
)
async def relative(subject: Subject) -> str:
    process, _ = await subject.session()
    answer = await process.call("session/new", {"cwd": "some/where", "mcpServers": []})
    if not answer.is_error:
        raise Failed("a relative cwd was taken")
    return str(answer)


@check("sessions.list", "Lists its sessions", rule="ACP, Session list")
async def listing(subject: Subject) -> str:
    process, _ = await subject.session()
    _require(subject, process, "list")
    answer = await _accepted(subject, process, "session/list", {})
    for session in answer.result.get("sessions", []):
        if not os.path.isabs(str(session.get("cwd", ""))):
            raise Failed(f"a session without an absolute cwd: {session!r:.200}")
    return f"{len(answer.result.get('sessions', []))} sessions"


@check("sessions.load", "Loads a session", rule=f"{_SETUP}: session/load", versions=(1,))
async def load(subject: Subject) -> str:
    process = await subject.shared()
    subject.require(process, "loadSession")
    params = subject.session_params() | {"sessionId": await _used_session(subject, process)}
    async with subject.fresh() as later:  # what it is for; but some keep their sessions in memory
        answer = await later.call("session/load", params)
        where, replayed = "another process", len(later.updates(params["sessionId"]))
    if answer.is_error:
        before = process.note_count
        answer = await _accepted(subject, process, "session/load", params)
        where, replayed = "the process that made it", len(process.updates(params["sessionId"], before))
    _well_formed(subject, "session/load", answer)
    return f"in {where} after {answer.seconds:.2f} s, {replayed} updates replayed"


@check("sessions.resume", "Resumes a session", rule=f"{_SETUP}: session/resume")
async def resume(subject: Subject) -> str:
    process = await subject.shared()
    _require(subject, process, "resume")
    session_id = await _used_session(subject, process)
    if _offers(subject, process, "close"):
        await _accepted(subject, process, "session/close", {"sessionId": session_id})
        if _offers(subject, process, "list"):
            listed = await _accepted(subject, process, "session/list", {})
            known = [session.get("sessionId") for session in listed.result.get("sessions", [])]
            if session_id not in known and not listed.result.get("nextCursor"):
                raise NotApplicable("the agent keeps no session that was closed")
    answer = await _accepted(subject, process, "session/resume", subject.session_params() | {"sessionId": session_id})
    return f"after {answer.seconds:.2f} s"


@check("sessions.close", "Closes a session, and takes no prompt for it then", rule="ACP, Session close")
async def close(subject: Subject) -> str:
    process = await subject.shared()
    _require(subject, process, "close")
    session_id = await subject.new_session(process)
    await _accepted(subject, process, "session/close", {"sessionId": session_id})
    block = {"type": "text", "text": subject.options.prompt}
    answer = await process.call("session/prompt", {"sessionId": session_id, "prompt": [block]})
    if not answer.is_error:
        raise Failed("a prompt for the closed session was taken")
    return f"closed; a prompt for it then: {answer}"


@check("sessions.delete", "Deletes a session", rule="ACP, Session list: session/delete")
async def delete(subject: Subject) -> str:
    process = await subject.shared()
    _require(subject, process, "delete", own=True)
    session_id = await subject.new_session(process)
    await _accepted(subject, process, "session/delete", {"sessionId": session_id})
    return "deleted"


@check("sessions.fork", "Forks a session into one with an id of its own", rule="ACP draft, session/fork")
async def fork(subject: Subject) -> str:
    process = await subject.shared()
    _require(subject, process, "fork", own=True)
    session_id = await _used_session(subject, process)
    answer = await _accepted(subject, process, "session/fork", subject.session_params() | {"sessionId": session_id})
    if answer.result.get("sessionId") in (None, session_id):
        raise Failed(f"the fork is {answer.result.get('sessionId')!r}")
    return f"{session_id!r} became {answer.result['sessionId']!r}"


@check(
    "sessions.modes", "Sets the mode that it is in, and refuses unknown ones", rule="ACP, Session modes", versions=(1,)
)
async def modes(subject: Subject) -> str:
    process, session_id, opened = await _opened(subject)
    named = opened.result.get("modes")
    if not isinstance(named, dict):
        raise NotApplicable("the agent names no modes")
    current = named.get("currentModeId")
    if current not in [mode.get("id") for mode in named.get("availableModes", [])]:
        raise Failed(f"the current mode {current!r} is not among those that are available")
    await _accepted(subject, process, "session/set_mode", {"sessionId": session_id, "modeId": current})
    odd = await process.call("session/set_mode", {"sessionId": session_id, "modeId": "acprt-no-such-mode"})
    if not odd.is_error:
        raise Failed("a mode that it does not name was taken")
    return f"{len(named['availableModes'])} modes; another one: {odd}"


@check("sessions.options", "Sets the options that it names", rule="ACP, Session config options")
async def options(subject: Subject) -> str:
    process, session_id, opened = await _opened(subject)
    named = [each for each in opened.result.get("configOptions") or [] if each.get("type") == "select"]
    if not named:
        raise NotApplicable("the agent names no options to select from")
    key = "id" if subject.options.version == 1 else "configId"
    for option in named:
        value = {"sessionId": session_id, "configId": option[key], "value": option["currentValue"]}
        if subject.options.version == 2:
            value["type"] = "id"
        answer = await _accepted(subject, process, "session/set_config_option", value)
        if not isinstance(answer.result.get("configOptions"), list):
            raise Failed("the answer is not the full list of options")
    return f"{len(named)} options, each set to the value that it has"


def _offers(subject: Subject, process: CheckedProcess, name: str) -> bool:
    """Whether a session method is advertised that version 2 has in its one capability for most."""
    return subject.options.version == 2 or subject.capability(process, "sessionCapabilities", name) is not None


def _require(subject: Subject, process: CheckedProcess, name: str, *, own: bool = False) -> None:
    """That a session method is advertised. Version 2 has one capability for most; `own`: it has one for this."""
    if subject.options.version == 1:
        subject.require(process, "sessionCapabilities", name)
    else:
        subject.require(process, "session", *([name] if own else []))


async def _accepted(subject: Subject, process: CheckedProcess, method: str, params: dict[str, Any]) -> Answer:
    answer = await process.call(method, params)
    if answer.is_error:
        raise Failed(f"{method}: {answer}")
    _well_formed(subject, method, answer)
    return answer


def _well_formed(subject: Subject, method: str, answer: Answer) -> None:
    wrong = fault_in_result(subject.options.version, method, answer.members.get("result"))
    if wrong is not None:
        raise Failed(f"the answer to {method} is malformed: {wrong}")


async def _opened(subject: Subject) -> tuple[CheckedProcess, str, Answer]:
    process, _ = await subject.session()
    answer = await process.call("session/new", subject.session_params())
    if answer.is_error:
        raise Failed(str(answer))
    return process, answer.result["sessionId"], answer


async def _used_session(subject: Subject, process: CheckedProcess) -> str:
    """A session with a turn in it: some agents keep no other."""
    session_id = await subject.new_session(process)
    await subject.short_turn(process, session_id)
    return session_id


CHECKS = (new, distinct, meta, unknown, relative, listing, load, resume, close, delete, fork, modes, options)
