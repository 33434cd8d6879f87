"""One turn of the fake: the frames a scenario is made of, and its end when it is interrupted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from acprt.testing.fake_claude.options import RELEASE

if TYPE_CHECKING:
    from acprt.testing.fake_claude.command import FakeClaude

__all__ = ["Stage"]


class Stage:
    """What a scenario plays on."""

    def __init__(self, command: FakeClaude, prompt: dict[str, Any]) -> None:
        self.command = command
        self.prompt = prompt
        self.text = _text_of(prompt)
        self.denials: list[dict[str, Any]] = []
        self._message = command.new_uuid()
        self._blocks = 0
        self._in_tools = False
        self._speaking = ""

    async def play(self) -> None:
        """The scenario that the prompt names."""
        from acprt.testing.fake_claude.scenarios import scenario_for  # scenarios stand above their stage

        self.command.say(
            "system",
            "init",
            cwd="/src",
            tools=["Bash", "Edit", "TodoWrite", "Agent"],
            mcp_servers=[],
            model="fake-model",
            permissionMode=self.command.mode,
            slash_commands=["compact"],
            output_style="default",
            skills=[],
            plugins=[],
            apiKeySource="none",
            claude_code_version=RELEASE,
            capabilities=["interrupt_receipt_v1", "msg_lifecycle_v1"],
            messaging_socket_path="/src/fake.sock",
        )
        await scenario_for(self.text if "task" not in self.prompt else "woken")(self)

    def abort(self) -> None:
        """What an interrupted turn ends with."""
        if self._in_tools:
            marker = "[Request interrupted by user for tool use]"
        else:
            marker = "[Request interrupted by user]"
            if self._speaking:
                self._assistant([{"type": "text", "text": self._speaking}], aborted=True)
        self.user([{"type": "text", "text": marker}])
        self.result(
            subtype="error_during_execution",
            is_error=True,
            errors=["[ede_diagnostic] result_type=user last_content_type=n/a"],
            terminal_reason="aborted_tools" if self._in_tools else "aborted_streaming",
        )

    # -- frames -------------------------------------------------------------------------------------------------------

    def speak(self, text: str, *, thinking: bool = False) -> None:
        """A block of text, or of thinking: streamed where the host wants that, then whole."""
        kind = "thinking" if thinking else "text"
        if self.command.options.partial_messages:
            for word in text.split(" ") if len(text) < 1000 else [text]:
                self.stream(f"{word} " if len(text) < 1000 else word, kind)
        self._assistant([{"type": kind, kind: text}])

    def stream(self, piece: str, kind: str = "text") -> None:
        """A piece of a block that is not finished."""
        self._speaking += piece
        delta = {"type": f"{kind}_delta", kind: piece}
        event = {"type": "content_block_delta", "index": self._blocks, "delta": delta}
        self.command.say("stream_event", event=event, parent_tool_use_id=None)

    def use_tool(self, id: str, name: str, input: dict[str, Any], parent: str | None = None) -> None:
        """A tool call."""
        self._in_tools = True
        self._assistant([{"type": "tool_use", "id": id, "name": name, "input": input}], parent=parent)

    def tool_result(self, id: str, text: str, *, is_error: bool = False, **more: Any) -> None:
        """What a tool call led to."""
        self._in_tools = False
        block = {"type": "tool_result", "tool_use_id": id, "content": text}
        self.user([block | ({"is_error": True} if is_error else {})], **more)

    async def permitted(self, id: str, name: str, input: dict[str, Any], **more: Any) -> dict[str, Any] | None:
        """Ask the host, if it wants to be asked: the input to run the tool with, or None after telling the refusal."""
        if not self.command.options.asks_host:
            message = f"Permission to use {name} was refused: nobody to ask"
            members = {"tool_name": name, "tool_use_id": id, "message": message}
            self.command.say("system", "permission_denied", **members)
            self._denied(id, name, input, message)
            return None
        self.command.state("requires_action")
        asked = {"tool_name": name, "display_name": name, "input": input, "tool_use_id": id} | more
        try:
            answer = await self.command.ask("can_use_tool", **asked)
        except RuntimeError as error:
            self._denied(id, name, input, str(error))
            return None
        self.command.state("running")
        match answer:
            case {"behavior": "allow"}:
                updated = answer.get("updatedInput", input)
                return updated if isinstance(updated, dict) else input
            case {"behavior": "deny", "message": str(message)}:
                self._denied(id, name, input, message)
                if answer.get("interrupt"):
                    self._in_tools = True
                    self.command.interrupted_by_host()
                    await asyncio.sleep(0)
                return None
        self._denied(id, name, input, "the host's answer has no valid shape")
        return None

    def user(self, content: list[dict[str, Any]], **more: Any) -> None:
        """A user message that the command itself writes."""
        self.command.say("user", message={"role": "user", "content": content}, parent_tool_use_id=None, **more)

    def result(self, text: str | None = None, **members: Any) -> None:
        """The end of the turn."""
        told: dict[str, Any] = {"terminal_reason": "completed", "stop_reason": "end_turn"}
        if text is not None:
            told["result"] = text
        if "task" in self.prompt:
            told["origin"] = self.prompt["task"]["origin"]
        elif "uuid" in self.prompt and not self.command.options.no_lifecycle:
            told["user_message_uuid"] = self.prompt["uuid"]
        self.command.result(permission_denials=self.denials, **(told | members))

    def _denied(self, id: str, name: str, input: dict[str, Any], why: str) -> None:
        self.denials.append({"tool_name": name, "tool_use_id": id, "tool_input": input})
        self.tool_result(id, why, is_error=True)

    def _assistant(self, content: list[dict[str, Any]], parent: str | None = None, **more: Any) -> None:
        message = {
            "id": self._message,
            "type": "message",
            "role": "assistant",
            "model": "fake-model",
            "content": content,
            "stop_reason": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        self._blocks += 1
        self._speaking = ""
        self.command.say("assistant", message=message, parent_tool_use_id=parent, **more)


def _text_of(prompt: dict[str, Any]) -> str:
    content = prompt.get("message", {}).get("content", "")
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text") or "") for block in content if isinstance(block, dict))
