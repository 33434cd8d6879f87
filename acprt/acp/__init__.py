"""The Agent Client Protocol: agents, clients, and their sessions.

The messages of version 1 are in `acprt.acp.v1`, those of the draft version 2 in `acprt.acp.v2`, which nothing imports
unless it is used.
"""

from acprt.acp import updates, v1
from acprt.acp.agent import Agent
from acprt.acp.client import Client
from acprt.acp.connector import ClientConnector
from acprt.acp.dialect import AcpDialect
from acprt.acp.errors import session_not_found
from acprt.acp.handshake import authenticate, initialize
from acprt.acp.peer import Peer
from acprt.acp.permissions import allow_always, allow_first, cancelled, reject, select_option
from acprt.acp.router import AgentRouter
from acprt.acp.session_updates import RunningToolCall, SessionUpdates
from acprt.acp.sessions import (
    PromptInFlight,
    Session,
    SessionClosed,
    SessionOpening,
    SessionOverflow,
    Turn,
    delete_session,
    fork_session,
    list_sessions,
    load_session,
    open_session,
    resume_session,
    session,
)

__all__ = [
    "AcpDialect",
    "Agent",
    "AgentRouter",
    "Client",
    "ClientConnector",
    "Peer",
    "PromptInFlight",
    "RunningToolCall",
    "Session",
    "SessionClosed",
    "SessionOpening",
    "SessionOverflow",
    "SessionUpdates",
    "Turn",
    "allow_always",
    "allow_first",
    "authenticate",
    "cancelled",
    "delete_session",
    "fork_session",
    "initialize",
    "list_sessions",
    "load_session",
    "open_session",
    "reject",
    "resume_session",
    "select_option",
    "session",
    "session_not_found",
    "updates",
    "v1",
]
