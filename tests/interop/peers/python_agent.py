"""An agent on the PyPI package `agent-client-protocol`: a subclass of its Agent, given to its `run_agent`.

It says each word back in an update of its own. "ASK" asks for permission and says which option was chosen; "WAIT"
goes on until the turn is cancelled.
"""

from __future__ import annotations

import asyncio
from typing import Any

from acp import (
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    text_block,
    update_agent_message,
)
from acp.interfaces import Client
from acp.schema import PermissionOption, ToolCallUpdate

OPTIONS = [
    PermissionOption(option_id="no", name="No", kind="reject_once"),
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
]


class WordAgent(Agent):
    def on_connect(self, conn: Client) -> None:
        self._client = conn
        self._cancelled = asyncio.Event()

    async def initialize(self, protocol_version: int, *_: Any, **__: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, *_: Any, **__: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=f"session of {cwd}")

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        self._cancelled.clear()
        for word in prompt[0].text.split():
            if word == "ASK":
                word = await self._ask(session_id)
            await self._client.session_update(session_id=session_id, update=update_agent_message(text_block(word)))
            if word == "WAIT":
                await self._cancelled.wait()
                return PromptResponse(stop_reason="cancelled")
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._cancelled.set()

    async def _ask(self, session_id: str) -> str:
        answer = await self._client.request_permission(
            session_id=session_id, tool_call=ToolCallUpdate(tool_call_id="call-1", title="A tool"), options=OPTIONS
        )
        return getattr(answer.outcome, "option_id", answer.outcome.outcome)


if __name__ == "__main__":
    asyncio.run(run_agent(WordAgent()))
