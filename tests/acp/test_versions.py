"""The handshake as a state machine, without a connection: what passes when, and which version is chosen."""

from __future__ import annotations

from typing import Any

import pytest

import acprt
from acprt.acp.versions import UNSUPPORTED_VERSION, Phase, VersionGuard, as_initialize_of


def code_of(refusal: acprt.RpcError | None) -> int | None:
    return None if refusal is None else refusal.code


def ready(guard: VersionGuard, version: int) -> VersionGuard:
    """The guard behind a handshake that it began itself."""
    assert guard.phase is Phase.INITIALIZING
    guard.succeed(version)
    return guard


class TestChoice:
    @pytest.mark.parametrize(
        ("spoken", "asked", "chosen"),
        [
            ({1}, 1, 1),
            ({1}, 2, 1),
            ({1}, 99, 1),
            ({1}, 0, 1),
            ({2}, 2, 2),
            ({2}, 3, 2),
            ({1, 2}, 1, 1),
            ({1, 2}, 2, 2),
            ({1, 2}, 65535, 2),
            ({1, 2}, 0, 1),
        ],
    )
    def test_agent_takes_the_highest_version_not_above_the_one_asked_for(self, spoken, asked, chosen) -> None:
        """An agent of version 1 answers its own whatever it is asked for."""
        guard = VersionGuard(spoken, "agent")
        assert guard.asked(asked) is None
        assert guard.version == chosen

    @pytest.mark.parametrize("asked", ["1", None, 1.5, True, -1, 65536, [1]])
    def test_what_is_no_version_counts_as_1_where_1_is_spoken(self, asked) -> None:
        """Odd clients send a string, or nothing."""
        guard = VersionGuard({1, 2}, "agent")
        assert guard.asked(asked) is None
        assert guard.version == 1

    @pytest.mark.parametrize("asked", ["2", None, -1, 65536])
    def test_what_is_no_version_is_refused_by_version_2(self, asked) -> None:
        guard = VersionGuard({2}, "agent")
        refusal = guard.asked(asked)
        assert refusal is not None
        assert refusal.code == -32602
        assert "protocolVersion" in refusal.data
        assert guard.phase is Phase.UNINITIALIZED

    def test_version_below_all_is_refused_with_what_is_supported(self) -> None:
        refusal = VersionGuard({2}, "agent").asked(1)
        assert refusal == acprt.RpcError(
            UNSUPPORTED_VERSION, "Unsupported protocol version", {"requested": 1, "supported": [2]}
        )

    @pytest.mark.parametrize("asked", [1, 3, "2", None, True, [2]])
    def test_client_asks_for_nothing_that_it_does_not_speak(self, asked) -> None:
        guard = VersionGuard({2}, "client")
        refusal = guard.ask(asked)
        assert refusal is not None
        assert refusal.code == -32600
        assert "speaks 2" in refusal.data
        assert guard.phase is Phase.UNINITIALIZED


class TestStrictAgent:
    """Version 2: nothing before the handshake has succeeded."""

    def test_nothing_passes_before(self) -> None:
        guard = VersionGuard({2}, "agent")
        assert code_of(guard.received("session/new", is_request=True)) == -32600
        assert code_of(guard.received("session/cancel", is_request=False)) == -32600
        assert code_of(guard.sent("session/request_permission")) == -32600
        assert guard.received("$/cancel_request", is_request=False) is None

    def test_nothing_passes_while_it_is_under_way(self) -> None:
        guard = VersionGuard({2}, "agent")
        guard.asked(2)
        refusal = guard.received("session/new", is_request=True)
        assert refusal is not None
        assert refusal.data == "ACP initialization must complete before `session/new` can be used"
        assert guard.received("$/cancel_request", is_request=False) is None

    def test_second_one_leaves_the_first_alone(self) -> None:
        guard = VersionGuard({2}, "agent")
        guard.asked(2)
        assert code_of(guard.asked(2)) == -32600
        assert guard.phase is Phase.INITIALIZING
        assert ready(guard, 2).received("session/new", is_request=True) is None

    def test_failed_one_may_be_tried_again(self) -> None:
        guard = VersionGuard({2}, "agent")
        guard.asked(2)
        guard.fail()
        assert guard.phase is Phase.UNINITIALIZED
        assert guard.version is None
        assert guard.asked(2) is None

    def test_it_may_be_repeated_until_the_first_other_request(self) -> None:
        guard = VersionGuard({2}, "agent")
        guard.asked(2)
        ready(guard, 2)
        guard.received("_example.com/note", is_request=False)
        assert guard.asked(2) is None
        ready(guard, 2)
        guard.received("session/new", is_request=True)
        assert guard.is_settled
        assert code_of(guard.asked(2)) == -32600
        assert guard.phase is Phase.READY

    def test_repetition_must_not_ask_for_less(self) -> None:
        guard = VersionGuard({1, 2}, "agent")
        guard.asked(2)
        ready(guard, 2)
        assert code_of(guard.asked(1)) == -32600
        assert (guard.phase, guard.version) == (Phase.READY, 2)

    def test_failed_repetition_keeps_what_was_agreed_on(self) -> None:
        guard = VersionGuard({1, 2}, "agent")
        guard.asked(1)
        ready(guard, 1)
        guard.asked(2)
        guard.fail()
        assert (guard.phase, guard.version) == (Phase.READY, 1)


