"""The scripted agent for clients of version 2, the draft: the lifecycle of its sessions, and the commands without
callbacks. What it does not do it refuses, by the stop reason.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from acprt.acp import v2
from acprt.acp.agent import Agent
from acprt.acp.sessions_v2 import AgentSessions, Projection, Work
from acprt.testing.testy import commands
from acprt.testing.testy.sessions import UPDATED_AT, refuse

if TYPE_CHECKING:
    from acprt.runtime.connection import Connection

__all__ = ["agent_v2"]

_SCENARIOS = ("wait_for_cancel", "cancel_status")


class _Kept(msgspec.Struct):
    """A session, open or not: what a later life of it begins with."""

    cwd: str
    additional_directories: list[str]
    history: Projection


def agent_v2() -> Agent:
    """A new testy for clients of version 2: the sessions that each agent must serve, and no more."""
    agent = Agent.v2("testy", version="1.0.0", title="Testy")
    sessions = AgentSessions(agent)
    kept: dict[str, _Kept] = {}
    numbers, messages = count(1), count(1)

    @agent.method
    async def new_session(request: v2.NewSessionRequest, cx: Connection) -> v2.NewSessionResponse:
        id = f"testy-v2-session-{next(numbers)}"
        session = kept[id] = _Kept(request.cwd, request.additional_directories, Projection())
        sessions.open(cx, id, cwd=session.cwd, history=session.history)
        return v2.NewSessionResponse(session_id=id)

    @agent.method
    async def list_sessions(request: v2.ListSessionsRequest) -> v2.ListSessionsResponse:
        return v2.ListSessionsResponse(
            sessions=[
                v2.SessionInfo(
                    session_id=id,
                    cwd=session.cwd,
                    additional_directories=session.additional_directories,
                    title="Testy v2 session",
                    updated_at=UPDATED_AT,
                )
                for id, session in sorted(kept.items())
                if request.cwd in (None, session.cwd)
            ]
        )

    @agent.method
    async def resume_session(request: v2.ResumeSessionRequest, cx: Connection) -> v2.ResumeSessionResponse:
        session = kept.get(request.session_id)
        if session is None:
            refuse(f"session {request.session_id!r} is not known")
        sessions.resume(cx, request, cwd=session.cwd, history=session.history)
        session.additional_directories = request.additional_directories
        return v2.ResumeSessionResponse()

    @sessions.on_prompt
    async def prompt(work: Work) -> str:
        text, stop_reason = await _obey(work)
        work.say(text, message_id=f"testy-v2-agent-message-{next(messages)}")
        return stop_reason

    return agent


async def _obey(work: Work) -> tuple[str, str]:
    """What is said to a prompt, and the stop reason."""
    texts = [block.text for block in work.prompt if isinstance(block, v2.TextContent)]
    match commands.parse(commands.text_of(texts)):
        case commands.Help():
            return commands.help_text(_SCENARIOS), "end_turn"
        case commands.Greet():
            return commands.GREETING, "end_turn"
        case commands.Echo(message=message):
            return message, "end_turn"
        case commands.RunScenario(scenario="cancel_status"):  # one that comes while it is idle is nothing to remember
            return "cancel_status: not_cancelled", "end_turn"
        case commands.RunScenario(scenario="wait_for_cancel"):
            await asyncio.Event().wait()
        case commands.RunScenario(scenario=scenario):
            return f"the scenario {scenario} is one of version 1", "refusal"
    return "MCP servers are for sessions of version 1", "refusal"
