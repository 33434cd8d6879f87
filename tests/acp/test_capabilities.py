"""Capabilities follow from handlers, and the same table says what a peer may be asked for."""

from __future__ import annotations

import msgspec
import pytest

from acprt.acp.capabilities import baseline_missing, inferred, lacking, merged
from acprt.acp.schema import v1, v2
from acprt.wire.payloads import decoder_for

TERMINALS = ["terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"]


class TestInference:
    def test_no_handler_offers_nothing(self) -> None:
        for side in ("agent", "client"):
            for version in (1, 2):
                assert inferred(side, version, []) == {}

    def test_agent_of_version_1(self) -> None:
        methods = ["session/new", "session/load", "session/list", "session/close", "logout", "session/prompt"]
        assert inferred("agent", 1, methods) == {
            "loadSession": True,
            "sessionCapabilities": {"list": {}, "close": {}},
            "auth": {"logout": {}},
        }

    def test_agent_of_version_2_offers_sessions_by_one_marker(self) -> None:
        assert inferred("agent", 2, ["session/new", "session/prompt", "session/delete"]) == {"session": {"delete": {}}}
        assert inferred("agent", 2, ["session/list"]) == {}

    def test_client_of_version_1(self) -> None:
        assert inferred("client", 1, ["fs/read_text_file", *TERMINALS, "elicitation/create"]) == {
            "fs": {"readTextFile": True},
            "terminal": True,
            "elicitation": {"form": {}},
        }

    def test_capability_needs_all_its_methods(self) -> None:
        """Terminals that cannot be killed are none."""
        assert inferred("client", 1, TERMINALS[:-1]) == {}
        assert inferred("agent", 1, ["session/archive"]) == {}

    def test_url_elicitation_needs_to_hear_of_its_end(self) -> None:
        both = ["elicitation/create", "elicitation/complete"]
        assert inferred("client", 2, both) == {"elicitation": {"form": {}, "url": {}}}

    def test_every_capability_is_one_of_the_schema(self) -> None:
        """What the table names, the generated classes have: nothing is lost in a decode."""
        every = {
            *TERMINALS,
            *("session/new", "session/prompt", "session/load", "session/list", "session/delete", "session/resume"),
            *("session/close", "session/fork", "session/archive", "session/unarchive", "session/status"),
            *("session/set_title", "logout", "auth/status", "providers/list", "providers/set", "providers/disable"),
            *("fs/read_text_file", "fs/write_text_file", "elicitation/create", "elicitation/complete"),
        }
        for side, version, type_ in (
            ("agent", 1, v1.AgentCapabilities),
            ("client", 1, v1.ClientCapabilities),
            ("agent", 2, v2.AgentCapabilities),
            ("client", 2, v2.ClientCapabilities),
        ):
            wire = inferred(side, version, every)  # type: ignore[arg-type]  # of a tuple
            assert wire
            decoded = decoder_for(type_).decode(msgspec.json.encode(wire))
            encoded = msgspec.to_builtins(decoded)
            assert merged(encoded, wire) == encoded


class TestMerging:
    def test_given_capabilities_stand_beside_inferred_ones(self) -> None:
        own = {"loadSession": True, "sessionCapabilities": {"list": {}}}
        given = {"promptCapabilities": {"image": True}, "sessionCapabilities": {"list": {"_meta": {"a": 1}}}}
        assert merged(own, given) == {
            "loadSession": True,
            "promptCapabilities": {"image": True},
            "sessionCapabilities": {"list": {"_meta": {"a": 1}}},
        }
        assert own == {"loadSession": True, "sessionCapabilities": {"list": {}}}


class TestGates:
    @pytest.mark.parametrize(
        ("method", "capabilities", "missing"),
        [
            ("session/load", {}, "loadSession"),
            ("session/load", {"loadSession": False}, "loadSession"),
            ("session/load", {"loadSession": True}, None),
            ("session/list", {"sessionCapabilities": {}}, "sessionCapabilities.list"),
            ("session/list", {"sessionCapabilities": None}, "sessionCapabilities.list"),
            ("session/list", {"sessionCapabilities": {"list": None}}, "sessionCapabilities.list"),
            ("session/list", {"sessionCapabilities": {"list": {}}}, None),
            ("session/unarchive", {}, "sessionCapabilities.archive"),
            ("session/prompt", {}, None),
            ("_example.com/anything", {}, None),
        ],
    )
    def test_what_an_agent_of_version_1_may_be_asked(self, method, capabilities, missing) -> None:
        assert lacking(method, "agent", 1, capabilities) == missing

    def test_client_may_be_asked_for_either_way_of_elicitation(self) -> None:
        assert lacking("elicitation/create", "client", 1, {}) == "elicitation.form or elicitation.url"
        assert lacking("elicitation/create", "client", 1, {"elicitation": {"url": {}}}) is None

    @pytest.mark.parametrize("method", TERMINALS)
    def test_terminals_are_one_capability(self, method) -> None:
        assert lacking(method, "client", 1, {}) == "terminal"
        assert lacking(method, "client", 1, {"terminal": True}) is None

    def test_baseline_of_version_2_is_one_capability(self) -> None:
        for method in ("session/new", "session/list", "session/resume", "session/close", "session/prompt"):
            assert lacking(method, "agent", 2, {}) == "session"
            assert lacking(method, "agent", 2, {"session": {}}) is None
        assert lacking("session/delete", "agent", 2, {"session": {}}) == "session.delete"

    def test_signing_in_needs_a_way_to(self) -> None:
        for version, method in ((1, "authenticate"), (2, "auth/login")):
            assert lacking(method, "agent", version, {}) == "authMethods"
            assert lacking(method, "agent", version, {}, can_sign_in=True) is None


class TestBaseline:
    def test_what_is_promised_and_missing_is_named(self) -> None:
        assert baseline_missing(2, ["session/new", "session/prompt", "session/list"]) == [
            "session/close",
            "session/resume",
        ]

    def test_agent_without_sessions_promises_nothing(self) -> None:
        assert baseline_missing(2, ["_example.com/x"]) == []
        assert baseline_missing(1, ["session/new", "session/prompt"]) == []
