"""What can go wrong with a session beside what the agent answers, as one tree.

    RpcError                 the agent's errors, and those of the connection
    └── SessionOverflow      nobody read the session's updates in time
    RuntimeError
    ├── PromptInFlight       a second prompt, while the session still works on one
    └── SessionClosed        the session was closed or left

The latter two are programming errors of this process. None is ever sent to a peer.
"""

from __future__ import annotations

from acprt.errors import ErrorCode, RpcError

__all__ = ["PromptInFlight", "SessionClosed", "SessionOverflow"]


class SessionOverflow(RpcError):
    """More updates of one session waited than `Limits.session_bytes`: its turn, or its opening, fails (DEC-29).

    Raised in the place of the first update that was not kept, behind all that were; the turn is cancelled. `data` has
    `reason` `session_overflow`, `sessionId`, `limit` (bytes) and `option`.
    """

    def __init__(self, session_id: str, limit: int) -> None:
        super().__init__(
            ErrorCode.INTERNAL_ERROR,
            f"more than {limit} bytes of updates waited to be read; read faster or raise Limits.session_bytes",
            {
                "reason": "session_overflow",
                "sessionId": session_id,
                "limit": limit,
                "option": "Limits.session_bytes",
            },
        )


class PromptInFlight(RuntimeError):
    """A session works on one prompt at a time: agents queue a second one, drop the first, or answer neither."""


class SessionClosed(RuntimeError):
    """The session was closed, or its `async with` block was left."""
