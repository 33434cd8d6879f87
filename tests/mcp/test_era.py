"""The era of a connection: every cell of the classifier's table, and both settings of its option."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acprt.mcp import (
    AlreadyTerminal,
    EraPolicy,
    EraRejection,
    EraState,
    Opening,
    OpeningKind,
    ProtocolEra,
    RejectedAndClosed,
    RejectedUnderSelectedEra,
    Selected,
    StdioEraClassifier,
    opening_of,
)
from acprt.wire.frames import parse

LEGACY, MODERN = ProtocolEra.LEGACY_2024, ProtocolEra.MODERN_2026
KIND, WHY = OpeningKind, EraRejection


def modern(version: Any = "2026-07-28", capabilities: Any = "{}", info: Any = None) -> dict[str, Any]:
    """A complete `_meta` of a modern request."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {} if capabilities == "{}" else capabilities,
        "io.modelcontextprotocol/clientInfo": info,
    }
    return {name: value for name, value in meta.items() if value is not None}


def request(method: str, meta: Any = None, **params: Any) -> bytes:
    body = params if meta is None else params | {"_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": body}).encode()


OPENINGS: dict[OpeningKind, bytes] = {
    KIND.MODERN_REQUEST: request("server/discover", modern()),
    KIND.LEGACY_INITIALIZE: request("initialize", protocolVersion="2024-11-05"),
    KIND.MIXED_INITIALIZE_AND_MODERN_METADATA: request("initialize", modern(), protocolVersion="2024-11-05"),
    KIND.REQUEST_WITHOUT_MODERN_METADATA: request("tools/list"),
    KIND.NOTIFICATION: b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    KIND.RESPONSE: b'{"jsonrpc":"2.0","id":1,"result":{}}',
    KIND.MALFORMED: b"nonsense",
}


def closed(reason: EraRejection) -> RejectedAndClosed:
    return RejectedAndClosed(reason)


# Under AUTO before the choice, under MODERN, under LEGACY; where the option matters: with it, without it.
TABLE: dict[OpeningKind, tuple[Any, Any, Any]] = {
    KIND.MODERN_REQUEST: (Selected(MODERN), Selected(MODERN), WHY.CROSS_ERA_TRAFFIC),
    KIND.LEGACY_INITIALIZE: (Selected(LEGACY), WHY.CROSS_ERA_TRAFFIC, Selected(LEGACY)),
    KIND.MIXED_INITIALIZE_AND_MODERN_METADATA: (
        closed(WHY.MIXED_ERA_MARKERS),
        WHY.MIXED_ERA_MARKERS,
        WHY.CROSS_ERA_TRAFFIC,
    ),
    KIND.REQUEST_WITHOUT_MODERN_METADATA: (
        (Selected(LEGACY), closed(WHY.MISSING_MODERN_METADATA)),
        WHY.MISSING_MODERN_METADATA,
        (Selected(LEGACY), WHY.LEGACY_INITIALIZE_REQUIRED),
    ),
    KIND.NOTIFICATION: (
        closed(WHY.NOTIFICATION_CANNOT_CLASSIFY),
        WHY.NOTIFICATION_CANNOT_CLASSIFY,
        (Selected(LEGACY), WHY.LEGACY_INITIALIZE_REQUIRED),
    ),
    KIND.RESPONSE: (
        closed(WHY.RESPONSE_CANNOT_CLASSIFY),
        WHY.RESPONSE_CANNOT_CLASSIFY,
        WHY.LEGACY_INITIALIZE_REQUIRED,
    ),
    KIND.MALFORMED: (
        closed(WHY.MALFORMED_OPENING_FRAME),
        WHY.MALFORMED_OPENING_FRAME,
        WHY.LEGACY_INITIALIZE_REQUIRED,
    ),
}


