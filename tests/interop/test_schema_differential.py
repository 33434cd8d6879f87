"""The generated classes judge payloads as the validators of the npm package `@agentclientprotocol/sdk` do.

Both judge the same payloads, made from the annotations of the classes and then broken in up to three places. They must
accept and refuse the same ones, and make the same value of one that both accept. Where they may differ is listed in
`DIFFERENCES`, each with its reason; any other difference fails.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import acprt
from acprt.acp.schema import v1, v2
from acprt.wire.payloads import decode_params, decoder_for
from tests.interop.payloads import FORMATS, UNKNOWN_TAGS, Payloads, reachable_from

pytestmark = [pytest.mark.node, pytest.mark.timeout(300)]

VALIDATOR = Path(__file__).parent / "peers" / "schema_validator.mjs"
SCHEMAS = {1: v1, 2: v2}
CASES = 12_000  # for each version
AGREEMENT = 0.999
DEFAULTS: tuple[Any, ...] = (None, False, [], {})
NAMED_DEFAULTS: tuple[Any, ...] = (("type", "object"), ("kind", "other"), ("status", "pending"))


@dataclass(frozen=True)
class Case:
    """One payload, and what each side made of it."""

    message: type
    value: Any
    ours: Any
    """The payload as our class encodes it again, or the exception."""
    theirs: Any
    """What the validator says: `accepted`, then `value` or `why`."""

    @property
    def accepted(self) -> tuple[bool, bool]:
        return not isinstance(self.ours, Exception), self.theirs["accepted"]

    @property
    def agrees(self) -> bool:
        ours, theirs = self.accepted
        return ours == theirs and (not ours or self.same_value())

    def same_value(self) -> bool:
        """Members that say nothing are left out of the comparison: one side writes defaults, the other does not.

        Where null says something, it must have come through: what the validator made of the payload is the same to us.
        """
        theirs = self.theirs["value"]
        return bare(self.ours) == bare(theirs) and self.ours == ours_of(self.message, theirs)

    def __str__(self) -> str:
        theirs = self.theirs["value"] if self.theirs["accepted"] else self.theirs["why"]
        shown = [json.dumps(self.value), repr(self.ours), json.dumps(theirs)]
        return f"{self.message.__name__}: " + "\n   ".join(text[:1500] for text in shown)


def bare(value: Any) -> Any:
    """A value without the members that equal a default somewhere in the schemas."""
    if isinstance(value, dict):
        members = {name: bare(member) for name, member in value.items()}
        return {name: member for name, member in members.items() if not says_nothing(name, member)}
    if isinstance(value, list):
        return [bare(item) for item in value]
    return value


def says_nothing(name: str, member: Any) -> bool:
    is_zero = member == 0 and member is not False
    return (member in DEFAULTS and not is_zero) or (name, member) in NAMED_DEFAULTS


def messages_of(schema: ModuleType) -> list[type]:
    """The params of every method, and every result."""
    own = [each for each in vars(schema).values() if isinstance(each, type) and each.__module__ == schema.__name__]
    params = [each for each in own if issubclass(each, acprt.Request | acprt.Notification)]
    results = [acprt.reply_type_of(each) for each in params if issubclass(each, acprt.Request)]
    return sorted({*params, *results} - {Any}, key=lambda each: each.__name__)


Payload = tuple[type, Any]


def payloads_for(version: int, seed: int, count: int) -> list[Payload]:
    """So many, more of those messages that have more in them."""
    source = Payloads(seed)
    messages = messages_of(SCHEMAS[version])
    weights = {message: min(len(reachable_from(message)), 30) for message in messages}
    share = count / sum(weights.values())
    payloads = []
    for message in messages:
        number = round(weights[message] * share) + 1
        payloads += [(message, source.wrong(source.right(message), changes=n % 4)) for n in range(number)]
    return payloads


def judged(version: int, payloads: list[Payload], node_package: Path) -> list[Case]:
    """What both sides say to each payload."""
    lines = [json.dumps({"version": version, "type": message.__name__, "value": value}) for message, value in payloads]
    done = subprocess.run(
        ["node", VALIDATOR],
        input="\n".join(lines),
        env={**os.environ, "ACPRT_NODE_PEERS": str(node_package)},
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.split("\n") if line]
    return [
        Case(message, value, ours_of(message, value), theirs)
        for (message, value), theirs in zip(payloads, answers, strict=True)
    ]


def ours_of(message: type, value: Any) -> Any:
    """What a handler gets, encoded again; the error, where it gets none."""
    try:
        decoded = decode_params(decoder_for(message), msgspec.Raw(json.dumps(value).encode()))
    except acprt.RpcError as error:
        return error
    return json.loads(msgspec.json.encode(decoded))


# --- where the two may differ -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """One reason to differ, and what takes it away from a payload: what is left must be judged alike."""

    reason: str
    mend: Callable[[Any], Any]
    """A copy of any JSON value in the payload, without what the two judge differently there."""
    decided: bool = False
    """Whether it is a decision of this library; such payloads say nothing about agreement."""


def changing(name: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Applies `change` to the value of every member of that name, at any depth."""

    def mend(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: change(mend(member)) if key == name else mend(member) for key, member in value.items()}
        return [mend(item) for item in value] if isinstance(value, list) else value

    return mend


def with_formats(value: Any) -> Any:
    """With every text well formed that is a URL, a time or base64 by its name."""
    for name, right in FORMATS.items():
        value = changing(name, partial(in_place_of_text, right))(value)
    return value


