"""A host of the Claude Code command: one process, its prompts, its tasks, and what it asks in between.

Messages are handed out as they come and never wait for a reader; what the command asks is served all the while, also
during `initialize`. `acprt.claude.connecting` makes it.
"""

from __future__ import annotations

import asyncio
import logging
import uuid as uuids
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from msgspec import Raw

from acprt.claude.asks import McpMessage
from acprt.claude.base import Message
from acprt.claude.control import (
    ControlRequest,
    Initialize,
    InitializeReply,
    Interrupt,
    InterruptReceipt,
    SetModel,
    SetPermissionMode,
    StopTask,
)
from acprt.claude.decoding import decode
from acprt.claude.dialect import LOST, MESSAGE, ClaudeDialect
from acprt.claude.errors import ClaudeError, ProcessEnded, UnreadableLine
from acprt.claude.host import Host
from acprt.claude.mcp_bridge import McpBridges
from acprt.claude.messages import CommandLifecycleMessage, ResultMessage
from acprt.claude.prompts import Content, prompt_frame
from acprt.claude.stopping import stop
from acprt.claude.system import InitMessage, SessionStateChangedMessage
from acprt.claude.tasks import TaskTracker
from acprt.claude.tickets import Ticket, Tickets, TicketState
from acprt.claude.turn import PromptSender, Turn
from acprt.errors import RpcError, is_incoming_transport_closed
from acprt.limits import Limits
from acprt.runtime.connection import Connection
from acprt.runtime.endpoint import Endpoint
from acprt.runtime.messages import Notification
from acprt.transports.base import Transport
from acprt.wire.payloads import Decoder

__all__ = ["BACKGROUND_SECONDS", "CONTROL_SECONDS", "ClaudeClient"]

logger = logging.getLogger("acprt.claude")

R = TypeVar("R")

CONTROL_SECONDS = 60.0  # what the reference clients wait for an answer
_STOP_SECONDS = 2.0  # for the tasks of a session that is closed to tell their end
BACKGROUND_SECONDS = 600.0  # what the command itself waits for at most


class _Received(Notification, method=MESSAGE):
    """A line that is no control frame; it arrives as a `Message`, or as the UnreadableLine that it is."""

    @staticmethod
    def __acprt_decoder__(type_: Any) -> Decoder:
        return Decoder(_decode_received)


class _Lost(Notification, method=LOST):
    size: int
    limit: int
    is_result: bool


def _decode_received(line: Raw) -> Message | UnreadableLine:
    try:
        return decode(line)
    except UnreadableLine as error:
        return error.with_traceback(None)


