"""Lines become typed messages and lines again: nothing is lost, and nothing but text that is no object raises."""

from __future__ import annotations

import copy
import json
import pickle
from types import UnionType
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies

from acprt import claude
from acprt.claude.base import KINDS
from tests.claude.recorded import FRAMES

JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers(-(2**62), 2**62) | strategies.text(max_size=5),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(max_size=5), inner),
    max_leaves=6,
)


def task_notification(**members: Any) -> claude.TaskNotificationMessage:
    frame = {"type": "system", "subtype": "task_notification", "session_id": "s", "task_id": "t", "status": "completed"}
    message = claude.decode(json.dumps(frame | members))
    assert isinstance(message, claude.TaskNotificationMessage)
    return message


class TestRecordedFrames:
    @pytest.mark.parametrize(("kind", "line"), FRAMES)
    def test_recorded_frame_is_typed_and_survives(self, kind: type[claude.Message], line: str) -> None:
        """Decoded to its class, no member lost, and written again as it came."""
        message = claude.decode(line)
        assert type(message) is kind
        assert json.loads(claude.encode(message)) == json.loads(line)
        assert claude.decode(claude.encode(message)) == message

    @pytest.mark.parametrize(("kind", "line"), FRAMES)
    def test_order_of_members_does_not_matter(self, kind: type[claude.Message], line: str) -> None:
        """`type` may be the last key."""
        shuffled = dict(sorted(json.loads(line).items(), key=lambda member: member[0] in ("type", "subtype")))
        assert type(claude.decode(json.dumps(shuffled))) is kind

    @pytest.mark.parametrize("line", [line for kind, line in FRAMES if "session_id" in kind.__struct_fields__])
    def test_changed_message_keeps_what_is_not_typed(self, line: str) -> None:
        """Only what was changed is written anew."""
        message: Any = claude.decode(line)
        message.session_id = "changed"
        assert json.loads(claude.encode(message)) == json.loads(line) | {"session_id": "changed"}


class TestKinds:
    @pytest.mark.parametrize("key", KINDS, ids=str)
    def test_message_made_here_is_written_with_its_discriminators(self, key: tuple[str, str | None]) -> None:
        """And is read back as itself."""
        cls = KINDS[key]
        required = {field.name: _example(field.type) for field in msgspec.structs.fields(cls) if field.required}
        message = cls(**required)
        line = claude.encode(message)
        assert json.loads(line)["type"] == key[0]
        assert json.loads(line).get("subtype") == key[1] or key[0] == "result"
        assert claude.decode(line) == message

    @pytest.mark.parametrize("key", KINDS, ids=str)
    def test_optional_members_never_cost_the_message(self, key: tuple[str, str | None]) -> None:
        """Whatever stands in them."""
        cls = KINDS[key]
        frame: dict[str, Any] = {"type": key[0]} | ({"subtype": key[1]} if key[1] else {})
        for field in msgspec.structs.fields(cls):
            if field.required:
                frame[field.encode_name] = msgspec.to_builtins(_example(field.type))
            elif field.encode_name not in ("type", "subtype"):
                frame[field.encode_name] = [[{"not": "what is expected"}]]
        message = claude.decode(json.dumps(frame))
        assert type(message) is cls
        assert json.loads(claude.encode(message)) == frame

    def test_unknown_type_is_kept_whole(self) -> None:
        line = b'{"type":"tomorrow","a":{"b":[1,2.5,null]}}'
        message = claude.decode(line)
        assert isinstance(message, claude.UnknownMessage)
        assert (message.type, message.subtype, message.raw["a"]) == ("tomorrow", None, {"b": [1, 2.5, None]})
        assert claude.encode(message) == line

    def test_unknown_subtype_is_kept_whole(self) -> None:
        message = claude.decode('{"type":"system","subtype":"ui_toast","plugin":"p"}')
        assert isinstance(message, claude.UnknownMessage)
        assert (message.type, message.subtype, message.extras) == ("system", "ui_toast", {"plugin": "p"})

    @pytest.mark.parametrize(
        "line",
        ['{"type":"assistant"}', '{"type":"system","subtype":"task_started"}', '{"type":7}', "{}", '{"type":"system"}'],
    )
    def test_message_without_what_it_needs_is_unknown_not_an_error(self, line: str) -> None:
        message = claude.decode(line)
        assert isinstance(message, claude.UnknownMessage)
        assert json.loads(claude.encode(message)) == json.loads(line)

    @pytest.mark.parametrize("line", ["", "  ", "[1]", "7", "null", '"text"', "{cut", "{} {}", "[SandboxDebug] x"])
    def test_what_is_no_object_raises_one_error(self, line: str) -> None:
        with pytest.raises(claude.UnreadableLine) as caught:
            claude.decode(line)
        assert caught.value.excerpt == line

    def test_excerpt_is_short_and_masked(self) -> None:
        with pytest.raises(claude.UnreadableLine) as caught:
            claude.decode(b"API_KEY=hunter2 " + b"x" * 5000)
        assert "hunter2" not in str(caught.value)
        assert len(str(caught.value)) < 500

    @pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, msgspec.Raw, lambda line: line.decode()])
    def test_every_form_of_text_is_taken(self, wrap: Any) -> None:
        message = claude.decode(wrap(b'{"type":"keep_alive","startup_mark":1}'))
        assert isinstance(message, claude.KeepAlive)
        assert message.extras == {"startup_mark": 1}

    def test_lone_surrogate_and_byte_order_mark_are_mended(self) -> None:
        message = claude.decode(b'\xef\xbb\xbf{"type":"tool_use_summary","summary":"a\\ud800b"}')
        assert isinstance(message, claude.ToolUseSummaryMessage)
        assert message.summary == "a\ufffdb"

    def test_separators_inside_strings_are_text(self) -> None:
        message = claude.decode('{"type":"tool_use_summary","summary":"a\u2028b\u0085c"}')
        assert isinstance(message, claude.ToolUseSummaryMessage)
        assert message.summary == "a\u2028b\u0085c"


