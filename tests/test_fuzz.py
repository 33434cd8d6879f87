"""Damaged and hostile lines: none raises out of the loop, leaves anybody waiting, or is answered when it must not be.

Every line is followed by a well-formed request, so that each answer belongs to one line. `ACPRT_FUZZ_LINES` sets how
many lines the default run takes; `make soak` takes 320,000, two thirds of them with damaged bytes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import acprt
from acprt.limits import Limits
from tests.fuzzing import SEEDS, Answers, Verdict, judge, mutated_lines
from tests.rawpeer import RawPeer
from tests.runtime.golden import endpoint

LINES = int(os.environ.get("ACPRT_FUZZ_LINES", "6000"))
SOAK_LINES = 320_000
PER_CONNECTION = 2_000
PENDING = 12
ROOMY, TIGHT = Limits().line_bytes, 80  # most seeds are longer, no marker is


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Each bad line is logged, which is not what is tested here."""
    caplog.set_level(logging.CRITICAL + 1, "acprt")


def marker(number: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":"marker %d","method":"echo"}' % number


def in_writes(data: bytes, seed: int) -> list[bytes]:
    """`data` cut as a pipe might: anywhere, mostly into large pieces."""
    choose = random.Random(seed)
    pieces = []
    at = 0
    while at < len(data):
        size = choose.choice((1, 7, 300, 4_096, 65_536))
        pieces.append(data[at : at + size])
        at += size
    return pieces


async def answers_to(peer: RawPeer, lines: list[bytes], seed: int, limit: int) -> list[list[Any]]:
    """What was written for each of the lines, in order.

    One kind of answer does not keep that order: a cancel overtakes the requests in front of it that still wait for
    their turn (DEC-10). Its answer is given back to the first line of that id that has none.
    """
    data = b"".join(line + b"\n" + marker(number) + b"\n" for number, line in enumerate(lines))
    for piece in in_writes(data, seed):
        peer.send_raw(piece)
        await asyncio.sleep(0)
    answers: list[list[Any]] = [[] for _ in lines]
    cancelled: list[Any] = []
    number = 0
    while number < len(lines):
        reply = await peer.receive(20)
        if isinstance(reply, dict) and reply.get("id") == f"marker {number}":
            number += 1
        elif isinstance(reply, list):
            answers[number].append(reply)
        elif reply.get("error", {}).get("code") == acprt.ErrorCode.REQUEST_CANCELLED:
            cancelled.append(reply)
        elif "method" not in reply:  # what handlers send of their own is no answer
            answers[number].append(reply)
    for reply in cancelled:
        unanswered = [number for number in range(len(lines)) if not answers[number]]
        wanted = (type(reply["id"]), reply["id"])
        places = [number for number in unanswered if judge(lines[number], limit).request == wanted]
        places += [number for number in unanswered if judge(lines[number], limit).serving is Answers.OPEN]
        assert places, (reply, "was asked by no line")
        answers[places[0]].append(reply)
    return answers


def check(line: bytes, wanted: Answers, slots: int | None, answers: list[Any]) -> None:
    """One answer at most, none where none may be, one where one is owed; an array exactly for an array."""
    allowed = {Answers.OWED: (1,), Answers.NONE: (0,), Answers.OPEN: (0, 1)}[wanted]
    assert len(answers) in allowed, (line, wanted, answers)
    for answer in answers:
        if slots is not None:
            assert isinstance(answer, list), (line, answer)
            assert len(answer) == slots, (line, answer)
        for one in answer if isinstance(answer, list) else [answer]:
            assert one["jsonrpc"] == "2.0"
            assert ("result" in one) != ("error" in one), (line, one)


async def torment_server(lines: list[bytes], seed: int, limit: int = ROOMY) -> Counter[str]:
    """A served endpoint takes all of them, answers what it owes, and ends cleanly."""
    seen: Counter[str] = Counter()
    near, far = acprt.memory_pair()
    serving = asyncio.ensure_future(endpoint(Limits(line_bytes=limit)).serve(far))
    peer = RawPeer(near)
    for line, answers in zip(lines, await answers_to(peer, lines, seed, limit), strict=True):
        verdict = judge(line, limit)
        check(line, verdict.serving, verdict.slots, answers)
        seen[verdict.serving.value] += 1
        seen["answers"] += len(answers)
    peer.close_write()
    await asyncio.wait_for(serving, 10)
    await peer.aclose()
    assert peer.unread() == []
    return seen


async def torment_spawner(lines: list[bytes], seed: int, limit: int = ROOMY) -> Counter[str]:
    """A client with requests pending takes all of them, answers only calls, and leaves nobody waiting."""
    seen: Counter[str] = Counter()
    near, far = acprt.memory_pair(left_is_parent=True)
    peer = RawPeer(far)
    async with endpoint(Limits(line_bytes=limit)).connect(near) as cx:
        waiting = [asyncio.ensure_future(cx.send_request("ask", [n]).block_task()) for n in range(PENDING)]
        for line, answers in zip(lines, await answers_to(peer, lines, seed, limit), strict=True):
            wanted = judge(line, limit).spawner
            check(line, wanted, None, answers)
            seen[wanted.value] += 1
            seen["answers"] += len(answers)
        peer.close_write()
        done, pending = await asyncio.wait(waiting, timeout=10)
        assert not pending
        for task in done:
            error = task.exception()
            assert error is None or isinstance(error, acprt.RpcError)
            seen["replies" if error is None else "failures"] += 1
    await peer.aclose()
    return seen


async def torment(first: int, count: int) -> Counter[str]:
    """`count` mutated lines, half of them to servers and half to spawners; a quarter meets a limit for lines."""
    seen: Counter[str] = Counter()
    for number, start in enumerate(range(0, count, PER_CONNECTION)):
        seed = first + number
        lines = list(mutated_lines(seed, min(PER_CONNECTION, count - start)))
        limit = TIGHT if number % 8 > 5 else ROOMY
        seen += await (torment_server if number % 2 == 0 else torment_spawner)(lines, seed, limit)
        seen["lines"] += len(lines)
    return seen


ANY_LINE = st.binary(max_size=80).map(lambda data: data.replace(b"\n", b""))
DAMAGED_LINE = st.integers(0, 2**32).map(lambda seed: next(mutated_lines(seed, 1)))
JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "code", "message"]),
            inner | st.sampled_from(["2.0", "echo", "say"]),
            max_size=6,
        )
    ),
    max_leaves=12,
).map(msgspec.json.encode)
SOME_LINES = st.lists(ANY_LINE | DAMAGED_LINE | JSON_VALUE | st.sampled_from(SEEDS), max_size=12)
FUZZING = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
SOME, VERY_MANY = settings(FUZZING, max_examples=15), settings(FUZZING, max_examples=120)

