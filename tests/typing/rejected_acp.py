"""What a user of `acprt.acp` may get wrong: each marked line must be rejected with that error, and no other line."""

from __future__ import annotations

from acprt import acp
from acprt.acp import updates, v1, v2

acp.Agent("a", capabilities={"loadSession": True})  # type: ignore[arg-type]  # a class of the schema
acp.Agent("a", capabilities=v1.ClientCapabilities())  # type: ignore[arg-type]  # the other side's
acp.Agent("a", auth_methods=["key"])  # type: ignore[list-item]  # as above
acp.Agent("a", protocol=3)  # type: ignore[arg-type]  # there is none
acp.Agent.v2("a", capabilities=v1.AgentCapabilities())  # type: ignore[arg-type]  # the other version's
acp.Agent.v2("a", auth_methods=[v1.AuthMethodAgent(id="k", name="")])  # type: ignore[list-item]  # as above
acp.Client("c", capabilities={})  # type: ignore[arg-type]  # a class of the schema
acp.Client.v2("c", capabilities=v1.ClientCapabilities())  # type: ignore[arg-type]  # the other version's
v1.PromptResponse(stop_reason="done")  # type: ignore[arg-type]  # none of the reasons
v1.PromptResponse(stopReason="end_turn")  # type: ignore[call-arg]  # the wire's name
v1.Unknown({"sessionUpdate": "mood"}, "sessionUpdate")  # type: ignore[arg-type]  # the tag's member comes first
updates.tool_call("Read", kind="reading")  # type: ignore[arg-type]  # no kind of version 1


async def turns(session: acp.Session) -> None:
    await session.prompt("text")  # type: ignore[misc]  # it says what to wait for: text() or finished()
    async for update in session.prompt(["text", 7]):  # type: ignore[list-item]  # text and blocks
        update.content  # type: ignore[union-attr]  # noqa: B018  # not every update has it
    acp.allow_first(update)  # type: ignore[call-overload]  # no question
    v2.UpdateSessionNotification(session_id=session.id, update=update)  # type: ignore[arg-type]  # the other version's
