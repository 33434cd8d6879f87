"""Variants that the schema does not name arrive as `Unknown`, say all they said, and are written as they came."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from acprt.acp import v1, v2
from acprt.acp.schema.decoding import decode

UPDATE = {"sessionUpdate": "mood_update", "mood": "good", "why": [1, {"a": None}], "_meta": {"x": 1}}


def read(type_: Any, payload: Any) -> Any:
    return decode(type_, json.dumps(payload).encode())


@pytest.mark.parametrize("message", [v1.SessionNotification, v2.UpdateSessionNotification])
def test_unknown_update_is_kept_whole(message: Any) -> None:
    note = read(message, {"sessionId": "s", "update": UPDATE})
    assert isinstance(note.update, v1.Unknown)
    assert (note.update.tag_field, note.update.tag) == ("sessionUpdate", "mood_update")
    assert note.update.raw == UPDATE
    assert note.update["mood"] == "good"


def test_unknown_matches_by_its_tag() -> None:
    match read(v1.SessionNotification, {"sessionId": "s", "update": UPDATE}).update:
        case v1.Unknown(tag="mood_update", raw=raw):
            assert raw["mood"] == "good"
        case other:
            pytest.fail(f"{other!r}")


def test_unknown_is_written_as_it_came() -> None:
    payload = {"sessionId": "s", "update": UPDATE}
    assert msgspec.json.decode(msgspec.json.encode(read(v1.SessionNotification, payload))) == payload


def test_unknown_can_be_made_and_sent() -> None:
    note = v2.UpdateSessionNotification(
        session_id="s", update=v2.Unknown("sessionUpdate", {"sessionUpdate": "_x", "n": 1})
    )
    assert msgspec.json.encode(note) == b'{"sessionId":"s","update":{"sessionUpdate":"_x","n":1}}'


def test_unknown_says_what_it_is() -> None:
    assert repr(v1.Unknown("type", {"type": "_x"})) == "Unknown('type', {'type': '_x'})"


INFO = {"name": "a", "version": "1"}


@pytest.mark.parametrize(
    ("message", "others", "wire", "variant"),
    [
        (v2.PromptRequest, {"sessionId": "s"}, "prompt", {"type": "_video", "u": 1}),
        (v2.NewSessionRequest, {"cwd": "/"}, "mcpServers", {"type": "sse", "url": "u"}),
        (v2.NewSessionResponse, {"sessionId": "s"}, "configOptions", {"type": "_x", "configId": "c", "name": "n"}),
        (
            v2.NewSessionResponse,
            {"sessionId": "s"},
            "availableCommands",
            {"type": "_x", "name": "n", "description": "d"},
        ),
        (
            v2.InitializeResponse,
            {"protocolVersion": 2, "info": INFO},
            "authMethods",
            {"type": "_x", "methodId": "m", "name": "n"},
        ),
    ],
)
def test_unknown_stands_in_a_list_in_its_place(message: Any, others: Any, wire: str, variant: Any) -> None:
    written = msgspec.json.decode(msgspec.json.encode(read(message, {**others, wire: [variant, variant]})))
    assert written[wire] == [variant, variant]


@pytest.mark.parametrize(
    ("message", "payload"),
    [
        (
            v2.InitializeResponse,
            {"protocolVersion": 2, "info": {"name": "a", "version": "1"}, "authMethods": [{"type": "_x"}]},
        ),
        (v2.NewSessionResponse, {"sessionId": "s", "configOptions": [{"type": "_x", "configId": "c"}]}),
        (v2.NewSessionResponse, {"sessionId": "s", "availableCommands": [{"type": "_x", "name": "n"}]}),
    ],
)
def test_unknown_variant_still_has_what_all_variants_have(message: Any, payload: Any) -> None:
    value = read(message, payload)
    assert [] in (getattr(value, name, None) for name in ("auth_methods", "config_options", "available_commands"))


def test_known_tag_with_a_wrong_payload_is_not_unknown() -> None:
    with pytest.raises(msgspec.ValidationError, match="text"):
        read(v2.PromptRequest, {"sessionId": "s", "prompt": [{"type": "text", "text": 5}]})


@pytest.mark.parametrize("block", [{}, {"type": None}, {"type": 5}])
def test_tag_that_is_missing_or_no_string_is_an_error(block: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match="type"):
        read(v2.PromptRequest, {"sessionId": "s", "prompt": [block]})


@pytest.mark.parametrize("cursor", [{}, {"type": 1}, "start"])
def test_only_variant_of_an_open_union_needs_its_tag_too(cursor: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(v2.ResumeSessionRequest, {"sessionId": "s", "cwd": "/", "replayFrom": cursor})


def test_unknown_cursor_is_kept() -> None:
    request = read(v2.ResumeSessionRequest, {"sessionId": "s", "cwd": "/", "replayFrom": {"type": "message", "id": 1}})
    assert request.replay_from == {"type": "message", "id": 1}


def test_unknown_value_of_an_open_enum_is_its_string() -> None:
    assert (
        read(v2.RequestPermissionResponse, {"outcome": {"outcome": "selected", "optionId": "x"}}).outcome.option_id
        == "x"
    )
    entry = {"content": "a", "priority": "urgent", "status": "parked"}
    update = {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": [entry]}}
    plan = read(v2.UpdateSessionNotification, {"sessionId": "s", "update": update}).update.plan
    assert (plan.entries[0].priority, plan.entries[0].status) == ("urgent", "parked")


def test_closed_unions_of_version_1_stay_closed() -> None:
    with pytest.raises(msgspec.ValidationError, match="perhaps"):
        read(v1.RequestPermissionResponse, {"outcome": {"outcome": "perhaps"}})


class TestStates:
    """`state_update` has a second tag in the same object."""

    def read_state(self, **members: Any) -> Any:
        return read(
            v2.UpdateSessionNotification, {"sessionId": "s", "update": {"sessionUpdate": "state_update", **members}}
        ).update

    def test_known_state_is_a_state_update(self) -> None:
        assert self.read_state(state="idle", stopReason="end_turn") == v2.StateUpdate(
            state="idle", stop_reason="end_turn"
        )

    def test_unknown_state_is_kept_whole_and_names_its_own_tag(self) -> None:
        state = self.read_state(state="_dreaming", of="sheep")
        assert (state.tag_field, state.tag) == ("state", "_dreaming")
        assert state.raw == {"sessionUpdate": "state_update", "state": "_dreaming", "of": "sheep"}

    def test_state_that_is_missing_is_an_error(self) -> None:
        with pytest.raises(msgspec.ValidationError, match="state"):
            self.read_state(stopReason="end_turn")

    @pytest.mark.parametrize("reason", [None, 5, {}])
    def test_malformed_stop_reason_counts_as_not_reported(self, reason: Any) -> None:
        assert self.read_state(state="idle", stopReason=reason).stop_reason is None

    def test_unknown_stop_reason_is_its_string(self) -> None:
        assert self.read_state(state="idle", stopReason="_bored").stop_reason == "_bored"

    def test_members_of_idle_mean_nothing_in_another_state(self) -> None:
        assert self.read_state(state="running", stopReason="end_turn", usage=5) == v2.StateUpdate(state="running")

    def test_state_without_the_outer_tag_is_the_same_class_underneath(self) -> None:
        answer = read(v2.SessionStatusResponse, {"status": "open", "state": {"state": "requires_action"}})
        assert type(answer.state) is v2.SessionState
        assert issubclass(v2.StateUpdate, v2.SessionState)
        assert msgspec.json.encode(answer) == b'{"status":"open","state":{"state":"requires_action"}}'
