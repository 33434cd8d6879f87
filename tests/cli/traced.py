"""Traces for tests: records as a trace file holds them, written without the runtime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["AGENT", "CLIENT", "Trace"]

CLIENT = {"from": "Client", "to": "Agent", "direction": "out"}
AGENT = {"from": "Agent", "to": "Client", "direction": "in"}


class Trace:
    """Records with plausible envelopes, a millisecond apart."""

    def __init__(self, connection: str = "agent#1", pid: int = 1) -> None:
        self.records: list[dict[str, Any]] = []
        self._envelope = {"pid": pid, "connection": connection, "protocol": "acp", "size": 100}

    def add(self, side: dict[str, str], **members: Any) -> None:
        """One more record."""
        ts = len(self.records) / 1000
        self.records.append({"ts": ts, "time": 1_796_000_000 + ts, **self._envelope, **side, **members})

    def ask(self, id: Any, method: str, params: Any = None, *, side: dict[str, str] = CLIENT, **more: Any) -> None:
        """A request."""
        self.add(side, type="request", id=id, method=method, params=params or {}, **_session(params), **more)

    def answer(self, id: Any, method: str, payload: Any, *, side: dict[str, str] = AGENT, **more: Any) -> None:
        """Its answer."""
        self.add(side, type="response", id=id, method=method, payload=payload, **({"is_error": False} | more))

    def update(self, session: str, kind: str, **members: Any) -> None:
        """A `session/update`."""
        params = {"sessionId": session, "update": {"sessionUpdate": kind, **members}}
        self.add(AGENT, type="notification", method="session/update", session=session, params=params)

    def chunk(self, session: str, text: str, kind: str = "agent_message_chunk") -> None:
        """One that brings text."""
        self.update(session, kind, content={"type": "text", "text": text})

    def turn(self, id: int, session: str, prompt: str, *chunks: str) -> None:
        """A whole prompt turn."""
        text = [{"type": "text", "text": prompt}]
        self.ask(id, "session/prompt", {"sessionId": session, "prompt": text})
        for each in chunks:
            self.chunk(session, each)
        self.answer(id, "session/prompt", {"stopReason": "end_turn"}, session=session, latency=0.25)

    def write(self, path: Path) -> str:
        """The file, and its name."""
        path.write_text("".join(json.dumps(record) + "\n" for record in self.records), encoding="utf-8")
        return str(path)


def _session(params: Any) -> dict[str, Any]:
    return {"session": params["sessionId"]} if isinstance(params, dict) and "sessionId" in params else {}
