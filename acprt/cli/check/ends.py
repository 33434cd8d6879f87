"""Checks of how the agent ends: at EOF, idle or in the middle of a turn, and by SIGTERM."""

from __future__ import annotations

from acprt.cli.check.process import UNKNOWN_METHOD, CheckedProcess
from acprt.cli.check.subject import Subject
from acprt.cli.check.verdicts import Failed, NotApplicable, check

__all__ = ["CHECKS"]

_END_SECONDS = 5.0  # what patient clients wait before they send a signal
_TURN_SECONDS = 10.0  # some finish what they do
_EOF = "ACP, Transports: the client closes stdin and expects the agent to end"


@check("ends.eof", "Exits when its stdin is closed", rule=_EOF)
async def eof(subject: Subject) -> str:
    async with subject.fresh() as process:
        process.close_stdin()
        return await _exit(subject, process, "after its stdin was closed")


@check(
    "ends.eof_status", "Exits with status 0 then", rule="a status that is not 0 is reported as a crash", level="should"
)
async def eof_status(subject: Subject) -> str:
    async with subject.fresh() as process:
        process.close_stdin()
        await _exit(subject, process, "after its stdin was closed")
        if process.exit_status != 0:
            raise Failed(f"exit status {process.exit_status}")
        return "exit status 0"


@check("ends.eof_unopened", "Exits when its stdin is closed before a word was said", rule=_EOF, level="should")
async def eof_unopened(subject: Subject) -> str:
    async with subject.fresh(opened=False) as process:
        process.close_stdin()
        return await _exit(subject, process, "after its stdin was closed")


@check("ends.eof_turn", "Exits when its stdin is closed in the middle of a turn", rule=_EOF, level="should")
async def eof_turn(subject: Subject) -> str:
    async with subject.fresh() as process:
        session_id = await subject.new_session(process)
        turn = subject.turn(process, session_id, subject.options.slow_prompt)
        await turn.started()
        if turn.is_over:
            raise NotApplicable("the turn was over at once: name a longer one with --slow-prompt")
        process.close_stdin()
        return await _exit(subject, process, "after its stdin was closed in mid-turn", within=_TURN_SECONDS)


@check("ends.sigterm", "Exits on SIGTERM", rule="the next step of every client", level="should")
async def sigterm(subject: Subject) -> str:
    async with subject.fresh() as process:
        process.terminate()
        return await _exit(subject, process, "after SIGTERM")


@check("ends.answer", "Answers what was asked before stdin was closed", rule="JSON-RPC 2.0 §5", level="should")
async def answer(subject: Subject) -> str:
    async with subject.fresh() as process:
        id = process.request(UNKNOWN_METHOD, {})
        process.close_stdin()
        await process.until(lambda: process.answered(id), within=_END_SECONDS)
        if process.answered(id) is None:
            raise Failed("a request that came right before EOF was not answered")
        return "answered"


async def _exit(subject: Subject, process: CheckedProcess, when: str, within: float = _END_SECONDS) -> str:
    within = min(within, subject.options.timeout)
    seconds = await process.exited(within)
    if seconds is None:
        raise Failed(f"still running {within:g} s {when}")
    return f"after {seconds:.2f} s, exit status {process.exit_status}"


CHECKS = (eof, eof_status, eof_unopened, eof_turn, answer, sigterm)