any_lines = given(lines=SOME_LINES, seed=st.integers(0, 1_000), limit=st.sampled_from([ROOMY, TIGHT]))
any_bytes = given(data=st.lists(st.binary(max_size=60), max_size=8), spawned=st.booleans())


async def torment_connection(data: list[bytes], spawned: bool) -> None:
    """A client takes pieces of no line at all, and then EOF; its waiter ends."""
    near, far = acprt.memory_pair(left_is_parent=spawned)
    peer = RawPeer(far)
    async with endpoint().connect(near) as cx:
        sent = cx.send_request("ask")
        waiting = asyncio.ensure_future(sent.block_task())
        for piece in data:
            peer.send_raw(piece)
            await asyncio.sleep(0)
        peer.close_write()
        await asyncio.wait_for(cx.incoming_closed(), 10)
        await asyncio.wait([waiting], timeout=10)
        assert waiting.done()
        waiting.exception()
    await peer.aclose()


class TestAnyLines:
    """Whatever stands on the lines."""

    @any_lines
    @SOME
    def test_a_server_survives_any_lines(self, run, lines, seed, limit):
        """FR-20, FR-22, BA-03: and answers each exactly as often as it owes."""
        run(torment_server(lines, seed, limit))

    @any_lines
    @SOME
    def test_a_client_survives_any_lines(self, run, lines, seed, limit):
        """FR-22, FR-27, DEC-23: all its waiters end, with a reply or with a reason."""
        run(torment_spawner(lines, seed, limit))

    @any_bytes
    @SOME
    def test_a_connection_survives_any_bytes_and_any_end(self, run, data, spawned):
        """FR-03, FR-04: no line at all need be whole; EOF comes wherever it comes."""
        run(torment_connection(data, spawned))


