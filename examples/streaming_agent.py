"""An agent that works before it answers: commands, a plan, thoughts, tool calls, a diff, and a question to the user.

It keeps notes, in memory only: whatever it is told becomes one, if the user allows it.
"""

import itertools

import acprt
from acprt import acp
from acprt.acp import updates, v1

NOTES = "/notes.txt"

agent = acp.Agent("notes", version="0.1.0", title="Note keeper")
session_ids = (f"notes-{number}" for number in itertools.count(1))
notes: list[str] = ["buy milk"]


@agent.method
async def new_session(_request: v1.NewSessionRequest, cx: acprt.Connection) -> v1.NewSessionResponse:
    session_id = next(session_ids)
    say = acp.SessionUpdates(cx, session_id)
    listing = v1.AvailableCommand(name="list", description="Show all notes")
    cx.after_response(lambda: say.commands(listing))  # the client knows the session by then
    return v1.NewSessionResponse(session_id=session_id)


@agent.method
async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
    say = acp.SessionUpdates(cx, request.session_id)
    note = " ".join(block.text for block in request.prompt if isinstance(block, v1.TextContent))
    say.plan("Read the notes", "Add to them")

    with say.tool_call("Read the notes", kind="read", locations=[NOTES]) as reading:
        before = "\n".join(notes)
        reading.update(content=[before])

    if note == "/list":
        say.message(before)
        return v1.PromptResponse(stop_reason="end_turn")

    say.thought(f"{note!r} is not among them yet.")
    change = updates.diff(NOTES, f"{before}\n{note}", old_text=before)
    writing = say.tool_call("Add a note", kind="edit", content=[change], locations=[(NOTES, len(notes) + 1)])
    choice = await say.ask(writing)
    if choice is None or not choice.kind.startswith("allow"):
        writing.update(status="failed")
        say.message("The notes stay as they are.")
    else:
        with writing:
            notes.append(note)
        say.message(f"Noted. There are {len(notes)} notes now.")
    return v1.PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    acprt.run(agent)
