"""The client on python-lsp-jsonrpc: a reader thread, handlers on it, futures of `concurrent.futures`."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pylsp_jsonrpc.endpoint import Endpoint
from pylsp_jsonrpc.streams import JsonRpcStreamReader, JsonRpcStreamWriter

import script
from drive_blocking import BlockingSession, client_main
from measure import Updates

AGENT = Path(__file__).with_name("pylsp_agent.py")


class ThreadSession(BlockingSession):
    def __init__(self, endpoint: Any, pid: int) -> None:
        self.agent_pid = pid
        self._endpoint = endpoint
        self._held: list[Future[Any]] = []

    def initialize(self) -> None:
        self._endpoint.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}}).result()

    def new_session(self) -> None:
        self._endpoint.request("session/new", {"cwd": "/", "mcpServers": []}).result()

    def prompt(self, text: str) -> None:
        self._send(text).result()

    def prompts(self, text: str, count: int, in_flight: int) -> None:
        waiting = deque(self._send(text) for _ in range(in_flight))
        for _ in range(count - in_flight):
            waiting.popleft().result()
            waiting.append(self._send(text))
        for future in waiting:
            future.result()

    def park(self, text: str, count: int) -> None:
        self._held = [self._send(text) for _ in range(count)]

    def _send(self, text: str) -> Future[Any]:
        params = {"sessionId": script.SESSION_ID, "prompt": [{"type": "text", "text": text}]}
        sent: Future[Any] = self._endpoint.request("session/prompt", params)
        return sent


@contextmanager
def connect(updates: Updates, _handlers: int) -> Iterator[BlockingSession]:
    def on_update(params: Any) -> None:
        updates.received(params["update"]["content"]["text"])

    def on_permission(params: Any) -> Any:
        return {"outcome": {"outcome": "selected", "optionId": params["options"][0]["optionId"]}}

    handlers = {"session/update": on_update, "session/request_permission": on_permission}
    with subprocess.Popen([sys.executable, str(AGENT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        endpoint = Endpoint(handlers, JsonRpcStreamWriter(child.stdin).write)
        reader = threading.Thread(
            target=JsonRpcStreamReader(child.stdout).listen, args=(endpoint.consume,), daemon=True
        )
        reader.start()
        yield ThreadSession(endpoint, child.pid)
        assert child.stdin is not None
        child.stdin.close()
        reader.join()


if __name__ == "__main__":
    client_main(connect)
