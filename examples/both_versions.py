"""An agent that serves version 1 of the protocol and the draft of version 2 from one process.

Each version has handlers of its own, since turns end differently: in version 1 with the answer to the prompt, in
version 2 with a session that is idle again. What a client asks for in `initialize` decides which of them serve it.
"""

import itertools

import acprt
from acprt import acp
from acprt.acp import sessions_v2, v1, v2

session_ids = (f"session-{number}" for number in itertools.count(1))


def answer_to(text: str) -> str:
    """What the agent does, in either version."""
    return text.upper()


stable = acp.Agent("shout", version="0.1.0")


@stable.method
async def new_session(_request: v1.NewSessionRequest) -> v1.NewSessionResponse:
    return v1.NewSessionResponse(session_id=next(session_ids))


@stable.method
async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
    text = "".join(block.text for block in request.prompt if isinstance(block, v1.TextContent))
    acp.SessionUpdates(cx, request.session_id).message(answer_to(text))
    return v1.PromptResponse(stop_reason="end_turn")


draft = acp.Agent.v2("shout", version="0.1.0")
sessions = sessions_v2.AgentSessions(draft)  # serves prompts, cancels and closing


@draft.method
async def new_session_v2(request: v2.NewSessionRequest, cx: acprt.Connection) -> v2.NewSessionResponse:
    session_id = next(session_ids)
    sessions.open(cx, session_id, cwd=request.cwd)
    return v2.NewSessionResponse(session_id=session_id)


@draft.method
async def list_sessions(_request: v2.ListSessionsRequest) -> v2.ListSessionsResponse:
    return v2.ListSessionsResponse(sessions=[])  # this agent remembers none


@draft.method
async def resume_session(request: v2.ResumeSessionRequest) -> v2.ResumeSessionResponse:
    raise acp.session_not_found(request.session_id)


@sessions.on_prompt
async def work(work: sessions_v2.Work) -> None:
    work.say(answer_to(work.text))


agent = acp.Agent.router(v1=stable, v2=draft)

if __name__ == "__main__":
    acprt.run(agent)
