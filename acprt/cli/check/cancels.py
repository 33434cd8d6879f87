"""Checks of cancelling: before, during and after a turn, by session and by request."""

from __future__ import annotations

import asyncio

from acprt.cli.check.process import CheckedProcess
from acprt.cli.check.subject import Subject, Turn
from acprt.cli.check.verdicts import Failed, NotApplicable, check
from acprt.errors import ErrorCode

__all__ = ["CHECKS"]

_CANCEL = "ACP, Prompt turn: cancellation"
_CANCEL_SECONDS = 10.0  # the slowest agent that was measured, in the middle of a tool, took two
_WARM_UP_SECONDS = 0.3  # a turn that is over by then was none to cancel


@check("cancels.during", "Ends a running turn as cancelled", rule=f"{_CANCEL}: the stop reason is cancelled")
async def during(subject: Subject) -> str:
    _process, turn = await _running(subject)
    turn.cancel()
    seconds = await _cancelled(turn)
    return f"cancelled after {seconds:.2f} s"


@check("cancels.next", "Goes on with the next prompt after a cancelled turn", rule=f"{_CANCEL}: it cancels one turn")
async def next_turn(subject: Subject) -> str:
    process, turn = await _running(subject)
    turn.cancel()
    await _cancelled(turn)
    _, ended = await subject.short_turn(process, turn.session_id)
    if ended.stop_reason == "cancelled":
        raise Failed("the next turn ended as cancelled, too")
    return f"the next turn ended with {ended.stop_reason}"


@check("cancels.twice", "Answers a turn once, however often it is cancelled", rule="JSON-RPC 2.0 §5: one response")
async def twice(subject: Subject) -> str:
    process, turn = await _running(subject)
    turn.cancel()
    turn.cancel()
    first = len(subject.log)
    await _cancelled(turn)
    turn.cancel()
    await process.must_live("three cancels")
    answers = [frame for frame in subject.written_by(process, first) if frame.answers(turn.id)]
    if len(answers) > 1:
        raise Failed(f"{len(answers)} answers to one prompt")
    return "one answer"


@check("cancels.before", "A cancel while nothing runs is forgotten", rule=f"{_CANCEL}: it is about ongoing work")
async def before(subject: Subject) -> str:
    process = await subject.shared()
    session_id = await subject.new_session(process)
    process.notify("session/cancel", {"sessionId": session_id})
    await process.must_live("a cancel while nothing runs")
    _, ended = await subject.short_turn(process, session_id)
    if ended.stop_reason == "cancelled":
        raise Failed("the prompt that came later ended as cancelled")
    return f"the next turn ended with {ended.stop_reason}"


@check("cancels.after", "A cancel that comes too late changes nothing", rule=f"{_CANCEL}: the turn has ended")
async def after(subject: Subject) -> str:
    process = await subject.shared()
    session_id = await subject.new_session(process)
    turn, _ = await subject.short_turn(process, session_id)
    turn.cancel()
    await process.must_live("a late cancel")
    _, ended = await subject.short_turn(process, session_id)
    if ended.stop_reason == "cancelled":
        raise Failed("the next turn ended as cancelled")
    return f"the next turn ended with {ended.stop_reason}"


@check("cancels.unknown", "A cancel of an unknown session is no disaster", rule=f"{_CANCEL}: a notification")
async def unknown(subject: Subject) -> str:
    process = await subject.shared()
    process.notify("session/cancel", {"sessionId": "acprt-no-such-session"})
    await process.must_live("a cancel of an unknown session")
    return "still answers"


@check("cancels.other", "Cancels no session but the one that is named", rule=f"{_CANCEL}: by session")
async def other(subject: Subject) -> str:
    process, turn = await _running(subject)
    neighbour = await subject.new_session(process)
    if neighbour == turn.session_id:
        raise NotApplicable("the agent has no two sessions")
    process.notify("session/cancel", {"sessionId": neighbour})
    await process.must_live("a cancel of another session")
    if turn.is_over and (await turn.end()).stop_reason == "cancelled":
        raise Failed("the turn of another session was cancelled")
    turn.cancel()
    await _cancelled(turn)
    return "the turn ran on until it was cancelled itself"


@check(
    "cancels.request",
    "$/cancel_request ends a prompt with one answer",
    rule="ACP, Cancellation: -32800, or a result of what is done; honouring it is optional",
    level="should",
)
async def request(subject: Subject) -> str:
    process, turn = await _running(subject)
    process.notify("$/cancel_request", {"requestId": turn.id})
    if not await process.until(lambda: turn.is_over, within=_CANCEL_SECONDS / 2):
        turn.cancel()
        await _cancelled(turn)
        raise NotApplicable("ignored, which is allowed; session/cancel then ended the turn")
    ended = await turn.end()
    if ended.answer.is_error and ended.answer.code != ErrorCode.REQUEST_CANCELLED:
        raise Failed(f"answered {ended.answer}")
    return f"answered {ended.answer if ended.answer.is_error else ended.stop_reason}"


@check(
    "cancels.unknown_request",
    "$/cancel_request of an unknown id is ignored",
    rule="ACP, Cancellation: the request may have ended",
)
async def unknown_request(subject: Subject) -> str:
    process = await subject.shared()
    for id in (987654, "no such request"):
        process.notify("$/cancel_request", {"requestId": id})
    await process.must_live("cancels of unknown requests")
    return "still answers"


async def _running(subject: Subject) -> tuple[CheckedProcess, Turn]:
    """A turn that runs. Raises `NotApplicable` when it ends by itself before it could be cancelled."""
    process = await subject.shared()
    session_id = await subject.new_session(process)
    turn = subject.turn(process, session_id, subject.options.slow_prompt)
    await turn.started()
    await process.until(lambda: turn.is_over, within=_WARM_UP_SECONDS)
    if turn.is_over:
        ended = await turn.end()
        why = str(ended.answer) if ended.answer.is_error else ended.stop_reason
        raise NotApplicable(f"the turn was over at once ({why}): name a longer one with --slow-prompt")
    return process, turn


async def _cancelled(turn: Turn) -> float:
    """Wait for the end of a cancelled turn, which must say so; the seconds that it took."""
    start = asyncio.get_running_loop().time()
    ended = await turn.end(within=_CANCEL_SECONDS)
    if ended.answer.is_error:
        if turn.version == 2 and ended.answer.code == ErrorCode.REQUEST_CANCELLED:  # it was not accepted yet
            return asyncio.get_running_loop().time() - start
        raise Failed(f"the cancelled turn ended with {ended.answer}")
    if ended.stop_reason != "cancelled":
        raise Failed(
            f"the cancelled turn ended with {ended.stop_reason!r} (if it was just done, name a longer one with "
            "--slow-prompt)"
        )
    return asyncio.get_running_loop().time() - start


CHECKS = (during, next_turn, twice, before, after, unknown, other, request, unknown_request)