class TestBlocks:
    def test_unknown_block_is_kept_beside_known_ones(self) -> None:
        line = (
            '{"type":"assistant","message":{"content":[{"type":"text","text":"a"},{"type":"server_tool_use","q":1},'
            '{"type":"thinking","thinking":"t"}]}}'
        )
        message = claude.decode(line)
        assert isinstance(message, claude.AssistantMessage)
        match message.content:
            case [claude.TextBlock(text="a"), claude.UnknownPart() as part, claude.ThinkingBlock(thinking="t")]:
                assert (part.type, part["q"]) == ("server_tool_use", 1)
            case other:
                raise AssertionError(other)
        assert json.loads(claude.encode(message)) == json.loads(line)
        message.message.content.pop(0)
        assert [block["type"] for block in json.loads(claude.encode(message))["message"]["content"]] == [
            "server_tool_use",
            "thinking",
        ]

    def test_user_content_is_text_or_blocks(self) -> None:
        text = claude.decode('{"type":"user","message":{"role":"user","content":"hi"}}')
        blocks = claude.decode('{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}')
        assert isinstance(text, claude.UserMessage)
        assert isinstance(blocks, claude.UserMessage)
        assert text.content == "hi"
        assert blocks.content == [claude.ToolResultBlock(tool_use_id="t")]

    def test_streamed_pieces(self) -> None:
        def delta(**members: str) -> Any:
            event = {"type": "content_block_delta", "index": 0, "delta": members}
            return claude.decode(json.dumps({"type": "stream_event", "event": event}))

        assert delta(type="text_delta", text="a").text == "a"
        assert delta(type="thinking_delta", thinking="b").thinking == "b"
        assert (delta(type="input_json_delta", partial_json="{").text, delta(type="signature_delta").thinking) == (
            "",
            "",
        )


