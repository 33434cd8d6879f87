"""What testy asks of the client: permission, files and terminals, one after the other, each with a line of report.

A request that fails is reported and the script goes on, so that a client sees all of it whatever it offers.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context

from acprt.acp.schema import v1
from acprt.runtime.responder import current_request
from acprt.runtime.results import Err, Ok, Result
from acprt.runtime.sent import SentRequest
from acprt.testing.testy.turn import Turn

__all__ = ["ask_for_everything", "open_terminal", "release_terminal"]

_FILE = "/tmp/testy-write.txt"  # noqa: S108  (the client's file system, not ours)
_FOR_TOOL_CALL = "for_tool_call"


async def ask_for_everything(turn: Turn) -> None:
    """Permission, a file written and read, and the life of a terminal."""
    id = turn.session.id
    call = v1.ToolCallPatch(
        tool_call_id=turn.ids.call("testy-permission"), title="Permission request", kind="execute", status="pending"
    )
    options = [
        v1.PermissionOption(option_id="allow_once", name="Allow once", kind="allow_once"),
        v1.PermissionOption(option_id="reject_once", name="Reject once", kind="reject_once"),
    ]
    await turn.ask(v1.RequestPermissionRequest(session_id=id, tool_call=call, options=options))
    await turn.ask(v1.WriteTextFileRequest(session_id=id, path=_FILE, content="written by testy\n"))
    await turn.ask(v1.ReadTextFileRequest(session_id=id, path=_FILE, line=1, limit=20))
    created = await turn.ask(_terminal(id, "testy terminal\n"))
    if created is None:
        for step in ("output", "wait_for_exit", "kill", "release"):
            turn.report.append(f"terminal/{step}: skipped")
        return
    terminal_id = created.terminal_id
    await turn.ask(v1.TerminalOutputRequest(session_id=id, terminal_id=terminal_id))
    await turn.ask(v1.WaitForTerminalExitRequest(session_id=id, terminal_id=terminal_id))
    await turn.ask(v1.KillTerminalRequest(session_id=id, terminal_id=terminal_id))
    await turn.ask(v1.ReleaseTerminalRequest(session_id=id, terminal_id=terminal_id))


async def open_terminal(turn: Turn) -> str | None:
    """A terminal to be shown in a tool call; None when the client has none to give.

    Cancelled meanwhile, it takes the request back, and releases what the client gives all the same.
    """
    answer: asyncio.Future[Result[v1.CreateTerminalResponse]] = turn.cx.loop.create_future()

    async def answered(result: Result[v1.CreateTerminalResponse]) -> None:
        if not answer.done():
            answer.set_result(result)
        elif isinstance(result, Ok):  # the turn is over
            _send_release(turn, result.value.terminal_id).detach()

    sent = turn.cx.send_request(_terminal(turn.session.id, "testy terminal content\n"))
    sent.on_receiving_result(answered)
    try:
        result = await answer
    except asyncio.CancelledError:
        sent.cancel()
        if not answer.cancelled() and isinstance(given := answer.result(), Ok):  # both came at once
            _send_release(turn, given.value.terminal_id).detach()
        raise
    label = f"terminal/create_{_FOR_TOOL_CALL}"
    if isinstance(result, Err):
        turn.failed(label, result.error)
        return None
    turn.answered(label, result.value)
    return result.value.terminal_id


async def release_terminal(turn: Turn, terminal_id: str) -> None:
    """Give it back. A turn that is cancelled meanwhile does not take that back."""
    done: asyncio.Future[None] = turn.cx.loop.create_future()

    async def answered(result: Result[v1.ReleaseTerminalResponse]) -> None:
        label = f"terminal/release_{_FOR_TOOL_CALL}"
        if isinstance(result, Err):
            turn.failed(label, result.error)
        else:
            turn.answered(label, result.value)
        if not done.done():
            done.set_result(None)

    _send_release(turn, terminal_id).on_receiving_result(answered)
    await done


def _terminal(session_id: str, text: str) -> v1.CreateTerminalRequest:
    return v1.CreateTerminalRequest(
        session_id=session_id,
        command="printf",
        args=[text],
        cwd="/tmp",  # noqa: S108  (the client's)
        output_byte_limit=1024,
    )


def _send_release(turn: Turn, terminal_id: str) -> SentRequest[v1.ReleaseTerminalResponse]:
    """Sent in nobody's service, since what is asked in the service of a cancelled prompt is cancelled with it."""
    context = copy_context()
    context.run(current_request.set, None)
    request = v1.ReleaseTerminalRequest(session_id=turn.session.id, terminal_id=terminal_id)
    return context.run(turn.cx.send_request, request)
