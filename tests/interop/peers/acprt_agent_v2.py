"""The agent of acprt_agent.py in the draft version 2: words, "ASK" and "WAIT"."""

from __future__ import annotations

import asyncio

import acprt
from acprt import acp
from acprt.acp import sessions_v2, v2

OPTIONS = [
    v2.PermissionOption(option_id="no", name="No", kind="reject_once"),
    v2.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
]

agent = acp.Agent.v2("words", version="1.0.0")
sessions = sessions_v2.AgentSessions(agent)


@agent.method
async def new_session(request: v2.NewSessionRequest, cx: acprt.Connection) -> v2.NewSessionResponse:
    session = sessions.open(cx, "session-1", cwd=request.cwd)
    return v2.NewSessionResponse(session_id=session.id)


@sessions.on_prompt
async def work(work: sessions_v2.Work) -> str | None:
    for word in work.text.split():
        if word == "ASK":
            word = await work.ask("A tool", OPTIONS) or "refused"
        work.say(word)
        if word == "WAIT":
            await asyncio.Event().wait()
    return None


if __name__ == "__main__":
    acprt.run(agent)