class TestEasyAgent:
    """Version 1 alone: what follows `initialize` passes, answered or not."""

    def test_requests_before_it_are_refused(self) -> None:
        guard = VersionGuard({1}, "agent")
        assert code_of(guard.received("session/new", is_request=True)) == -32600

    def test_notifications_always_pass(self) -> None:
        assert VersionGuard({1}, "agent").received("session/cancel", is_request=False) is None

    def test_what_is_written_behind_it_passes(self) -> None:
        """A client may write without waiting."""
        guard = VersionGuard({1}, "agent")
        guard.asked(1)
        assert guard.received("session/new", is_request=True) is None

    def test_agent_may_send_at_any_time(self) -> None:
        assert VersionGuard({1}, "agent").sent("session/request_permission") is None

    def test_it_may_be_repeated_at_any_time(self) -> None:
        """As real agents of version 1 do."""
        guard = VersionGuard({1}, "agent")
        guard.asked(1)
        ready(guard, 1).received("session/new", is_request=True)
        assert guard.repetition() is None
        assert guard.asked(1) is None


class TestBothVersions:
    """Once version 1 is chosen, it is as easy as with an agent of version 1 alone."""

    def test_what_is_written_behind_an_initialize_of_version_1_passes(self) -> None:
        guard = VersionGuard({1, 2}, "agent")
        assert code_of(guard.received("session/new", is_request=True)) == -32600
        guard.asked(1)
        assert guard.received("session/new", is_request=True) is None

    def test_nothing_passes_behind_one_of_version_2(self) -> None:
        guard = VersionGuard({1, 2}, "agent")
        guard.asked(2)
        assert code_of(guard.received("session/new", is_request=True)) == -32600

    def test_version_1_may_be_asked_for_again(self) -> None:
        guard = VersionGuard({1, 2}, "agent")
        guard.asked(1)
        ready(guard, 1).received("session/new", is_request=True)
        assert guard.repetition() is None


class TestClient:
    def test_client_of_version_2_sends_nothing_else_before(self) -> None:
        guard = VersionGuard({2}, "client")
        assert code_of(guard.sent("session/new")) == -32600
        guard.ask(2)
        assert code_of(guard.sent("session/new")) == -32600
        assert ready(guard, 2).sent("session/new") is None

    def test_client_of_version_1_may_send_what_it_likes(self) -> None:
        """The agent is the one to refuse."""
        assert VersionGuard({1}, "client").sent("session/new") is None

    def test_agent_that_was_not_asked_may_not_speak_version_2(self) -> None:
        guard = VersionGuard({2}, "client")
        assert code_of(guard.received("session/update", is_request=False)) == -32600
        guard.ask(2)
        assert guard.received("session/update", is_request=False) is None


class TestInitializeOfAnotherVersion:
    @pytest.mark.parametrize(
        "params",
        [
            {"protocolVersion": 1},
            {"protocolVersion": 1, "clientInfo": None, "vendor": 1},
            {"protocolVersion": 1, "info": {}, "clientInfo": {}},
            {"protocolVersion": 7},
        ],
    )
    def test_version_1_reads_its_own_as_it_came(self, params) -> None:
        assert as_initialize_of(1, params) is None

    def test_members_of_version_2_become_those_of_version_1(self) -> None:
        info = {"name": "c", "version": "3"}
        params = {"protocolVersion": 2, "info": info, "capabilities": {"elicitation": {"form": {}}}, "_meta": {"k": 1}}
        assert as_initialize_of(1, params) == {
            "protocolVersion": 1,
            "clientInfo": info,
            "clientCapabilities": {
                "session": {"configOptions": {"boolean": {}}},
                "elicitation": {"form": {}},
            },
            "_meta": {"k": 1},
        }

    @pytest.mark.parametrize(
        ("auth", "terminal"),
        [({"terminal": {}}, True), ({"terminal": None}, False), ({}, False), ({"terminal": {"_meta": None}}, True)],
    )
    def test_marker_becomes_a_boolean(self, auth: Any, terminal: bool) -> None:
        params = {"protocolVersion": 2, "info": {}, "capabilities": {"auth": auth}}
        fitting = as_initialize_of(1, params)
        assert fitting is not None
        assert fitting["clientCapabilities"]["auth"]["terminal"] is terminal

    def test_members_of_version_1_beside_go_first(self) -> None:
        """A client that says both is believed."""
        mine = {"fs": {"readTextFile": True}}
        params = {
            "protocolVersion": 2,
            "info": {},
            "capabilities": {},
            "clientCapabilities": mine,
            "clientInfo": {"name": "x"},
        }
        assert as_initialize_of(1, params) == {
            "protocolVersion": 1,
            "clientCapabilities": mine,
            "clientInfo": {"name": "x"},
        }

    def test_what_is_no_version_becomes_1(self) -> None:
        assert as_initialize_of(1, {"protocolVersion": "1", "clientInfo": None}) == {
            "protocolVersion": 1,
            "clientInfo": None,
        }

    def test_future_client_is_asked_for_nothing_but_its_version(self) -> None:
        """What a later version says of a client need not be understood."""
        unknown = {"name": "unknown", "version": "unknown"}
        assert as_initialize_of(2, {"protocolVersion": 3, "info": "acme"}) == {"protocolVersion": 2, "info": unknown}
        info = {"name": "acme", "version": "9", "colour": "red"}
        assert as_initialize_of(2, {"protocolVersion": 3, "info": info}) == {"protocolVersion": 2, "info": info}

    def test_version_2_reads_its_own_as_it_came(self) -> None:
        assert as_initialize_of(2, {"protocolVersion": 2}) is None
