"""A trace in a file: what a record holds, what is masked and cut, and that writing it holds nobody up."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

import acprt
from acprt.trace.records import Recorder
from tests.runtime.scripted import notification, request, result


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


class TestFileSink:
    def test_events_become_json_lines(self, tmp_path):
        """A message is told by its parts; its answer by the request, with the time between them."""
        ask = msgspec.json.encode(request(7, "session/prompt", {"sessionId": "s1", "text": "é"}))
        answer = msgspec.json.encode(result(7, {"stopReason": "end_turn"}))
        asked, answered = traced(tmp_path / "t", event(ask, clock=10.0), event(answer, direction="out", clock=10.25))
        assert answered.pop("ts") - asked.pop("ts") == pytest.approx(0.25)
        common = {"time": 1.5, "pid": os.getpid(), "connection": "x#1", "protocol": "jsonrpc"}
        common |= {"id": 7, "method": "session/prompt", "session": "s1"}
        assert asked == common | {
            "type": "request",
            "direction": "in",
            "from": "Client",
            "to": "Agent",
            "size": len(ask),
            "params": {"sessionId": "s1", "text": "é"},
        }
        assert answered == common | {
            "type": "response",
            "direction": "out",
            "from": "Agent",
            "to": "Client",
            "size": len(answer),
            "is_error": False,
            "latency": 0.25,
            "payload": {"stopReason": "end_turn"},
        }

    @pytest.mark.parametrize(
        ("version", "protocol"), [(1, "acp"), ("2025-06-18", "mcp"), (None, "jsonrpc")], ids=["acp", "mcp", "other"]
    )
    def test_protocol_is_read_from_the_handshake(self, tmp_path, version, protocol):
        """Responses carry it, too."""
        opening = msgspec.json.encode(request(0, "initialize", {"protocolVersion": version}))
        answer = msgspec.json.encode(result(0, {}))
        shown = traced(tmp_path / "t", event(opening), event(answer, direction="out"))
        assert [each["protocol"] for each in shown] == [protocol] * 2

    def test_client_is_who_speaks_first(self, tmp_path):
        """Whatever side the trace is taken from; a child that talks before anybody asked is the agent."""
        banner = event(b"hello, I am ready", peer_is_child=True)
        ask = event(msgspec.json.encode(request(1, "a")), direction="out", peer_is_child=True)
        back = event(msgspec.json.encode(request(1, "b")), peer_is_child=True)
        shown = traced(tmp_path / "t", banner, ask, back)
        assert [(each["from"], each["to"]) for each in shown] == [
            ("Agent", "Client"),
            ("Client", "Agent"),
            ("Agent", "Client"),
        ]

    def test_ids_of_the_two_sides_and_reused_ids_do_not_mix(self, tmp_path):
        """Each answer is paired with the last open request of the other side that has its id."""

        def line(message: Any, direction: str, clock: float) -> acprt.TraceEvent:
            return event(msgspec.json.encode(message), direction=direction, clock=clock)

        shown = traced(
            tmp_path / "t",
            line(request(1, "ours"), "out", 1.0),
            line(request(1, "theirs"), "in", 2.0),
            line(result(1, None), "in", 4.0),
            line(result(1, None), "out", 8.0),
            line(request(1, "again"), "out", 9.0),
            line(result(1, None), "in", 9.5),
            line(result(1, None), "in", 10.0),
        )
        answers = [(each.get("method"), each.get("latency")) for each in shown if each["type"] == "response"]
        assert answers == [("ours", 3.0), ("theirs", 6.0), ("again", 0.5), (None, None)]

    def test_errors_are_told_from_results(self, tmp_path):
        """`payload` is the error object."""
        line = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":"x"}}'
        (shown,) = traced(tmp_path / "t", event(line))
        assert shown["is_error"] is True
        assert shown["payload"] == {"code": -32601, "message": "no", "data": "x"}

    def test_what_is_no_message_is_kept_as_text(self, tmp_path):
        """With what is wrong with it."""
        (shown,) = traced(tmp_path / "t", event(b"not json \xff"))
        assert (shown["type"], shown["text"]) == ("malformed", "not json \ufffd")
        assert "Parse error" in shown["error"]

    def test_batch_has_a_record_for_each_entry(self, tmp_path):
        """Marked with its place in the batch."""
        shown = traced(tmp_path / "t", event(msgspec.json.encode([notification("a"), 3, notification("b")])))
        assert [(each["type"], each["batch"]) for each in shown] == [
            ("notification", [0, 3]),
            ("malformed", [1, 3]),
            ("notification", [2, 3]),
        ]

    def test_wrapped_message_is_shown_as_what_it_carries(self, tmp_path):
        """`via` names the envelope; what goes through `mcp/message` is MCP."""
        params = {"connectionId": "c", "method": "tools/call", "params": {"name": "t"}}
        (shown,) = traced(tmp_path / "t", event(msgspec.json.encode(request(1, "mcp/message", params))))
        assert (shown["method"], shown["via"], shown["protocol"]) == ("tools/call", "mcp/message", "mcp")
        assert shown["params"] == {"name": "t"}

    def test_claude_stream_is_shown_by_its_types(self, tmp_path):
        """It has no JSON-RPC envelope."""
        (shown,) = traced(tmp_path / "t", event(b'{"type":"system","subtype":"init","session_id":"s"}'))
        assert (shown["type"], shown["protocol"]) == ("message", "claude")
        assert (shown["method"], shown["session"]) == ("system/init", "s")

    def test_child_is_recorded_beside_its_lines(self, tmp_path):
        """Start, stderr and exit, from a sink that asked for it."""
        started = msgspec.json.encode({"event": "started", "pid": 7, "command": ["agent"]})
        shown = traced(tmp_path / "t", event(started, kind="process"), event(b"oops", kind="stderr"))
        assert (shown[0]["event"], shown[0]["payload"]) == ("started", {"pid": 7, "command": ["agent"]})
        assert (shown[1]["type"], shown[1]["text"]) == ("stderr", "oops")

    @hypothesis.given(data=st.data())
    def test_no_line_is_too_odd_to_be_recorded(self, data):
        """Every line has a record: JSON, with the members that all have."""
        json_values = st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda some: (
                st.lists(some, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "type"]), some
                )
            ),
        )
        envelope = st.fixed_dictionaries(
            {"jsonrpc": st.just("2.0")},
            optional={
                "id": st.integers(0, 3) | st.text(max_size=2) | st.none(),
                "method": st.sampled_from(["initialize", "mcp/message", "_proxy/successor", "m", "token=abc"]),
                "params": json_values,
                "result": json_values,
                "error": json_values,
            },
        )
        recorder = Recorder(0.0, value_characters=8)
        for n in range(data.draw(st.integers(1, 6))):
            value = data.draw(st.binary() | envelope | st.lists(envelope, max_size=3) | json_values)
            line = value if isinstance(value, bytes) else json.dumps(value).encode()
            head = line[: data.draw(st.sampled_from([len(line), len(line) // 2]))]
            shown = recorder.records(event(head, size=len(line), direction=("in", "out")[n % 2], clock=float(n)))
            assert shown
            for record in map(json.loads, shown):
                assert record.keys() >= {"type", "ts", "time", "pid", "connection", "direction", "from", "to", "size"}
                assert {record["from"], record["to"]} == {"Client", "Agent"}

    def test_it_appends(self, tmp_path):
        """A file of yesterday is not lost, and several processes may share one."""
        traced(tmp_path / "t", event(b"1"))
        assert [each["text"] for each in traced(tmp_path / "t", event(b"2"))] == ["1", "2"]

    def test_secrets_are_masked_and_records_stay_json(self, tmp_path):
        """DEC-21: texts after secret-looking names, and words like `sk-…`; a count, an object or an array stays."""
        params = {
            "env": [{"name": "X", "API_KEY": "hunter2hunter2"}],
            "usage": {"inputTokens": 12, "apiToken": None, "token_count": {"total": [3]}, "api-key": ["a", {}]},
            "text": "use sk-abcdef123456",
        }
        (shown,) = traced(tmp_path / "t", event(msgspec.json.encode(notification("n", params))))
        text = json.dumps(shown)
        assert "hunter2" not in text
        assert "sk-abcdef123456" not in text
        assert shown["params"]["env"] == [{"name": "X", "API_KEY": "***"}]
        assert shown["params"]["usage"] == params["usage"]
        assert shown["masked"] is True

    @pytest.mark.parametrize(
        "text", ["api_key=hush12", "\u017fECRET: hush12", "to\u212aen=hush12", "--key hush12", "SK-hush12"]
    )
    def test_secrets_are_masked_however_their_names_are_written(self, tmp_path, text):
        """Letters that fold to the ones looked for, too."""
        (shown,) = traced(tmp_path / "t", event(msgspec.json.encode(notification("n", {"text": text}))))
        assert "hush12" not in shown["params"]["text"]

    def test_masking_can_be_turned_off(self, tmp_path):
        """For a trace that is to be replayed, say."""
        sink = acprt.FileSink(str(tmp_path / "t"), redact=False)
        sink(event(msgspec.json.encode(notification("n", {"token": "hush"}))))
        sink.close()
        shown = json.loads((tmp_path / "t").read_text())
        assert shown["params"] == {"token": "hush"}
        assert "masked" not in shown

    def test_long_values_are_cut_and_the_rest_is_kept(self, tmp_path):
        """Bounded; `cut` counts them and the size tells what is missing."""
        line = msgspec.json.encode(notification("n", {"data": "x" * 100_000, "name": "a.png"}))
        (shown,) = traced(tmp_path / "t", event(line))
        assert shown["size"] == len(line)
        assert shown["params"]["name"] == "a.png"
        assert shown["params"]["data"] == "x" * 16_384 + "… [83616 characters cut]"
        assert shown["cut"] == 1

    def test_line_too_long_to_be_understood_is_told_by_its_beginning(self, tmp_path):
        """It is paired all the same."""
        ask = msgspec.json.encode(request(5, "upload", {"data": "x" * 3_000_000}))
        asked, answered = traced(
            tmp_path / "t", event(ask, clock=1.0), event(msgspec.json.encode(result(5, 1)), direction="out", clock=2.0)
        )
        assert (asked["type"], asked["id"], asked["method"], asked["size"]) == ("request", 5, "upload", len(ask))
        assert asked["text"] == ask[:16_384].decode()
        assert (answered["method"], answered["latency"]) == ("upload", 1.0)

    def test_deep_nesting_is_no_reason_to_lose_a_record(self, tmp_path):
        """What cannot be read to be cut is kept as text."""
        deep = b"[" * 900 + b'"' + b"x" * 20_000 + b'"' + b"]" * 900
        (shown,) = traced(tmp_path / "t", event(b'{"jsonrpc":"2.0","method":"n","params":[' + deep + b"]}"))
        assert (shown["type"], shown["method"], shown["cut"]) == ("notification", "n", 1)

    @pytest.mark.parametrize(("count", "size", "kept"), [(30_000, 10, 10_000), (1000, 60_000, 279)])
    def test_slow_disk_costs_the_oldest_events_and_no_memory(self, tmp_path, monkeypatch, count, size, kept):
        """The queue is bounded in events and in bytes; what was dropped is counted."""
        write, held = acprt.FileSink._write, threading.Event()
        entered = threading.Event()

        def slow(self: acprt.FileSink, records: Any, events: int) -> None:
            entered.set()
            assert held.wait(10)
            write(self, records, events)

        monkeypatch.setattr(acprt.FileSink, "_write", slow)
        path = tmp_path / "t"
        sink = acprt.FileSink(str(path))
        sink(event(b"first"))
        assert entered.wait(10)
        for n in range(count):
            sink(event(b"%d" % n + b" " * size))
        held.set()
        sink.close()
        records = [json.loads(line) for line in path.read_text().splitlines()]
        assert records[0]["text"] == "first"
        assert (records[1]["type"], records[1]["count"]) == ("dropped", count - kept)
        assert [int(each["text"].split()[0]) for each in records[2:]] == list(range(count - kept, count))
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
