"""What a host does when the command asks: permissions, hooks, MCP servers, elicitations, dialogs.

Each ask is a request of the runtime: it runs in a task of its own, which the command's cancel cancels, and what goes
wrong in it is an error answer, never the end of the session. What nobody handles is refused as unsupported.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from acprt.claude.asks import (
    Allow,
    CanUseTool,
    Deny,
    Elicitation,
    ElicitationAnswer,
    HookCallback,
    HookOutput,
    McpMessage,
    McpMessageReply,
    RequestUserDialog,
    UserDialogAnswer,
)
from acprt.claude.control import HookMatcher, Initialize
from acprt.claude.mcp_bridge import McpBridges
from acprt.errors import RpcError
from acprt.runtime.endpoint import Endpoint

__all__ = ["AskCallback", "DialogCallback", "ElicitationCallback", "Hook", "HookFunction", "Host"]

logger = logging.getLogger("acprt.claude")

T = TypeVar("T")

AskCallback = Callable[[CanUseTool], Awaitable[Allow | Deny]]
HookFunction = Callable[[dict[str, Any], str | None], Awaitable[HookOutput | Mapping[str, Any] | None]]
ElicitationCallback = Callable[[Elicitation], Awaitable[ElicitationAnswer]]
DialogCallback = Callable[[RequestUserDialog], Awaitable[UserDialogAnswer]]


class Hook(msgspec.Struct):
    """A hook: `callback(input, tool_use_id)` for the tools that `matcher` names (None: all), bounded by `timeout`
    seconds at the command, which then goes on without it: a tool call that waited for it is not made.
    """

    callback: HookFunction
    matcher: str | None = None
    timeout: float | None = None
    on_failure: str | None = None
    """`continue` or `block`, where the command supports it."""


class Host:
    """The host's side of one connection: `register` puts its handlers on an endpoint, `declare` tells the command."""

    def __init__(
        self,
        *,
        can_use_tool: AskCallback | None = None,
        hooks: Mapping[str, Sequence[Hook]] | None = None,
        mcp_servers: Mapping[str, Endpoint] | None = None,
        on_elicitation: ElicitationCallback | None = None,
        dialogs: Mapping[str, DialogCallback] | None = None,
    ) -> None:
        for name, callback in {"can_use_tool": can_use_tool, "on_elicitation": on_elicitation}.items():
            if callback is not None and not callable(callback):
                raise TypeError(f"{name} is an async function, not {callback!r:.80}")
        self.can_use_tool = can_use_tool
        self.mcp_servers = dict(mcp_servers or {})
        self.on_elicitation = on_elicitation
        self.dialogs = dict(dialogs or {})
        self.bridges: McpBridges | None = None
        self._at_work: set[asyncio.Task[Any]] = set()  # callbacks that the command waits for
        self._hooks: dict[str, HookFunction] = {}
        self._matchers = {event: self._matchers_of(event, each) for event, each in (hooks or {}).items()}

    def register(self, endpoint: Endpoint) -> None:
        """Serve what there is something for."""
        if self.can_use_tool is not None:
            endpoint.method(self._ask)
        if self._hooks:
            endpoint.method(self._run_hook)
        if self.mcp_servers:
            endpoint.method(self._mcp)
        if self.on_elicitation is not None:
            endpoint.method(self._elicit)
        if self.dialogs:
            endpoint.method(self._show_dialog)

    def command_is_gone(self) -> None:
        """Nobody waits for an answer any more: a question to a person must not stay open."""
        for task in self._at_work:
            task.cancel()

    def declare(self, initialize: Initialize) -> Initialize:
        """`initialize` with what this host brings."""
        declared: dict[str, Any] = {}
        if self._matchers:
            declared["hooks"] = self._matchers
        if self.mcp_servers:
            declared["sdk_mcp_servers"] = list(self.mcp_servers)
        if self.dialogs:
            declared["supported_dialog_kinds"] = list(self.dialogs)
        return msgspec.structs.replace(initialize, **declared)

    async def _ask(self, request: CanUseTool) -> dict[str, Any]:
        assert self.can_use_tool is not None, "registered with it"
        answer = await self._awaited("can_use_tool", self.can_use_tool(request))
        match answer:
            case Allow():
                allowed = _told(answer) | {"behavior": "allow"}
                return {"updatedInput": request.input} | allowed  # some versions want it back
            case Deny():
                return _told(answer) | {"behavior": "deny"}
        raise _wrong("can_use_tool", answer, "claude.Allow or claude.Deny")

    async def _run_hook(self, request: HookCallback) -> dict[str, Any]:
        hook = self._hooks.get(request.callback_id)
        if hook is None:
            raise RpcError.invalid_params(f"no hook {request.callback_id!r} here")
        output = await self._awaited("a hook", hook(request.input, request.tool_use_id))
        match output:
            case None:
                return {}
            case HookOutput():
                return _told(output)
            case Mapping():
                return {_HOOK_NAMES.get(name, name): value for name, value in output.items()}
        raise _wrong("a hook", output, "claude.HookOutput, a mapping or None")

    async def _mcp(self, request: McpMessage) -> McpMessageReply:
        assert self.bridges is not None, "made before the connection is"
        return await self.bridges.take(request)

    async def _elicit(self, request: Elicitation) -> ElicitationAnswer:
        assert self.on_elicitation is not None, "registered with it"
        answer = await self._awaited("on_elicitation", self.on_elicitation(request))
        if not isinstance(answer, ElicitationAnswer):
            raise _wrong("on_elicitation", answer, "claude.ElicitationAnswer")
        return answer

    async def _show_dialog(self, request: RequestUserDialog) -> UserDialogAnswer:
        answer = await self._awaited("a dialog", self.dialogs[request.dialog_kind](request))
        if not isinstance(answer, UserDialogAnswer):
            raise _wrong("a dialog", answer, "claude.UserDialogAnswer")
        return answer

    async def _awaited(self, what: str, answer: Awaitable[T]) -> T:
        if not inspect.isawaitable(answer):
            raise _wrong(what, answer, "a coroutine: write it with `async def`")
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        self._at_work.add(task)
        try:
            return await answer
        finally:
            self._at_work.discard(task)

    def _matchers_of(self, event: str, hooks: object) -> list[HookMatcher]:
        if not isinstance(hooks, Sequence) or not all(isinstance(hook, Hook) for hook in hooks):
            raise TypeError(f"hooks[{event!r}] is a list of claude.Hook(callback=…), not {hooks!r:.80}")
        return [self._matcher(hook) for hook in hooks]

    def _matcher(self, hook: Hook) -> HookMatcher:
        id = f"hook_{len(self._hooks)}"
        self._hooks[id] = hook.callback
        return HookMatcher(
            hook_callback_ids=[id], matcher=hook.matcher, timeout=hook.timeout, on_failure=hook.on_failure
        )


_HOOK_NAMES = {"async_": "async", "continue_": "continue"}
"""What a mapping may call members whose names Python keeps for itself."""


def _told(answer: msgspec.Struct) -> dict[str, Any]:
    """An answer as its members; those left at None are not said."""
    members: dict[str, Any] = msgspec.to_builtins(answer)
    return {name: value for name, value in members.items() if value is not None}


def _wrong(what: str, answer: object, wanted: str) -> RpcError:
    """What the command is told; and the log, since otherwise only the model would read of it."""
    text = f"{what} returned {type(answer).__name__}, not {wanted}"
    logger.error("%s", text)
    return RpcError.internal_error(text)
