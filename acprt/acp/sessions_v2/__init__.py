"""Sessions of ACP v2, the draft: `from acprt.acp import sessions_v2`. Nothing of v2 is imported otherwise.

Client side: `session`, `resume_session` and `fork_session` open a session that is followed (`Session`): a `Projection`
of what it is now, and a `Turn` for every prompt. `open_session` gives a `SessionHandle` that keeps nothing.
Agent side: `AgentSessions` holds the lifecycle that an agent must follow.
"""

from acprt.acp.sessions_v2.agent import AgentSessions
from acprt.acp.sessions_v2.agent_session import AgentSession
from acprt.acp.sessions_v2.handle import OpenedSession, SessionHandle, open_session
from acprt.acp.sessions_v2.listing import delete_session, list_sessions
from acprt.acp.sessions_v2.opening import SessionOpening, fork_session, resume_session, session
from acprt.acp.sessions_v2.projection import Projection
from acprt.acp.sessions_v2.records import (
    Compaction,
    Message,
    Record,
    SessionMessage,
    Subagent,
    Terminal,
    ToolCall,
    Usage,
)
from acprt.acp.sessions_v2.session import Session
from acprt.acp.sessions_v2.turn import Turn
from acprt.acp.sessions_v2.work import Work

__all__ = [
    "AgentSession",
    "AgentSessions",
    "Compaction",
    "Message",
    "OpenedSession",
    "Projection",
    "Record",
    "Session",
    "SessionHandle",
    "SessionMessage",
    "SessionOpening",
    "Subagent",
    "Terminal",
    "ToolCall",
    "Turn",
    "Usage",
    "Work",
    "delete_session",
    "fork_session",
    "list_sessions",
    "open_session",
    "resume_session",
    "session",
]