@pytest.mark.parametrize("implicit", [True, False], ids=["implicit legacy", "explicit legacy"])
@pytest.mark.parametrize("policy", list(EraPolicy))
@pytest.mark.parametrize("kind", list(OpeningKind))
def test_cell(kind: OpeningKind, policy: EraPolicy, implicit: bool) -> None:
    """What becomes of the frame, and of the connection."""
    classifier = StdioEraClassifier(policy, implicit_legacy=implicit)
    column = list(EraPolicy).index(policy)
    before = (classifier.state, classifier.era)
    expected = TABLE[kind][column]
    if isinstance(expected, tuple):
        expected = expected[0 if implicit else 1]
    if isinstance(expected, EraRejection):
        era = classifier.era
        assert era is not None
        expected = RejectedUnderSelectedEra(era, expected)

    assert classifier.classify(OPENINGS[kind]) == expected

    match expected:
        case Selected(era=era):
            assert (classifier.state, classifier.era) == (EraState.SELECTED, era)
        case RejectedAndClosed():
            assert (classifier.state, classifier.era) == (EraState.TERMINAL_WITHOUT_ERA, None)
        case _:
            assert (classifier.state, classifier.era) == before


def test_terminal_state_stays_terminal() -> None:
    """Nothing that comes later is an opening."""
    classifier = StdioEraClassifier()
    classifier.classify(OPENINGS[KIND.NOTIFICATION])
    for line in OPENINGS.values():
        assert classifier.classify(line) == AlreadyTerminal()
    assert (classifier.state, classifier.era) == (EraState.TERMINAL_WITHOUT_ERA, None)


@pytest.mark.parametrize("first", [KIND.MODERN_REQUEST, KIND.LEGACY_INITIALIZE])
def test_chosen_era_stays_chosen(first: OpeningKind) -> None:
    """Whatever is refused under it."""
    classifier = StdioEraClassifier()
    classifier.classify(OPENINGS[first])
    era = classifier.era
    for line in OPENINGS.values():
        classifier.classify(line)
        assert (classifier.state, classifier.era) == (EraState.SELECTED, era)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "1900-01-01", "", "2026-07-28 "])
def test_other_version_in_a_modern_request_locks_the_era_all_the_same(version: str) -> None:
    """The metadata is modern; that the version cannot be served is another matter."""
    line = request("server/discover", modern(version))
    for policy in (EraPolicy.AUTO, EraPolicy.MODERN_ONLY):
        classifier = StdioEraClassifier(policy)
        assert classifier.classify(line) == Selected(MODERN, version)
        assert classifier.era is MODERN
        assert classifier.classify(OPENINGS[KIND.LEGACY_INITIALIZE]) == RejectedUnderSelectedEra(
            MODERN, WHY.CROSS_ERA_TRAFFIC
        )


@pytest.mark.parametrize(
    "meta",
    [
        {},
        [],
        5,
        modern(None),
        modern(capabilities=None),
        modern(capabilities=[]),
        modern(20260728),
    ],
    ids=json.dumps,
)
def test_incomplete_metadata_is_none(meta: Any) -> None:
    """Half of it marks no era."""
    assert opening_of(request("tools/list", meta)) == Opening(KIND.REQUEST_WITHOUT_MODERN_METADATA)
    assert opening_of(request("initialize", meta)) == Opening(KIND.LEGACY_INITIALIZE)


def test_client_info_is_not_needed() -> None:
    """It should be there, and need not."""
    for info in (None, {"name": "client", "version": "0"}):
        line = request("tools/list", modern(info=info))
        assert opening_of(line) == Opening(KIND.MODERN_REQUEST, "2026-07-28")


def test_parsed_frame_is_read_like_its_line() -> None:
    for kind, line in OPENINGS.items():
        assert opening_of(parse(line)).kind is opening_of(line).kind is kind


def test_line_may_be_text_or_any_bytes() -> None:
    """As for the codec."""
    for kind, line in OPENINGS.items():
        for same in (line.decode(), bytearray(line), memoryview(line)):
            assert opening_of(same).kind is kind
    assert StdioEraClassifier().classify(OPENINGS[KIND.LEGACY_INITIALIZE].decode()) == Selected(LEGACY)


@pytest.mark.parametrize("line", [b"[]", b"[" + OPENINGS[KIND.MODERN_REQUEST] + b"]", b"", b'{"jsonrpc":"2.0","id":1}'])
def test_batches_and_rubbish_are_malformed(line: bytes) -> None:
    assert opening_of(line).kind is KIND.MALFORMED


def test_era_has_exactly_one_version() -> None:
    """No alias, no comparison of dates: the revisions of 2025 are of neither era."""
    assert ProtocolEra.of_version("2024-11-05") is LEGACY
    assert ProtocolEra.of_version("2026-07-28") is MODERN
    for version in ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-29", ""):
        assert ProtocolEra.of_version(version) is None
