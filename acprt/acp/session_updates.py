"""What an agent of version 1 says on behalf of one session, in the handler of a prompt or beside it.

Everything is queued in the order in which it is said, so what a handler says leaves before its answer. Cancelling a
turn is not done here: `session/cancel` cancels the handler, and `acprt.acp.dialect` sees to the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from msgspec import UNSET

from acprt.acp import updates
from acprt.acp.schema import v1
from acprt.acp.updates import Block, CallContent, Entry, Location
from acprt.errors import RpcError
from acprt.runtime.connection import Connection

__all__ = ["RunningToolCall", "SessionUpdates"]


class SessionUpdates:
    """The updates of one session: `say = acp.SessionUpdates(cx, request.session_id)`, then `say.message("Hello")`."""

    def __init__(self, cx: Connection, session_id: str) -> None:
        self.session_id = session_id
        self._cx = cx

    def send(self, update: v1.SessionUpdate) -> None:
        """Send any update. Raises RpcError when the connection is closed."""
        self._cx.send_notification(v1.SessionNotification(session_id=self.session_id, update=update))

    def message(self, content: Block, *, message_id: str | None = None) -> None:
        """A piece of what the agent says."""
        self.send(updates.agent_message(content, message_id=message_id))

    def user_message(self, content: Block, *, message_id: str | None = None) -> None:
        """A piece of what the user said: for the history that `session/load` replays."""
        self.send(updates.user_message(content, message_id=message_id))

    def thought(self, content: Block, *, message_id: str | None = None) -> None:
        """A piece of what the agent thinks."""
        self.send(updates.agent_thought(content, message_id=message_id))

    def plan(self, *entries: Entry) -> None:
        """The whole plan as it is now."""
        self.send(updates.plan(*entries))

    def commands(self, *commands: v1.AvailableCommand) -> None:
        """The commands there are. A client knows the session only once it has the answer that opens it:
        `cx.after_response(lambda: say.commands(…))`.
        """
        self.send(v1.AvailableCommandsUpdate(available_commands=list(commands)))

    def tool_call(
        self,
        title: str,
        *,
        id: str | None = None,
        kind: v1.ToolKind = "other",
        content: Iterable[CallContent] = (),
        locations: Iterable[Location] = (),
        raw_input: Any = UNSET,
    ) -> RunningToolCall:
        """Tell of a tool call, pending. Used as a context manager it tells how the call goes, too."""
        call = updates.tool_call(title, id=id, kind=kind, content=content, locations=locations, raw_input=raw_input)
        self.send(call)
        return RunningToolCall(self, call)

    async def ask(
        self, call: RunningToolCall | v1.ToolCall, options: Iterable[v1.PermissionOption] | None = None
    ) -> v1.PermissionOption | None:
        """Ask the user whether `call` may run: the option that was chosen, or None when the turn is being cancelled.

        Without `options` they are to allow once or always, and to reject; look at the `kind` of what comes back. Raises
        the client's RpcError, and one with -32603 for an option that was never offered. Not in the dispatch loop.
        """
        told = call.call if isinstance(call, RunningToolCall) else call
        if options is None:
            request = updates.permission_request(self.session_id, told)
        else:
            request = updates.permission_request(self.session_id, told, options)
        return chosen(request, await self._cx.send_request(request).block_task())


class RunningToolCall:
    """A tool call that the client was told of. `with say.tool_call("Read notes", kind="read") as call:` tells that it
    runs, and at the end that it completed, or failed when the block raised (or the turn was cancelled).
    """

    def __init__(self, session: SessionUpdates, call: v1.ToolCall) -> None:
        self.call = call
        """The call as it was told first."""
        self._session = session
        self._ended = False

    @property
    def id(self) -> str:
        """The id of the call."""
        return self.call.tool_call_id

    def update(
        self,
        *,
        status: v1.ToolCallStatus | None = None,
        title: str | None = None,
        content: Iterable[CallContent] | None = None,
        locations: Iterable[Location] | None = None,
        raw_output: Any = UNSET,
    ) -> None:
        """Tell what changed. Lists replace those told before. After `completed` or `failed` the block adds no end."""
        self._ended = self._ended or status in ("completed", "failed")
        self._session.send(
            updates.tool_call_update(
                self.call, status=status, title=title, content=content, locations=locations, raw_output=raw_output
            )
        )

    def __enter__(self) -> Self:
        self.update(status="in_progress")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._ended:
            self.update(status="completed" if kind is None else "failed")


def chosen(request: v1.RequestPermissionRequest, response: v1.RequestPermissionResponse) -> v1.PermissionOption | None:
    """The option that a client chose; None when it said that the turn is being cancelled."""
    match response.outcome:
        case v1.SelectedPermissionOutcome(option_id=option_id):
            for option in request.options:
                if option.option_id == option_id:
                    return option
            data = {"reason": "unknown_option", "optionId": option_id}
            raise RpcError.internal_error(data)
        case _:
            return None
