"""The tap: every line that passes, in both directions, for whoever asked to see it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

import acprt
from acprt.trace import sink_from_environment
from tests.runtime.scripted import ScriptedTransport, notification, request, result, until_idle

ROOT = Path(__file__).resolve().parents[1]


def event(line: bytes, **changes: Any) -> acprt.TraceEvent:
    """An event that holds that line."""
    plain = acprt.TraceEvent(time=1.5, connection="x#1", direction="in", size=len(line), line=line)
    return msgspec.structs.replace(plain, **changes)


def traced(path: Path, *events: acprt.TraceEvent) -> list[dict[str, Any]]:
    """What a file sink makes of events."""
    sink = acprt.FileSink(str(path))
    for each in events:
        sink(each)
    sink.close()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


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

    def test_without_a_sink_nothing_is_tapped(self, run):
        """It costs nothing when it is off."""

        async def main():
            async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:
                assert cx._inbox.tap is None
                assert cx._outbox.tap is None

        run(main())


class TestFileSink:
    def test_events_become_json_lines(self, tmp_path):
        """One object a line, the frame as JSON where it is JSON, else as text."""
        shown = traced(tmp_path / "t", event(b'{"a":[1,"\xc3\xa9"]}'), event(b"not json \xff", direction="out"))
        assert shown == [
            {"time": 1.5, "connection": "x#1", "direction": "in", "size": 14, "frame": {"a": [1, "é"]}},
            {"time": 1.5, "connection": "x#1", "direction": "out", "size": 10, "frame": "not json \ufffd"},
        ]

    def test_it_appends(self, tmp_path):
        """A file of yesterday is not lost, and several processes may share one."""
        traced(tmp_path / "t", event(b"1"))
        assert [each["frame"] for each in traced(tmp_path / "t", event(b"2"))] == [1, 2]

    def test_secrets_are_masked_and_frames_stay_json(self, tmp_path):
        """DEC-21: values after secret-looking names, and words like `sk-…`; a masked number becomes a text."""
        frame = {
            "env": [{"name": "X", "API_KEY": "hunter2hunter2"}],
            "usage": {"inputTokens": 12, "apiToken": None},
            "text": "use sk-abcdef123456",
        }
        (shown,) = traced(tmp_path / "t", event(json.dumps(frame).encode()))
        text = json.dumps(shown)
        assert "hunter2" not in text
        assert "sk-abcdef123456" not in text
        assert shown["frame"]["env"] == [{"name": "X", "API_KEY": "***"}]
        assert shown["frame"]["usage"]["inputTokens"] == "***"

    def test_long_lines_are_cut(self, tmp_path):
        """Bounded; the size tells what is missing."""
        line = b'{"a":"' + b"x" * 100_000 + b'"}'
        (shown,) = traced(tmp_path / "t", event(line))
        assert shown["size"] == len(line)
        assert shown["frame"] == line[:16_384].decode()

    @pytest.mark.parametrize(("count", "size", "kept"), [(30_000, 10, 10_000), (1000, 60_000, 279)])
    def test_slow_disk_costs_the_oldest_events_and_no_memory(self, tmp_path, monkeypatch, count, size, kept):
        """The queue is bounded in events and in bytes; what was dropped is counted."""
        write, held = acprt.FileSink._write, threading.Event()
        entered = threading.Event()

        def slow(self: acprt.FileSink, events: Any) -> None:
            entered.set()
            assert held.wait(10)
            write(self, events)

        monkeypatch.setattr(acprt.FileSink, "_write", slow)
        path = tmp_path / "t"
        sink = acprt.FileSink(str(path))
        sink(event(b"first"))
        assert entered.wait(10)
        for n in range(count):
            sink(event(b"%d" % n + b" " * size))
        held.set()
        sink.close()
        frames = [json.loads(line)["frame"] for line in path.read_text().splitlines()]
        assert frames[0] == "first"
        assert [int(frame) for frame in frames[1:]] == list(range(count - kept, count))
        assert sink.dropped == count - kept

    def test_full_disk_is_told_once_and_counted(self, tmp_path, caplog):
        """A trace that cannot be written is no reason to stop tracing, or the process."""
        if not os.path.exists("/dev/full"):
            pytest.skip("needs /dev/full")
        sink = acprt.FileSink("/dev/full")
        for _ in range(3):
            sink(event(b"1"))
        sink.close()
        assert sink.dropped == 3
        assert caplog.text.count("trace events are lost") == 1

    def test_closing_twice_is_once(self, tmp_path):
        """The exit of the process closes it again."""
        sink = acprt.FileSink(str(tmp_path / "t"))
        sink(event(b"1"))
        sink.close()
        sink.close()
        assert (tmp_path / "t").read_bytes().count(b"\n") == 1


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
            [sys.executable, "-X", "dev", "-W", "error", "-c", code],
            input=given,
            capture_output=True,
            timeout=30,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "ACPRT_TRACE": str(path)},
        )
        assert (done.returncode, done.stderr) == (0, b"")
        shown = [json.loads(line) for line in path.read_text().splitlines()]
        assert [(each["direction"], each["frame"]) for each in shown] == [
            ("in", request(1, "add", [1, 2])),
            ("out", result(1, 3)),
        ]

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
