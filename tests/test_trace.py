"""The tap: every line that passes, in both directions, for whoever asked to see it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

import acprt
from acprt.trace import sink_from_environment
from tests.programs import python_code
from tests.runtime.scripted import ScriptedTransport, notification, request, result, until_idle

ROOT = Path(__file__).resolve().parents[1]


class TestTap:
    def test_every_line_is_shown_in_order_with_its_direction(self, run):
        """What passed, in which direction, when; bad and over-long lines too."""
        seen: list[acprt.TraceEvent] = []
        endpoint = acprt.Endpoint("near", limits=acprt.Limits(line_bytes=200, drain_seconds=0.2))
        endpoint.trace(seen.append)

        @endpoint.method("ask")
        async def ask(_params: Any) -> str:
            return "answer"

        async def main():
            began = time.time()
            near, far = acprt.memory_pair()
            async with endpoint.connect(near) as cx:
                far.write(msgspec.json.encode(request(1, "ask")) + b"\ngarbage\n" + b"x" * 500 + b"\n")
                await until_idle()
                cx.send_notification("n")
            lines = [(each.direction, each.size, each.line) for each in seen]
            assert lines[0] == ("in", 39, msgspec.json.encode(request(1, "ask")))
            assert lines[1] == ("in", 7, b"garbage")
            assert lines[2][:2] == ("in", 500)
            assert lines[2][2].startswith(b"xxx")
            out = [line for direction, _, line in lines[3:] if direction == "out"]
            assert msgspec.json.encode(result(1, "answer")) in out
            assert out[-1] == msgspec.json.encode(notification("n"))
            assert all(began - 1 <= each.time <= time.time() + 1 for each in seen)
            assert len({each.connection for each in seen}) == 1
            assert seen[0].connection.startswith("near#")

        run(main())

    def test_connections_are_told_apart(self, run):
        """Two connections of one endpoint have two names in a trace."""
        seen: list[acprt.TraceEvent] = []
        endpoint = acprt.Endpoint("near")
        endpoint.trace(seen.append)

        async def main():
            async with endpoint.connect(ScriptedTransport()) as first, endpoint.connect(ScriptedTransport()) as second:
                first.send_notification("a")
                second.send_notification("b")
            assert len({each.connection for each in seen}) == 2

        run(main())

    def test_sink_that_raises_is_dropped_and_breaks_nothing(self, run, caplog):
        """Who watches must not be able to break what he watches; the other sinks see everything."""
        seen: list[bytes] = []
        calls: list[int] = []
        endpoint = acprt.Endpoint("near")

        def broken(_event: acprt.TraceEvent) -> None:
            calls.append(1)
            raise ValueError("no room")

        endpoint.trace(broken)
        endpoint.trace(lambda each: seen.append(each.line))

        @endpoint.method("ask")
        async def ask(_params: Any) -> str:
            return "answer"

        async def main():
            transport = ScriptedTransport()
            async with endpoint.connect(transport):
                transport.deliver(request(1, "ask"), request(2, "ask"))
                await until_idle()
            assert transport.written == [result(1, "answer"), result(2, "answer")]
            assert len(seen) == 4
            assert calls == [1]

        run(main())
        assert caplog.text.count("a trace sink failed") == 1

    def test_sink_that_asks_for_it_hears_of_the_child(self, run):
        """Start, lines of stderr and exit beside the wire; `on_stderr` gets its lines as ever, other sinks none."""
        wire: list[acprt.TraceEvent] = []
        both: list[acprt.TraceEvent] = []
        errors: list[str] = []
        endpoint = acprt.Endpoint("near")
        endpoint.trace(wire.append)
        endpoint.trace(both.append, process=True)
        code = "import sys; sys.stderr.write('one\\ntwo\\n'); sys.stderr.flush(); sys.stdin.read(); sys.exit(3)"

        async def main():
            child = acprt.AgentProcess(
                sys.executable, "-I", "-S", "-c", code, "--token", "hush", on_stderr=errors.append
            )
            async with endpoint.connect(child) as cx:
                cx.send_notification("n")
                await cx.drain()

        run(main())
        assert [each.kind for each in wire] == ["line"]
        assert errors == ["one", "two"]
        assert [each.line for each in both if each.kind == "stderr"] == [b"one", b"two"]
        started, exited = (json.loads(each.line) for each in both if each.kind == "process")
        assert (started["event"], started["command"][-1]) == ("started", "***")
        assert exited == {"event": "exited", "pid": started["pid"], "status": 3}
        assert all(each.peer_is_child for each in both)

    def test_without_a_sink_nothing_is_tapped(self, run):
        """It costs nothing when it is off."""

        async def main():
            async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:
                assert cx._inbox.tap is None
                assert cx._outbox.tap is None

        run(main())


class TestEnvironment:
    """`ACPRT_TRACE=FILE` records any process."""

    def test_whole_process_is_recorded_up_to_its_exit(self, tmp_path):
        """ST-02: nothing in the program asks for it, nothing is lost at the end."""
        path = tmp_path / "trace.jsonl"
        code = """