def in_place_of_text(right: str, old: Any) -> Any:
    return right if isinstance(old, str) else old


def with_known_update(update: Any) -> Any:
    is_tagged = isinstance(update, dict) and isinstance(update.get("sessionUpdate"), str)
    is_known = is_tagged and any(update["sessionUpdate"] == tag for tag in UPDATE_TAGS)
    return {"sessionUpdate": "plan", "entries": []} if is_tagged and not is_known else update


def without_members(marker: Any) -> Any:
    return {} if isinstance(marker, dict) else marker


def without_shared_members(value: Any) -> Any:
    """Objects with an unknown tag, without the optional members that they share with known variants."""
    if isinstance(value, dict):
        shared = ("description", "category", "_meta") if value.get("type") in UNKNOWN_TAGS else ()
        return {key: without_shared_members(member) for key, member in value.items() if key not in shared}
    return [without_shared_members(item) for item in value] if isinstance(value, list) else value


def of_one_scope(value: Any) -> Any:
    """Elicitations and their answers of one scope only, and without what is an unknown mode's or action's own."""
    if isinstance(value, dict) and "message" in value:
        if value.get("mode") not in ("form", "url"):
            value = {key: value[key] for key in value if key in ELICITATION_MEMBERS}
        other = ("sessionId", "toolCallId") if "requestId" in value else ("requestId",)
        return {key: value[key] for key in value if key not in other}
    if isinstance(value, dict) and "action" in value and value["action"] not in ("accept", "decline", "cancel"):
        return {key: value[key] for key in value if key in ("action", "_meta")}
    return value


def of_one_state(value: Any) -> Any:
    """States without the members that belong to other states."""
    if isinstance(value, dict):
        foreign: tuple[str, ...] = ()
        if isinstance(value.get("state"), str):
            is_error = value["state"] == "idle" and value.get("stopReason") == "error"
            foreign = ("stopReason", "error", "usage") if value["state"] != "idle" else () if is_error else ("error",)
        return {key: of_one_state(member) for key, member in value.items() if key not in foreign}
    return [of_one_state(item) for item in value] if isinstance(value, list) else value


ELICITATION_MEMBERS = ("mode", "message", "sessionId", "toolCallId", "requestId", "_meta")
UPDATE_TAGS = {tag.session_update for tag in vars(v1).values() if hasattr(tag, "session_update")}
DIFFERENCES: dict[int, list[Difference]] = {
    1: [
        Difference(
            "an update that v1 does not name reaches its reader as Unknown; the validators refuse the notification",
            changing("update", with_known_update),
            decided=True,
        ),
        Difference(
            "members of the two empty capabilities are not kept; to the validators these are maps, without `_meta`",
            lambda value: changing("compaction", without_members)(changing("notices", without_members)(value)),
        ),
    ],
    2: [
        Difference(
            "an unknown variant is kept as it came; the validators mend what it shares with known ones",
            without_shared_members,
        ),
    ],
}
for differences in DIFFERENCES.values():
    differences += [
        Difference("URLs, times and base64 are text: reading one is where it is checked, not decoding", with_formats),
        Difference(
            "one class stands for all elicitations: of two scopes or an unknown mode, it keeps what it names",
            of_one_scope,
        ),
        Difference("one class stands for all states: it keeps what another state would have", of_one_state),
    ]


def all_mended(version: int) -> Callable[[Any], Any]:
    def mend(value: Any) -> Any:
        for difference in DIFFERENCES[version]:
            value = difference.mend(value)
        return value

    return mend


def explained(version: int, cases: list[Case], node_package: Path) -> dict[Difference | None, list[Case]]:
    """The cases by what explains them; those that nothing does stand under None."""
    found: dict[Difference | None, list[Case]] = {}
    several = Difference("several of these", all_mended(version))
    for difference in [*DIFFERENCES[version], several]:
        mended = [(case.message, difference.mend(case.value)) for case in cases]
        again = judged(version, mended, node_package)
        is_explained = [now.agrees and now.value != before.value for before, now in zip(cases, again, strict=True)]
        found[difference] = [case for case, is_it in zip(cases, is_explained, strict=True) if is_it]
        cases = [case for case, is_it in zip(cases, is_explained, strict=True) if not is_it]
    found[None] = cases
    return found


@pytest.mark.parametrize("version", [1, 2])
def test_payloads_are_judged_alike(version, node_package) -> None:
    """More than 99.9 % of them; and what is judged differently has one of the listed reasons."""
    cases = judged(version, payloads_for(version, seed=version, count=CASES), node_package)
    accepted = sum(case.theirs["accepted"] for case in cases)
    assert CASES / 3 < accepted < CASES * 2 / 3, "the payloads are too easy, or too broken"
    reasons = explained(version, [case for case in cases if not case.agrees], node_package)
    for difference, different in reasons.items():
        print(f"{len(different):5d} {difference.reason if difference else 'unlisted'}")
    assert not reasons[None], "\n".join(map(str, reasons[None][:5]))
    counted = [case for why, different in reasons.items() if why and not why.decided for case in different]
    assert len(counted) / len(cases) <= 1 - AGREEMENT


@pytest.mark.parametrize("version", [1, 2])
def test_every_message_has_a_validator(version, node_package) -> None:
    """So that the names mean the same on both sides."""
    cases = judged(version, [(message, {}) for message in messages_of(SCHEMAS[version])], node_package)
    assert not [case.theirs["unknown"] for case in cases if "unknown" in case.theirs]
