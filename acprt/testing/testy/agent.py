"""The scripted agent for clients of version 1, and of both versions: its handlers, and the end of each turn.

Each agent made here has sessions and ids of its own, which all of its connections share.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import UNSET

from acprt.acp import updates
from acprt.acp.agent import Agent
from acprt.acp.router import AgentRouter
from acprt.acp.schema import v1
from acprt.runtime.responder import current_request
from acprt.testing.testy import commands
from acprt.testing.testy.agent_v2 import agent_v2
from acprt.testing.testy.scenarios import run_scenario
from acprt.testing.testy.sessions import MODES, VERBOSITY, Ids, Session, Sessions, refuse
from acprt.testing.testy.tools import call_tool, list_tools
from acprt.testing.testy.turn import Turn

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["agent", "agent_v1"]

_SIGN_IN = v1.AuthMethodAgent(
    id="testy-agent-auth", name="Testy sign-in", description="Asks for nothing and always succeeds"
)

_CAPABILITIES = v1.AgentCapabilities(
    prompt_capabilities=v1.PromptCapabilities(image=True, audio=True, embedded_context=True),
    mcp_capabilities=v1.McpCapabilities(http=True),
    session_capabilities=v1.SessionCapabilities(
        additional_directories=v1.SessionAdditionalDirectoriesCapabilities(),
    ),
)


def agent() -> AgentRouter:
    """A new testy for clients of either version."""
    return Agent.router(v1=agent_v1(), v2=agent_v2())


def agent_v1() -> Agent:
    """A new testy for clients of version 1: every stable method, and every command."""
    agent = Agent("testy", version="1.0.0", title="Testy", capabilities=_CAPABILITIES, auth_methods=[_SIGN_IN])
    sessions = Sessions()
    _serve_sign_in(agent)
    _serve_sessions(agent, sessions)
    _serve_settings(agent, sessions)
    _serve_turns(agent, sessions, Ids())
    return agent


def _serve_sign_in(agent: Agent) -> None:
    @agent.method
    async def authenticate(request: v1.AuthenticateRequest) -> v1.AuthenticateResponse:
        if request.method_id != _SIGN_IN.id:
            refuse(f"unknown auth method {request.method_id!r}: there is {_SIGN_IN.id!r}")
        return v1.AuthenticateResponse()

    @agent.method
    async def log_out(request: v1.LogoutRequest) -> v1.LogoutResponse:
        return v1.LogoutResponse()


def _serve_sessions(agent: Agent, sessions: Sessions) -> None:
    @agent.method
    async def new_session(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
        session = _opened(sessions.new(), request)
        return v1.NewSessionResponse(
            session_id=session.id, modes=session.modes(), config_options=session.config_options()
        )

    @agent.method
    async def load_session(request: v1.LoadSessionRequest) -> v1.LoadSessionResponse:
        session = _opened(sessions.loaded(request.session_id), request)
        return v1.LoadSessionResponse(modes=session.modes(), config_options=session.config_options())

    @agent.method
    async def resume_session(request: v1.ResumeSessionRequest) -> v1.ResumeSessionResponse:
        session = _opened(sessions.loaded(request.session_id), request)
        return v1.ResumeSessionResponse(modes=session.modes(), config_options=session.config_options())

    @agent.method
    async def list_sessions(request: v1.ListSessionsRequest) -> v1.ListSessionsResponse:
        return v1.ListSessionsResponse(sessions=sessions.listed(request.cwd))

    @agent.method
    async def close_session(request: v1.CloseSessionRequest) -> v1.CloseSessionResponse:
        await sessions.close(request.session_id)
        return v1.CloseSessionResponse()

    @agent.method
    async def delete_session(request: v1.DeleteSessionRequest) -> v1.DeleteSessionResponse:
        await sessions.close(request.session_id)
        return v1.DeleteSessionResponse()


def _serve_settings(agent: Agent, sessions: Sessions) -> None:
    @agent.method
    async def set_mode(request: v1.SetSessionModeRequest) -> v1.SetSessionModeResponse:
        session = sessions.get(request.session_id)
        if request.mode_id not in MODES:
            refuse(f"unknown mode {request.mode_id!r}: there are {', '.join(MODES)}")
        session.mode = request.mode_id
        return v1.SetSessionModeResponse()

    @agent.method
    async def set_config_option(request: v1.SetSessionConfigOptionRequest) -> v1.SetSessionConfigOptionResponse:
        session = sessions.get(request.session_id)
        if request.config_id != "verbosity":
            refuse(f"unknown option {request.config_id!r}: there is 'verbosity'")
        if not isinstance(request.value, str) or request.value not in VERBOSITY:
            refuse(f"unknown verbosity {request.value!r}: there are {', '.join(VERBOSITY)}")
        session.verbosity = request.value
        return v1.SetSessionConfigOptionResponse(config_options=session.config_options())


def _serve_turns(agent: Agent, sessions: Sessions, ids: Ids) -> None:
    @agent.on_receive_notification
    async def cancel(note: v1.CancelNotification) -> None:
        session = sessions.find(note.session_id)
        if session is not None:
            session.hear_cancel()

    @agent.method
    async def prompt(request: v1.PromptRequest, cx: Connection) -> v1.PromptResponse:
        session = sessions.get(request.session_id)
        turn = Turn(cx, session, request.prompt, ids)
        with session.turn():
            try:
                stop_reason = await _obey(turn)
            except asyncio.CancelledError:
                if session.is_closed:  # no cancel of the client's: the answer is ours to give
                    return v1.PromptResponse(stop_reason="cancelled")
                if _is_session_cancel():
                    session.turn_was_cancelled()
                raise
        if stop_reason != "cancelled":
            id = ids.message(f"testy-message-{stop_reason.replace('_', '-')}")
            turn.send(updates.agent_message("\n".join(turn.report), message_id=id))
        return v1.PromptResponse(stop_reason=stop_reason)


def _opened(
    session: Session, request: v1.NewSessionRequest | v1.LoadSessionRequest | v1.ResumeSessionRequest
) -> Session:
    session.cwd = request.cwd
    session.additional_directories = request.additional_directories
    session.mcp_servers = request.mcp_servers
    return session


async def _obey(turn: Turn) -> v1.StopReason:
    """Do what the prompt says. What is to be said at the end is the turn's report."""
    texts = [block.text for block in turn.prompt if isinstance(block, v1.TextContent)]
    match commands.parse(commands.text_of(texts)):
        case commands.Help():
            turn.report.append(commands.help_text())
        case commands.Greet():
            turn.report.append(commands.GREETING)
        case commands.Echo(message=message):
            turn.report.append(message)
        case commands.ListTools(server=server):
            turn.report.append(await list_tools(turn.session.mcp_servers, server))
        case commands.CallTool(server=server, tool=tool, params=params):
            turn.report.append(await call_tool(turn.session.mcp_servers, server, tool, params))
        case commands.RunScenario(scenario=scenario):
            return await run_scenario(turn, scenario)
    return "end_turn"


def _is_session_cancel() -> bool:
    """Whether the prompt at hand was cancelled with its session, not by its id: the answer is prepared then."""
    request = current_request.get()
    return request is not None and request.cancelled_answer is not UNSET
