"""The smallest agent: it says back what it is told.

Drive it with `python examples/raw_prompt.py "python examples/echo_agent.py" "hello"`, or name it in an editor's
settings.
"""

import acprt
from acprt import acp
from acprt.acp import v1

agent = acp.Agent("echo", version="0.1.0")  # answers initialize by itself; capabilities follow from the handlers


@agent.method
async def new_session(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
    return v1.NewSessionResponse(session_id="sess-1")


@agent.method
async def prompt(request: v1.PromptRequest, cx: acprt.Connection) -> v1.PromptResponse:
    for block in request.prompt:
        if isinstance(block, v1.TextContent):
            cx.send_notification(
                v1.SessionNotification(
                    session_id=request.session_id, update=v1.AgentMessageChunk(content=v1.TextContent(text=block.text))
                )
            )
    return v1.PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    acprt.run(agent)
