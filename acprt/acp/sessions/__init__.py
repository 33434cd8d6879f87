"""Sessions of protocol version 1, seen from the client: opening, prompting, reading updates, closing.

Users reach these names as `acprt.acp.…`. It must not know version 2, nor the roles.
"""

from acprt.acp.sessions.errors import PromptInFlight, SessionClosed, SessionOverflow
from acprt.acp.sessions.handle import Session
from acprt.acp.sessions.listing import delete_session, list_sessions
from acprt.acp.sessions.opening import (
    SessionOpening,
    fork_session,
    load_session,
    open_session,
    resume_session,
    session,
)
from acprt.acp.sessions.turn import Turn

__all__ = [
    "PromptInFlight",
    "Session",
    "SessionClosed",
    "SessionOpening",
    "SessionOverflow",
    "Turn",
    "delete_session",
    "fork_session",
    "list_sessions",
    "load_session",
    "open_session",
    "resume_session",
    "session",
]
