"""`acprt echo`: an agent that says what it is told, to try clients and editors against.

It serves version 1 of the protocol and the draft of version 2, whichever the client asks for.
"""

from __future__ import annotations

import itertools

import click

from acprt.acp import v1
from acprt.acp.agent import Agent
from acprt.acp.errors import session_not_found
from acprt.acp.router import AgentRouter
from acprt.acp.session_updates import SessionUpdates
from acprt.cli import VERSION
from acprt.runtime.connection import Connection
from acprt.runtime.run import run

__all__ = ["echo", "echo_agent"]


def echo_agent() -> AgentRouter:
    """The echo agent, for one connection after the other."""
    from acprt.acp import sessions_v2, v2  # nothing of v2 is loaded before it is served

    ids = (f"echo-{number}" for number in itertools.count(1))
    stable = Agent("acprt-echo", version=VERSION, title="Echo")
    draft = Agent.v2("acprt-echo", version=VERSION, title="Echo")
    sessions = sessions_v2.AgentSessions(draft)

    @stable.method
    async def new_session(_request: v1.NewSessionRequest) -> v1.NewSessionResponse:
        return v1.NewSessionResponse(session_id=next(ids))

    @stable.method
    async def prompt(request: v1.PromptRequest, cx: Connection) -> v1.PromptResponse:
        say = SessionUpdates(cx, request.session_id)
        for block in request.prompt:
            say.message(block.text if isinstance(block, v1.TextContent) else f"[{block.type}]")
        return v1.PromptResponse(stop_reason="end_turn")

    @draft.method
    async def new_session_v2(request: v2.NewSessionRequest, cx: Connection) -> v2.NewSessionResponse:
        session_id = next(ids)
        sessions.open(cx, session_id, cwd=request.cwd)
        return v2.NewSessionResponse(session_id=session_id)

    @draft.method
    async def list_sessions(_request: v2.ListSessionsRequest) -> v2.ListSessionsResponse:
        return v2.ListSessionsResponse(sessions=[])  # none outlives its connection

    @draft.method
    async def resume_session(request: v2.ResumeSessionRequest) -> v2.ResumeSessionResponse:
        raise session_not_found(request.session_id)

    @sessions.on_prompt
    async def repeat(work: sessions_v2.Work) -> None:
        work.say(work.text)

    return Agent.router(v1=stable, v2=draft)


@click.command()
def echo() -> None:
    """Serve the built-in echo agent on stdin and stdout until EOF: each prompt is answered with its own text."""
    run(echo_agent())