@pytest.mark.slow
@pytest.mark.timeout(280)
class TestVeryManyLines:
    """The same, eight times as often."""

    @any_lines
    @VERY_MANY
    def test_a_server_survives_any_lines(self, run, lines, seed, limit):
        """FR-20, FR-22, BA-03."""
        run(torment_server(lines, seed, limit))

    @any_lines
    @VERY_MANY
    def test_a_client_survives_any_lines(self, run, lines, seed, limit):
        """FR-22, FR-27, DEC-23."""
        run(torment_spawner(lines, seed, limit))

    @any_bytes
    @VERY_MANY
    def test_a_connection_survives_any_bytes_and_any_end(self, run, data, spawned):
        """FR-03, FR-04."""
        run(torment_connection(data, spawned))


class TestMutatedLines:
    """Valid messages with damaged bytes or other members; the same ones in every run."""

    def test_some_mutated_lines(self, run):
        """FR-20, FR-22, FR-27, CH-02."""
        seen = run(torment(1, LINES), timeout=50)
        assert seen["lines"] == LINES

    def test_the_verdicts_are_of_every_kind(self, run):
        """The invariants are about something: calls, replies and rubbish are all among the lines."""
        seen = run(torment(1_000_000, 2 * PER_CONNECTION), timeout=50)
        for kind in (*Answers, "answers", "failures"):
            assert seen[kind if isinstance(kind, str) else kind.value] > PENDING // 2, kind

    @pytest.mark.slow
    @pytest.mark.timeout(280)
    def test_very_many_mutated_lines(self, run):
        """FR-20, FR-22, FR-27, CH-02: over 200,000 with damaged bytes, over 100,000 with other members."""
        seen = run(torment(2_000_000, SOAK_LINES), timeout=270)
        print(dict(seen))
        assert seen["lines"] == SOAK_LINES


class TestTheJudge:
    """The oracle of this module, which knows nothing of the runtime, says what the catalogue says."""

    @pytest.mark.parametrize(
        ("line", "verdict"),
        [
            (b"", Verdict(Answers.NONE, Answers.NONE)),
            (b'{"jsonrpc":"2.0","id":1,"method":"m"}', Verdict(Answers.OWED, Answers.OWED, request=(int, 1))),
            (
                b'{"jsonrpc":"2.0","id":null,"method":"m"}',
                Verdict(Answers.OWED, Answers.OWED, request=(type(None), None)),
            ),
            (b'{"jsonrpc":"2.0","method":"m"}', Verdict(Answers.NONE, Answers.NONE)),
            (b'{"jsonrpc":"2.0","method":"m","params":1}', Verdict(Answers.OWED, Answers.NONE)),
            (b'{"id":1,"method":"m"}', Verdict(Answers.OWED, Answers.OWED)),
            (b'{"jsonrpc":"2.0","id":1,"result":1,"error":1}', Verdict(Answers.NONE, Answers.NONE)),
            (b'{"jsonrpc":"2.0","id":1}', Verdict(Answers.NONE, Answers.NONE)),
            (b"7", Verdict(Answers.OWED, Answers.NONE)),
            (b"[]", Verdict(Answers.OWED, Answers.NONE)),
            (b'[1,{"result":1}]', Verdict(Answers.OWED, Answers.NONE, 1)),
            (b'{"result":', Verdict(Answers.OPEN, Answers.OPEN)),
        ],
    )
    def test_what_a_line_asks_for(self, line, verdict):
        """FR-20 … FR-23, BA-04, BA-07, DEC-22, DEC-23."""
        assert judge(line) == verdict
