"""Checks of a prompt turn: how it ends, what is told meanwhile, and that sessions do not mix."""

from __future__ import annotations

from acprt.cli.check.subject import STOP_REASONS, Subject
from acprt.cli.check.verdicts import Failed, NotApplicable, check
from acprt.errors import ErrorCode

__all__ = ["CHECKS"]

_TURN = "ACP, Prompt turn"


@check("turns.end", "Ends a turn with a stop reason of the protocol", rule=f"{_TURN}: stop reasons")
async def end(subject: Subject) -> str:
    process, session_id = await subject.session()
    turn, ended = await subject.short_turn(process, session_id)
    if ended.stop_reason not in STOP_REASONS:
        raise Failed(f"stop reason {ended.stop_reason!r}")
    return f"{ended.stop_reason} after {ended.answer.seconds:.2f} s and {len(turn.updates())} updates"


@check("turns.text", "Says something in a turn", rule=f"{_TURN}: the agent reports its output by session/update")
async def text(subject: Subject) -> str:
    process, session_id = await subject.session()
    turn, ended = await subject.short_turn(process, session_id)
    kinds = [str(update.get("sessionUpdate")) for update in turn.updates()]
    said = [kind for kind in kinds if kind.startswith(("agent_message", "tool_call"))]
    if not said:
        raise Failed(f"the turn ended ({ended.stop_reason}) and the agent said nothing; updates: {sorted(set(kinds))}")
    return f"{len(said)} pieces of output before the end of the turn"


@check("turns.second", "Takes a second prompt in the same session", rule=f"{_TURN}: a session is a conversation")
async def second(subject: Subject) -> str:
    process = await subject.shared()
    session_id = await subject.new_session(process)
    _, first = await subject.short_turn(process, session_id)
    ended = await subject.turn(process, session_id, subject.options.prompt).end()
    if ended.answer.is_error:
        raise Failed(f"the first turn ended with {first.stop_reason}, the second one with {ended.answer}")
    return f"ended with {first.stop_reason}, then {ended.stop_reason}"


@check("turns.link", "Takes a resource link in a prompt", rule="ACP, Content: all agents take text and resource links")
async def link(subject: Subject) -> str:
    process = await subject.shared()
    session_id = await subject.new_session(process)
    blocks = [
        {"type": "text", "text": subject.options.prompt},
        {"type": "resource_link", "uri": "file:///acprt-check/nothing.txt", "name": "nothing.txt"},
    ]
    answer = await process.call("session/prompt", {"sessionId": session_id, "prompt": blocks})
    if answer.code == ErrorCode.INVALID_PARAMS:
        raise Failed(str(answer))
    if answer.is_error:
        raise NotApplicable(f"the turn failed: {answer}")
    return "taken"


@check(
    "turns.together",
    "Runs turns of two sessions, each with updates of its own",
    rule=f"{_TURN}: sessions are independent",
)
async def together(subject: Subject) -> str:
    process = await subject.shared()
    sessions = [await subject.new_session(process) for _ in range(2)]
    turns = [subject.turn(process, session_id, subject.options.prompt) for session_id in sessions]
    ends = [await turn.end() for turn in turns]
    failed = next((ended for ended in ends if ended.answer.is_error), None)
    if failed is not None:
        alone = await subject.turn(process, sessions[0], subject.options.prompt).end()
        if alone.answer.is_error:
            raise NotApplicable(f"the turn failed: {failed.answer}")
        raise Failed(f"one of two turns failed, though it does not fail alone: {failed.answer}")
    counts = [len(turn.updates()) for turn in turns]
    return f"both ended, with {counts[0]} and {counts[1]} updates"


CHECKS = (end, text, second, link, together)
