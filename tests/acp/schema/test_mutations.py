"""Whatever stands in a payload, both attempts agree on it, and what was read is written so that it reads the same."""

from __future__ import annotations

import copy
import random
from typing import Any

import msgspec
import pytest

from acprt.acp import v1, v2
from acprt.acp.schema.decoding import decode
from acprt.wire.payloads import decoder_for
from tests.acp.schema.samples import sample
from tests.interop.payloads import places_of

ODD_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    2**70,
    "",
    "text",
    "_x",
    [],
    [1],
    [[]],
    [None],
    {},
    {"type": "_x"},
    {"type": []},
    {"sessionUpdate": 5},
    {"state": {}},
]
ROUNDS = 20  # per class


def mutated(payload: Any, chance: random.Random) -> Any:
    """A copy with one to three odd values in it."""
    payload = copy.deepcopy(payload)
    for _ in range(chance.randint(1, 3)):
        places = list(places_of(payload))
        if places:
            holder, key = chance.choice(places)
            holder[key] = copy.deepcopy(chance.choice(ODD_VALUES))
    return payload


@pytest.mark.parametrize("schema", [v1, v2])
def test_mutated_payloads_are_refused_or_read_once_and_for_all(schema: Any) -> None:
    chance = random.Random(3)
    classes = [getattr(schema, name) for name in schema.__all__ if not name.startswith("Ext")]
    read = 0
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, msgspec.Struct)):
            continue
        decoder = decoder_for(cls)
        assert decoder.decode_again is not None
        for _ in range(ROUNDS):
            text = msgspec.json.encode(mutated(sample(cls, chance.random() < 0.7), chance))
            try:
                value = decode(cls, text)
            except msgspec.ValidationError:
                continue
            read += 1
            assert decode(cls, msgspec.json.encode(value)) == value, (cls, text)
            assert decoder.decode_again(text) == value, (cls, text)
    assert read > 1_000
