"""The stateless handle of a v2 session, and the requests that open one.

A handle is a connection and a session id: it keeps no updates and no state, copies are equal, and dropping one changes
nothing. Updates and permission requests go to the handlers of the connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from acprt.acp import v2
from acprt.acp.sessions.blocks import blocks_of
from acprt.acp.sessions_v2.patches import Meta
from acprt.runtime.sent import SentRequest

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = [
    "OpenedSession",
    "OpeningRequest",
    "Prompt",
    "SessionHandle",
    "open_session",
    "option_request",
]

R = TypeVar("R", v2.NewSessionResponse, v2.ResumeSessionResponse, v2.ForkSessionResponse)

Prompt = str | v2.ContentBlock | Iterable[str | v2.ContentBlock]
"""What may be sent as a prompt: a text, a block, or several of either."""


OpeningRequest = v2.NewSessionRequest | v2.ResumeSessionRequest | v2.ForkSessionRequest


class SessionHandle(msgspec.Struct, frozen=True):
    """A session of the agent at the other end of `cx`. Every method sends at once and keeps nothing."""

    cx: Connection
    id: str

    def send_prompt(self, prompt: Prompt, *, meta: Meta | None = None) -> SentRequest[v2.PromptResponse]:
        """Send a prompt. The answer says that its message is part of the conversation, not that the work is done."""
        request = v2.PromptRequest(session_id=self.id, prompt=blocks_of(prompt, _text), meta=meta)
        return self.cx.send_request(request)

    def cancel(self) -> None:
        """Cancel the foreground work and the prompts that are not part of the conversation yet. What runs in the
        background goes on. The end comes as an idle update with stop reason `cancelled`.
        """
        self.cx.send_notification(v2.CancelSessionNotification(session_id=self.id))

    def set_config_option(self, config_id: str, value: str | bool) -> SentRequest[v2.SetSessionConfigOptionResponse]:
        """Choose a value of a configuration option; the answer lists all options as they are then."""
        return self.cx.send_request(option_request(self.id, config_id, value))

    def cancel_tool_call(self, tool_call_id: str) -> SentRequest[v2.CancelToolCallResponse]:
        """Cancel one tool call, one whose `capabilities.cancel` is there. It ends with a final status, later."""
        return self.cx.send_request(v2.CancelToolCallRequest(session_id=self.id, tool_call_id=tool_call_id))

    def cancel_terminal(self, terminal_id: str) -> SentRequest[v2.CancelTerminalResponse]:
        """Stop the process of one terminal, one whose `capabilities.cancel` is there. Its exit status comes later."""
        return self.cx.send_request(v2.CancelTerminalRequest(session_id=self.id, terminal_id=terminal_id))

    def close(self) -> SentRequest[v2.CloseSessionResponse]:
        """Close the session: its work is cancelled, that in the background too. An agent that does not know it may
        answer -32002, which says the same.
        """
        return self.cx.send_request(v2.CloseSessionRequest(session_id=self.id))


class OpenedSession(msgspec.Struct, Generic[R], frozen=True):
    """A session that was opened, and the whole answer that opened it."""

    session: SessionHandle
    response: R


def open_session(cx: Connection, request: OpeningRequest) -> SentRequest[OpenedSession[Any]]:
    """Send a request that opens a session; its value is the handle with the complete answer.

    The id is the one in the answer of a new or forked session, and that of the request for a resumed one. An error is
    the agent's, as it is; the connection lives.
    """
    named = request.session_id if isinstance(request, v2.ResumeSessionRequest) else None

    def opened(response: Any) -> OpenedSession[Any]:
        return OpenedSession(SessionHandle(cx, named or response.session_id), response)

    sent: SentRequest[Any] = cx.send_request(request)
    return sent.map(opened)


def option_request(session_id: str, config_id: str, value: str | bool) -> v2.SetSessionConfigOptionRequest:
    """The request that chooses `value`; its type follows from it."""
    kind = "boolean" if isinstance(value, bool) else "id"
    return v2.SetSessionConfigOptionRequest(session_id=session_id, config_id=config_id, value=value, type=kind)


def _text(text: str) -> v2.ContentBlock:
    return v2.TextContent(text=text)
