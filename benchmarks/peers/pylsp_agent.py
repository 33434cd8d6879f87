"""The agent on python-lsp-jsonrpc: handlers on its reader thread; what waits is a thunk for its pool, or a future."""

from __future__ import annotations

import sys
import time
from concurrent.futures import Future
from typing import Any

from pylsp_jsonrpc.dispatchers import MethodDispatcher
from pylsp_jsonrpc.endpoint import Endpoint
from pylsp_jsonrpc.streams import JsonRpcStreamReader, JsonRpcStreamWriter

import script

END_TURN = {"stopReason": "end_turn"}


class Agent(MethodDispatcher):
    """Answers prompts by the commands of `script`."""

    def __init__(self) -> None:
        self.endpoint = Endpoint(self, JsonRpcStreamWriter(sys.stdout.buffer).write)
        self._parked: list[Future[Any]] = []

    def m_initialize(self, **params: Any) -> Any:
        return {"protocolVersion": params["protocolVersion"]}

    def m_session__new(self, **_: Any) -> Any:
        return {"sessionId": script.SESSION_ID}

    def m_session__prompt(self, prompt: list[dict[str, Any]], **_: Any) -> Any:
        text = prompt[0]["text"]
        command, number = script.command_of(text)
        if command == script.ECHO:
            self._update(text)
        elif command == script.UPDATES:
            for i in range(number):
                self._update(script.UPDATE_TEXTS[i & script.UPDATE_MASK])
        elif command == script.PARK:
            self._parked.append(Future())
            if len(self._parked) == number:
                self._update(script.PARKED)
            return self._parked[-1]
        elif command == script.NAP:
            return lambda: self._nap(number)
        elif command == script.CALL:
            return self._ask
        return END_TURN

    def _nap(self, milliseconds: int) -> Any:
        time.sleep(milliseconds / 1000)
        return END_TURN

    def _ask(self) -> Any:
        call = {"toolCallId": script.CALL_ID, "title": script.CALL_TITLE}
        options = [{"optionId": id, "name": name, "kind": kind} for id, name, kind in script.OPTIONS]
        params = {"sessionId": script.SESSION_ID, "toolCall": call, "options": options}
        self.endpoint.request("session/request_permission", params).result()
        return END_TURN

    def _update(self, text: str) -> None:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        self.endpoint.notify("session/update", {"sessionId": script.SESSION_ID, "update": update})


if __name__ == "__main__":
    JsonRpcStreamReader(sys.stdin.buffer).listen(Agent().endpoint.consume)