import acprt
agent = acprt.Endpoint("agent")
@agent.method("add")
async def add(params): return sum(params)
acprt.run(agent)
"""
        given = msgspec.json.encode(request(1, "add", [1, 2])) + b"\n"
        done = subprocess.run(
            python_code(code),
            input=given,
            capture_output=True,
            timeout=30,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "ACPRT_TRACE": str(path)},
        )
        assert (done.returncode, done.stderr) == (0, b"")
        shown = [json.loads(line) for line in path.read_text().splitlines()]
        assert [(each["direction"], each["type"], each.get("params"), each.get("payload")) for each in shown] == [
            ("in", "request", [1, 2], None),
            ("out", "response", None, 3),
        ]

    def test_children_are_recorded_when_asked_for(self, tmp_path):
        """`ACPRT_TRACE_PROCESS=1`: start, stderr lines and exit; without it only the wire."""
        code = """
import asyncio, sys, acprt
async def main():
    code = "import sys; print('oops', file=sys.stderr); sys.stdin.read(); sys.exit(3)"
    child = acprt.AgentProcess(sys.executable, "-c", code)
    async with acprt.Endpoint("client").connect(child):
        pass
asyncio.run(main())
"""
        kinds = []
        for flag in ("", "1"):
            path = tmp_path / f"trace{flag}.jsonl"
            subprocess.run(
                python_code(code),
                timeout=30,
                check=True,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "ACPRT_TRACE": str(path),
                    "ACPRT_TRACE_PROCESS": flag,
                },
            )
            kinds.append([json.loads(line) for line in path.read_text().splitlines()])
        assert kinds[0] == []
        assert sorted(each.get("event") or each["text"] for each in kinds[1]) == ["exited", "oops", "started"]
        (exited,) = (each for each in kinds[1] if each.get("event") == "exited")
        assert exited["payload"]["status"] == 3

    def test_one_sink_per_file(self, tmp_path, monkeypatch):
        """All connections of a process share it."""
        monkeypatch.setenv("ACPRT_TRACE", str(tmp_path / "t"))
        first = sink_from_environment()
        assert first is not None
        assert sink_from_environment() is first
        first.close()

    def test_it_is_off_without_the_variable(self, monkeypatch):
        """Unset and empty are the same."""
        monkeypatch.delenv("ACPRT_TRACE", raising=False)
        assert sink_from_environment() is None
        monkeypatch.setenv("ACPRT_TRACE", "")
        assert sink_from_environment() is None

    def test_file_that_cannot_be_opened_is_told_and_nothing_else_is_lost(self, run, tmp_path, monkeypatch, caplog):
        """Bad input gets a clear error; the agent serves all the same."""
        monkeypatch.setenv("ACPRT_TRACE", str(tmp_path / "missing" / "t"))

        async def main():
            async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:
                cx.send_notification("n")
                await asyncio.sleep(0)

        run(main())
        assert "ACPRT_TRACE" in caplog.text