class ClaudeClient:
    """One process of the command; made by `connect`. Not thread-safe: it belongs to its event loop."""

    def __init__(self, transport: Transport, host: Host, handlers: Endpoint | None, limits: Limits | None) -> None:
        self.tasks = TaskTracker()
        """What runs in the background, as the task frames tell it."""
        self.info = InitializeReply()
        """What the command said of itself in `initialize`."""
        self.session: InitMessage | None = None
        """The session as the latest turn found it; None before the first."""
        self.stray_lines = 0
        """Lines on the command's stdout that were no messages: the first is logged, all are skipped."""
        self.session_state: str | None = None
        """`idle`, `running` or `requires_action`, where the command tells."""
        self._results = 0
        self._quiet = True  # the last result left no agent or workflow running
        self._transport = transport
        self._host = host
        self._endpoint = Endpoint("claude", limits=limits, dialect=ClaudeDialect(frozenset(host.dialogs)))
        if handlers is not None:
            self._endpoint.include(handlers)
        host.register(self._endpoint)
        self._endpoint.on_receive_notification(_Received)(self._received)
        self._endpoint.on_receive_notification(self._line_lost)
        self._endpoint.with_spawned(self._until_over)
        self._tickets = Tickets(self._endpoint.limits.session_bytes, self._stop)
        self._input_ended = False
        self._progress = asyncio.Event()  # something happened that may have ended the last work
        self._cx: Connection | None = None
        self._sender: PromptSender | None = None
        self._closing: asyncio.Task[None] | None = None

    # -- prompts ------------------------------------------------------------------------------------------------------

    def prompt(self, content: Content, *, uuid: str | None = None, session_id: str = "") -> Turn:
        """A prompt: text, or content blocks. Iterate over it, or use it as `Turn` says; prompts queue at the command.

        ValueError for a `uuid` that was used before, TypeError for what is neither text nor a list of objects.
        """
        if self._sender is None:
            raise RuntimeError("the client is not connected")
        uuid = uuid or str(uuids.uuid4())
        return Turn(self._tickets.claim(uuid, prompt_frame(content, uuid, session_id)), self._sender)

    async def messages(self) -> AsyncIterator[Message]:
        """What belongs to no prompt: ends of background tasks, turns that they wake, the state of the session.

        It ends with the process. Unread, the oldest are dropped beyond `Limits.session_bytes`.
        """
        while True:
            try:
                message = await self._tickets.between.next()
            except StopAsyncIteration:
                return
            yield message

    async def settled(self, *, background_seconds: float = BACKGROUND_SECONDS) -> bool:
        """Wait until nothing more is owed: no prompt is open, no agent or workflow runs, the turn that the last of them
        woke has its result, and the session is idle, where it says so. Shells and monitors are not waited for. False
        when that took `background_seconds`, counted anew from every result.
        """
        while not self._is_settled():
            self._progress.clear()
            results = self._results
            try:
                async with asyncio.timeout(background_seconds):
                    while not self._is_settled() and results == self._results:
                        await self._progress.wait()
                        self._progress.clear()
            except TimeoutError:
                return False
        return True

    async def end_when_settled(self, *, background_seconds: float = BACKGROUND_SECONDS) -> None:
        """Wait as `settled` does, then let `messages` come to its end."""
        await self.settled(background_seconds=background_seconds)
        self._tickets.between.end()

    # -- control ------------------------------------------------------------------------------------------------------

    async def send(self, request: ControlRequest[R], *, timeout: float | None = CONTROL_SECONDS) -> R:
        """Send a control request; its success payload. Raises RpcError when the command refuses (-32601: it knows no
        such request), TimeoutError after `timeout` seconds, ProcessEnded when the command is gone.
        """
        self._refuse_after_end_of_input()
        sent = self.connection.send_request(request)
        reply: R = await self._answer(sent.block_task(timeout=timeout), sent.method)
        return reply

    async def control(
        self, subtype: str, members: Mapping[str, Any] | None = None, *, timeout: float | None = CONTROL_SECONDS
    ) -> Any:
        """Send a control request that has no class here; its payload as plain values. Raises as `send` does, and
        ValueError for a member `subtype`: that is its name.
        """
        if "subtype" in (members or {}):
            raise ValueError(f"the subtype of this request is {subtype!r}: no member can be called so")
        self._refuse_after_end_of_input()
        sent = self.connection.send_request(subtype, dict(members or {}))
        return await self._answer(sent.block_task(timeout=timeout), subtype)

    async def interrupt(
        self, *, cancel_queued: bool = False, timeout: float | None = CONTROL_SECONDS
    ) -> InterruptReceipt:
        """Stop the turn that runs. The receipt names prompts that run on behind it; `cancel_queued` cancels those too.

        That it is answered proves nothing of a turn: `await turn.cancel()` waits for its end and says whether it came.
        """
        return await self.send(Interrupt(cancel_queued=cancel_queued), timeout=timeout)

    async def set_permission_mode(self, mode: str) -> str:
        """Change the permission mode; the one that holds now. RpcError with `error_code` `invalid_mode` for none."""
        return (await self.send(SetPermissionMode(mode=mode))).mode or mode

    async def set_model(self, model: str | None) -> str | None:
        """Change the model (None: the default); the one that holds now, where the command says."""
        return (await self.send(SetModel(model=model))).model

    async def stop_task(self, task_id: str) -> None:
        """Stop a background task. It succeeds for an unknown one, too: `tasks` tells whether it is over."""
        await self.send(StopTask(task_id=task_id))

    # -- state and end ------------------------------------------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        """The connection below: `status()`, `drain()`, tracing."""
        if self._cx is None:
            raise RuntimeError("the client is not connected")
        return self._cx

    @property
    def session_id(self) -> str | None:
        """The session, once a turn has told."""
        return None if self.session is None else self.session.session_id

    @property
    def exit_status(self) -> int | None:
        """How the command ended (negative: by a signal); None while it runs. Exit 1 after an error result is normal,
        and exit 0 proves no success: what counts is the result.
        """
        child = self._transport.child_status()
        return None if child is None else child.exit_status

    @property
    def dropped_messages(self) -> int:
        """Messages between prompts that nobody read in time."""
        return self._tickets.between_dropped

    async def end_input(self) -> None:
        """Close the command's stdin: it finishes its turns and its background shells, and exits; messages still come.

        Nothing can be sent after it, answers to its asks included.
        """
        self._input_ended = True
        while self.connection.status().outbox.count:
            await self._transport.drain()
            await asyncio.sleep(0)
        self._transport.close_write()

    async def aclose(self) -> None:
        """Interrupt what runs, stop what runs in the background, close stdin, and see the command end: by itself, by
        SIGTERM, by SIGKILL.

        Any task, any order, idempotent, bounded. Background shells are stopped first because they would survive a
        SIGKILL. A caller that is cancelled leaves; the closing goes on. `end_input` lets it finish its work instead.
        """
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(), name="acprt closes claude")
        await asyncio.shield(self._closing)

    # -- from the command ---------------------------------------------------------------------------------------------

    async def _received(self, received: Any) -> None:
        if isinstance(received, UnreadableLine):
            self._stray(received)
            return
        message: Message = received
        changed = self.tasks.apply(message)
        if type(message) is InitMessage:
            self.session = message
        elif type(message) is SessionStateChangedMessage:
            self.session_state = message.state
            self._progress.set()
        self._tickets.deliver(message, len(message._line))
        if type(message) is CommandLifecycleMessage:
            self._progress.set()
        elif type(message) is ResultMessage:
            self._results += 1
            self._quiet = not self.tasks.pending_runs()
            self._progress.set()
        elif changed:
            self._progress.set()

    async def _line_lost(self, lost: _Lost) -> None:
        why = f"a line of {lost.size} bytes is over the limit of {lost.limit} (Limits.line_bytes)"
        logger.warning("a message was lost: %s", why)
        if lost.is_result:
            self._tickets.result_lost(why)

    def _stray(self, line: UnreadableLine) -> None:
        if line.is_blank:
            return
        self.stray_lines += 1
        log = logger.warning if self.stray_lines == 1 else logger.debug
        log("skipped a line on stdout: %s", line)

    # -- to the command -----------------------------------------------------------------------------------------------

    def _send_prompt(self, ticket: Ticket) -> None:
        if self._input_ended:
            self._tickets.cancelled(ticket)
            self._refuse_after_end_of_input()
        self._tickets.enter(ticket)
        frame, ticket.prompt = ticket.prompt, None
        try:
            self.connection.send_notification(MESSAGE, frame)
        except BaseException as error:
            self._tickets.cancelled(ticket)
            if isinstance(error, RpcError) and self._is_end(error):
                raise self._ended("the prompt was not sent") from error
            raise

    def _stop(self, ticket: Ticket) -> None:
        """Take a prompt back while it is queued, interrupt it once it runs; nothing after its end."""
        cx = self._cx
        if ticket.state is TicketState.NEW:
            self._tickets.cancelled(ticket)  # it was not sent, and will not be
        if not (cx is None or cx.is_ending or self._input_ended or ticket.state is TicketState.DONE):
            stop(ticket, self._tickets, cx)

    def _refuse_after_end_of_input(self) -> None:
        if self._input_ended:
            raise RuntimeError("end_input() has closed the command's stdin: nothing can be sent any more")

    async def _answer(self, waiting: Coroutine[Any, Any, Any], subtype: str) -> Any:
        try:
            return await waiting
        except RpcError as error:
            if self._is_end(error):
                raise self._ended(f"{subtype} was not answered") from error
            raise

    # -- begin and end ------------------------------------------------------------------------------------------------

    async def open(self, initialize: Initialize | None, timeout: float) -> None:
        """Start the command and, unless `initialize` is None, greet it. What goes wrong leaves nothing behind."""
        cx = self._cx = await self._endpoint.open(self._transport)
        self._sender = PromptSender(self._send_prompt, self._stop, cx.call_on_loop, cx.limits.cancel_grace_seconds)
        self._host.bridges = McpBridges(self._host.mcp_servers, cx.limits, self._send_mcp)
        if initialize is not None:
            try:
                self.info = await self.send(self._host.declare(initialize), timeout=timeout)
            except BaseException:
                await self.aclose()
                raise

    def _send_mcp(self, server_name: str, message: Raw) -> None:
        if not self.connection.is_ending:
            self.connection.send_request(McpMessage(server_name=server_name, message=message)).detach()

    async def _until_over(self, cx: Connection) -> None:
        """Beside the connection: whoever waits for messages learns of its end, however it ends."""
        try:
            await cx.incoming_closed()
        finally:
            self._host.command_is_gone()
            if self._closing is None:  # else it tells, once the exit status is known
                self._tickets.end(lambda: self._ended("the turn did not end"))
            self._progress.set()

    async def _close(self) -> None:
        cx = self._cx
        if cx is None:
            return
        try:
            with suppress(RpcError, ClaudeError, TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._stop_work(cx)
        finally:
            await cx.aclose()
            if self._host.bridges is not None:
                await self._host.bridges.aclose()
            self._tickets.end(lambda: self._ended("the client was closed"))

    async def _stop_work(self, cx: Connection) -> None:
        if cx.is_incoming_closed or self._input_ended:
            return
        stops: list[Coroutine[Any, Any, object]] = [self.stop_task(task.task_id) for task in self.tasks.background()]
        if self._tickets.open or self.session_state == "running":
            stops.append(self.interrupt(cancel_queued=True))
        await asyncio.gather(*stops)
        while self._tickets.open or self.tasks.background():
            self._progress.clear()
            await self._progress.wait()

    def _ended(self, what: str) -> ProcessEnded:
        facts = self._transport.facts()
        return ProcessEnded(
            what, facts.get("exit_status"), facts.get("stderr_tail") or "", last_result=self._tickets.last_error
        )

    def _is_end(self, error: RpcError) -> bool:
        reason = error.data.get("reason") if isinstance(error.data, dict) else None
        return is_incoming_transport_closed(error) or reason in ("connection_closed", "connection_failed")

    def _is_settled(self) -> bool:
        if self.connection.is_incoming_closed or self.connection.is_ending:
            return True
        if self._tickets.open or self.tasks.pending_runs():
            return False
        return self._quiet and self.session_state in (None, "idle")