class TestTaskNotification:
    def test_fields_are_exactly_the_documented_ones(self) -> None:
        """Internal members are extras."""
        assert set(claude.TaskNotificationMessage.__struct_fields__) == {
            "session_id", "task_id", "run_id", "status", "reason", "summary", "output_file", "tool_use_id", "usage",
            "resource_links", "handback", "handback_report", "skip_transcript", "ambient", "uuid",
        }  # fmt: skip
        message = task_notification(summary_is_report=True, mcp_task={"start_time": 1, "end_time": 2})
        assert message.extras == {"summary_is_report": True, "mcp_task": {"start_time": 1, "end_time": 2}}

    @pytest.mark.parametrize("links", [None, [], [{"uri": "u", "name": "n", "mimeType": "text/plain", "size": 3}] * 50])
    def test_resource_links_are_written_as_they_came(self, links: Any) -> None:
        """Absent and empty are equal to a reader."""
        message = task_notification(**({} if links is None else {"resource_links": links}))
        assert len(message.resource_links) == len(links or [])
        assert json.loads(claude.encode(message)).get("resource_links") == links
        if links:
            assert (message.resource_links[0].mime_type, message.resource_links[0].size) == ("text/plain", 3)

    def test_report_is_camel_case_inside(self) -> None:
        report = {"text": "t", "warning": "w", "toolUseId": "toolu_h"}
        message = task_notification(handback="flagged", handback_report=report)
        assert message.handback_report == claude.HandbackReport(text="t", warning="w", tool_use_id="toolu_h")
        made = claude.TaskNotificationMessage(
            session_id="s", task_id="t", status="completed", handback_report=message.handback_report
        )
        assert json.loads(claude.encode(made))["handback_report"] == report

    def test_words_of_a_later_release_are_kept(self) -> None:
        message = task_notification(status="vanished", reason="cosmic_ray", handback="shredded")
        assert (message.status, message.reason, message.handback) == ("vanished", "cosmic_ray", "shredded")

    def test_known_words_compare_with_their_names(self) -> None:
        message = task_notification(status="stopped", reason="worker_restart", handback="withheld")
        assert message.status == claude.TaskStatus.STOPPED
        assert message.reason == claude.TaskEndReason.WORKER_RESTART
        assert message.handback == claude.TaskHandback.WITHHELD

    def test_empty_output_file_is_no_path(self) -> None:
        assert task_notification(output_file="").output_path is None
        assert task_notification().output_path is None
        assert task_notification(output_file="/o").output_path == "/o"

    def test_incomplete_usage_costs_itself(self) -> None:
        message = task_notification(usage={"total_tokens": 1}, summary="s")
        assert (message.usage, message.summary) == (None, "s")


class TestCopies:
    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda message: pickle.loads(pickle.dumps(message))])
    def test_copy_keeps_the_line(self, copied: Any) -> None:
        message = claude.decode('{"type":"tool_use_summary","summary":"s","later":1}')
        assert copied(message) == message
        assert (copied(message).line, copied(message).extras) == (message.line, {"later": 1})
        assert copied(claude.KeepAlive()).line is None

    def test_message_made_here_has_no_line(self) -> None:
        message = claude.KeepAlive()
        assert (message.line, message.raw, message.extras) == (None, {}, {})


class TestMutatedFrames:
    @given(data=strategies.data())
    def test_mutated_members_never_raise_and_are_not_lost(self, data: strategies.DataObject) -> None:
        """Any member of a recorded frame replaced, removed or added, at any depth."""
        frame = json.loads(data.draw(strategies.sampled_from(FRAMES))[1])
        for _ in range(data.draw(strategies.integers(1, 4))):
            _mutate(frame, data)
        message = claude.decode(msgspec.json.encode(frame))
        assert json.loads(claude.encode(message)) == frame
        assert isinstance(str(message), str)
        assert claude.decode(claude.encode(message)) == message

    @given(data=strategies.data())
    def test_mutated_bytes_give_a_message_or_the_one_error(self, data: strategies.DataObject) -> None:
        line = bytearray(data.draw(strategies.sampled_from(FRAMES))[1].encode())
        for _ in range(data.draw(strategies.integers(1, 6))):
            line[data.draw(strategies.integers(0, len(line) - 1))] = data.draw(strategies.integers(0, 255))
        try:
            message = claude.decode(bytes(line))
        except claude.UnreadableLine:
            return
        assert claude.decode(claude.encode(message)) == message

    @pytest.mark.parametrize("text", ["[" * 100_000, '{"type":' * 50_000, '{"type":"user","message":' + "[" * 100_000])
    def test_nesting_without_end_is_an_unreadable_line(self, text: str) -> None:
        with pytest.raises(claude.UnreadableLine):
            claude.decode(text)


def _mutate(value: Any, data: strategies.DataObject) -> None:
    while True:
        if not value:
            return
        key = data.draw(strategies.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
        inner = value[key]
        if isinstance(inner, dict | list) and inner and data.draw(strategies.booleans()):
            value = inner
            continue
        if isinstance(value, dict) and data.draw(strategies.booleans()):
            del value[key]
        else:
            value[key] = data.draw(JSON)
        return


def _example(type_: Any) -> Any:
    if type_ is str or isinstance(type_, UnionType):
        return "x"
    if type_ == dict[str, Any]:
        return {"subtype": "x"}
    required = {each.name: _example(each.type) for each in msgspec.structs.fields(type_) if each.required}
    return type_(**required)
