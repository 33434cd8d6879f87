"""What the fake answers to the control requests of its host, in the order of the real command."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from acprt.testing.fake_claude.options import RELEASE

if TYPE_CHECKING:
    from acprt.testing.fake_claude.command import FakeClaude

__all__ = ["Control"]

_CAPABILITIES = ["interrupt_receipt_v1", "interrupt_cancel_queued_v1", "msg_lifecycle_v1"]
_MODES = frozenset({"default", "acceptEdits", "plan", "dontAsk", "auto"})


class Control:
    """The control requests that one fake knows: a method `_on_…` for each."""

    def __init__(self, command: FakeClaude) -> None:
        self._command = command

    def take(self, id: Any, subtype: str, members: dict[str, Any]) -> None:
        """A control request: answered at once, or after what has to come first."""
        answer = getattr(self, f"_on_{subtype}", None)
        if answer is None:
            self._refuse(id, f"Unsupported control request subtype: {subtype}", "unsupported_request")
            return
        answer(id, members)

    def _accept(self, id: Any, payload: Any = None, **beside: Any) -> None:
        response = {"subtype": "success", "request_id": id} | ({} if payload is None else {"response": payload})
        self._command.write({"type": "control_response", "response": response | beside})

    def _refuse(self, id: Any, text: str, code: str | None = None) -> None:
        response = {"subtype": "error", "request_id": id, "error": text} | (
            {} if code is None else {"error_code": code}
        )
        self._command.write({"type": "control_response", "response": response})

    def _on_initialize(self, id: Any, members: dict[str, Any]) -> None:
        self._command.initialize = members
        if self._command.options.mute_initialize:
            return
        if self._command.options.die_in_initialize:
            self._command.result(
                subtype="error_during_execution", is_error=True, errors=["the configuration is broken"]
            )
            self._command.exit(1)
            return
        for server in members.get("sdkMcpServers") or ():  # asked before the answer, and not waited for
            greeting = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "fake", "version": "0"},
            }
            self._command.spawn(self._greet_server(server, greeting))
        payload = {
            "commands": [
                {"name": "compact", "description": "Compact the history", "argumentHint": "", "builtin": True}
            ],
            "agents": [{"name": "claude", "description": "General"}],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [{"value": "default", "resolvedModel": "fake-model", "displayName": "Fake", "description": "…"}],
            "account": {"tokenSource": "none", "apiProvider": "firstParty"},
            "claude_code_version": RELEASE,
            "current_permission_mode": self._command.mode,
            "capabilities": _CAPABILITIES,
        }
        asyncio.get_running_loop().call_soon(
            lambda: self._accept(id, payload, pending_permission_requests=[], pending_user_dialog_requests=[])
        )

    async def _greet_server(self, server: str, greeting: dict[str, Any]) -> None:
        await self._command.mcp(server, {"method": "initialize", "id": 0, "params": greeting})
        await self._command.mcp(server, {"method": "notifications/initialized"})

    def _on_mcp_message(self, id: Any, members: dict[str, Any]) -> None:
        self._accept(id)

    def _on_interrupt(self, id: Any, members: dict[str, Any]) -> None:
        queued = [prompt for prompt in self._command.prompts if "uuid" in prompt]
        receipt: dict[str, Any] = {"still_queued": [prompt["uuid"] for prompt in queued]}
        if members.get("cancel_queued"):
            receipt = {"still_queued": [], "cancelled": receipt["still_queued"]}
            for prompt in queued:
                self._command.prompts.remove(prompt)
        if not self._command.initialize.get("perTaskStopAffordance"):
            self._command.background.stop_agents()
        self._command.interrupted_by_host()
        # One turn of the loop later: the cancels of open asks go first, as those of the real command do.
        asyncio.get_running_loop().call_soon(self._accept, id, receipt)
        for prompt in queued if members.get("cancel_queued") else ():
            self._command.lifecycle(prompt, "cancelled")

    def _on_cancel_async_message(self, id: Any, members: dict[str, Any]) -> None:
        uuid = members["message_uuid"]
        found = next((prompt for prompt in self._command.prompts if prompt.get("uuid") == uuid), None)
        if found is not None:
            self._command.prompts.remove(found)
            self._command.lifecycle(found, "cancelled")
        self._accept(id, {"cancelled": found is not None, "message_uuid": uuid})

    def _on_set_permission_mode(self, id: Any, members: dict[str, Any]) -> None:
        mode = members.get("mode")
        if mode == "bypassPermissions":
            self._refuse(id, "bypassPermissions was not enabled at launch", "bypass_not_launched")
        elif mode not in _MODES:
            self._refuse(id, f"Invalid permission mode: {mode}", "invalid_mode")
        else:
            self._command.mode = str(mode)
            self._accept(id, {"mode": mode})
            self._command.say("system", "status", status=None, permissionMode=mode)

    def _on_set_model(self, id: Any, members: dict[str, Any]) -> None:
        self._accept(id, {"model": members.get("model") or "default"})

    def _on_stop_task(self, id: Any, members: dict[str, Any]) -> None:
        self._command.background.stop(members["task_id"])
        self._accept(id, {})

    def _on_get_task_output(self, id: Any, members: dict[str, Any]) -> None:
        output = self._command.background.output_of(members["task_id"])
        if output is None:
            self._refuse(id, f"No task found with ID: {members['task_id']}")
        else:
            self._accept(id, {"output": output, "total_bytes": len(output), "truncated": False})

    def _on_get_session_cost(self, id: Any, members: dict[str, Any]) -> None:
        self._accept(id, {"total_cost_usd": 0})

    def _on_end_session(self, id: Any, members: dict[str, Any]) -> None:
        self._accept(id)
        self._command.exit(0)
