"""An agent of the version 2 draft: it streams, runs a tool after asking, can be cancelled, and resumes its sessions.

`AgentSessions` keeps the lifecycle: each prompt is accepted and shown, the session is `running` and then `idle` with a
stop reason, and a cancel ends as `cancelled`. What is left are the handlers here. `python v2_client.py` talks to it.
"""

import asyncio
import itertools

import acprt
from acprt import acp
from acprt.acp import sessions_v2, v2

agent = acp.Agent.v2("librarian", version="0.1.0")
sessions = sessions_v2.AgentSessions(agent)
session_ids = (f"session-{number}" for number in itertools.count(1))
kept: dict[str, tuple[str, sessions_v2.Projection]] = {}  # what this process remembers: folder and history by id

OPTIONS = [
    v2.PermissionOption(option_id="yes", name="Count them", kind="allow_once"),
    v2.PermissionOption(option_id="no", name="Leave it", kind="reject_once"),
]


@agent.method
async def new_session(request: v2.NewSessionRequest, cx: acprt.Connection) -> v2.NewSessionResponse:
    session_id, history = next(session_ids), sessions_v2.Projection()
    kept[session_id] = (request.cwd, history)
    sessions.open(cx, session_id, cwd=request.cwd, history=history)
    return v2.NewSessionResponse(session_id=session_id)


@agent.method
async def resume_session(request: v2.ResumeSessionRequest, cx: acprt.Connection) -> v2.ResumeSessionResponse:
    if request.session_id not in kept:
        raise acp.session_not_found(request.session_id)
    cwd, history = kept[request.session_id]
    sessions.resume(cx, request, cwd=cwd, history=history)  # replays if asked to, and reports the state
    return v2.ResumeSessionResponse()


@agent.method
async def list_sessions(request: v2.ListSessionsRequest) -> v2.ListSessionsResponse:
    found = [v2.SessionInfo(session_id=id, cwd=cwd) for id, (cwd, _) in kept.items() if request.cwd in (None, cwd)]
    return v2.ListSessionsResponse(sessions=found)


@sessions.on_prompt
async def work(work: sessions_v2.Work) -> str | None:
    if work.text == "wait":
        await asyncio.Event().wait()  # until somebody cancels
    call = v2.ToolCallUpdate(tool_call_id=f"count-{work.message_id}", title="Count the words", kind="read")
    work.update(call)
    subject = v2.ToolCallPermissionSubject(tool_call=v2.ToolCallPatch(tool_call_id=call.tool_call_id))
    if await work.ask("Count the words of the prompt?", OPTIONS, subject=subject) != "yes":
        work.update(v2.ToolCallUpdate(tool_call_id=call.tool_call_id, status="cancelled"))
        work.say("Then not.")
        return "refusal"
    count = len(work.text.split())
    work.update(v2.ToolCallUpdate(tool_call_id=call.tool_call_id, status="completed", raw_output=count))
    for piece in ("I count ", f"{count} words."):
        work.say(piece)
    return None  # the stop reason is `end_turn`


if __name__ == "__main__":
    acprt.run(agent)
