"""An agent that takes its time and can be stopped: it says back what it is told, a word at a time.

`session/cancel` cancels the handler of the prompt wherever it waits, and the turn ends with the stop reason `cancelled`
by itself. What a handler has to put right, it does in `finally`; what it says there still leaves before the answer.
"""

import asyncio
import itertools
import re

import acprt
from acprt import acp
from acprt.acp import v1

WORD_PAUSE_SECONDS = 0.02

agent = acp.Agent("slow", version="0.1.0", title="Slow echo")
session_ids = (f"slow-{number}" for number in itertools.count(1))
open_sessions: set[str] = set()


@agent.method
async def new_session(_request: v1.NewSessionRequest) -> v1.NewSessionResponse:
    session_id = next(session_ids)
    open_sessions.add(session_id)
    return v1.NewSessionResponse(session_id=session_id)


@agent.method
async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
    if request.session_id not in open_sessions:
        raise acp.session_not_found(request.session_id)
    say = acp.SessionUpdates(cx, request.session_id)
    with say.tool_call("Speak", kind="think"):  # completed at the end, failed when the turn is cancelled
        for word in words_of(request.prompt):
            await asyncio.sleep(WORD_PAUSE_SECONDS)
            say.message(word)
            await cx.drain()  # a client that reads slowly is waited for
    return v1.PromptResponse(stop_reason="end_turn")


def words_of(blocks: list[v1.ContentBlock]) -> list[str]:
    """Words with the space around them, so that together they are the text again."""
    texts = [block.text for block in blocks if isinstance(block, v1.TextContent)]
    return [word for text in texts for word in re.findall(r"\s*\S+\s*", text) or filter(None, [text])]


if __name__ == "__main__":
    acprt.run(agent)
