"""acprt's client with agents that misbehave as real ones do, one oddity a test: nothing else may be lost by it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import acprt
from acprt.limits import DEFAULT_LIMITS
from tests.interop.peers.odd_agent import BIG_LINE, SEPARATORS, UUID
from tests.transports.children import gone, is_running

SECONDS = 15.0  # for one answer of a child on a busy machine
QUICK = acprt.Limits(exit_grace_seconds=0.1, term_grace_seconds=0.1)
PATIENT = acprt.Limits(exit_grace_seconds=60, term_grace_seconds=60)
ODD_AGENT = Path(__file__).parent / "peers" / "odd_agent.py"


class Client:
    """An endpoint that keeps what it is told, in order, and answers `client/ask` with the `n` it is asked."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.endpoint = acprt.Endpoint("client")
        self.endpoint.on_receive_notification("session/update")(self.hear)
        self.endpoint.method("client/ask")(self.answer)

    async def hear(self, params: Any) -> None:
        self.heard.append(params)

    async def answer(self, params: Any) -> Any:
        return params["n"]

    @asynccontextmanager
    async def connected_to(self, oddity: str, limits: acprt.Limits = PATIENT) -> AsyncIterator[acprt.Connection]:
        agent = acprt.AgentProcess(sys.executable, "-I", "-S", ODD_AGENT, oddity, limits=limits)
        async with self.endpoint.connect(agent) as cx:
            yield cx


async def ask(cx: acprt.Connection, method: str = "initialize") -> Any:
    return await cx.send_request(method, {}).block_task(timeout=SECONDS)


def exit_status(cx: acprt.Connection) -> int | None:
    child = cx.status().child
    assert child is not None
    return child.exit_status


class TestAnswers:
    @pytest.mark.parametrize("oddity", ["error_without_id", "error_with_null_id"])
    def test_error_that_answers_nothing_fails_nothing(self, run, oddity) -> None:
        """Agents answer notifications and unreadable lines with errors that have no id."""

        async def main() -> None:
            async with Client().connected_to(oddity) as cx:
                sent = cx.send_request("initialize", {})
                cx.send_notification("$/unknown")
                assert await sent.block_task(timeout=SECONDS) == "answered"
                counters = cx.status().counters
                assert counters.bad_lines + counters.unmatched_responses == 1

        run(main())

    def test_id_may_come_last(self, run) -> None:
        """In requests and in answers."""

        async def main() -> None:
            async with Client().connected_to("id_last") as cx:
                assert await ask(cx) == 1

        run(main())

    def test_ids_of_the_two_sides_do_not_mix(self, run) -> None:
        """The agent uses our pending id, its text, 0, a UUID, and 0 again; each comes back as it was."""

        async def main() -> None:
            async with Client().connected_to("same_ids") as cx:
                sent = cx.send_request("initialize", {})
                assert await sent.block_task(timeout=SECONDS) == [
                    [sent.id, 0],
                    [str(sent.id), 1],
                    [0, 2],
                    [UUID, 3],
                    [0, 4],
                ]

        run(main())

    def test_any_code_and_data_is_an_error(self, run) -> None:
        """Codes far outside the range of JSON-RPC, data of every kind."""

        async def main() -> None:
            seen = []
            async with Client().connected_to("odd_errors") as cx:
                for _ in range(5):
                    with pytest.raises(acprt.RpcError) as caught:
                        await ask(cx)
                    seen.append((caught.value.code, caught.value.data))
            assert seen == [(400, None), (1001, {"exitCode": 1}), (-32603, "text"), (2**40, [1, None]), (0, 0)]

        run(main())

    def test_request_that_is_never_answered_costs_only_itself(self, run) -> None:
        """It times out, is cancelled, and its answer, when it comes after all, is swallowed."""

        async def main() -> None:
            async with Client().connected_to("never_answers") as cx:
                with pytest.raises(TimeoutError):
                    await cx.send_request("session/prompt", {}).block_task(timeout=0.05)
                assert await ask(cx) == "next"
                assert await ask(cx) == "after"
                assert cx.status().counters.late_responses == 1

        run(main())

    def test_answer_of_another_dialect_fails_its_request_by_name(self, run) -> None:
        """No `jsonrpc` member; the waiter is told, the next answer counts, members nobody knows do no harm."""

        async def main() -> None:
            async with Client().connected_to("no_version") as cx:
                with pytest.raises(acprt.RpcError, match="jsonrpc") as caught:
                    await ask(cx)
                assert caught.value.data["reason"] == "malformed_response"
                assert await ask(cx) == "answered"

        run(main())


class TestUpdates:
    def test_half_a_megabyte_in_one_line(self, run) -> None:
        """Asyncio's own limit is 64 KiB."""

        async def main() -> None:
            client = Client()
            async with client.connected_to("big_line") as cx:
                assert await ask(cx) == "answered"
            (update,) = client.heard
            line = b'{"jsonrpc":"2.0","method":"session/update","params":{"text":""}}'
            assert len(update["text"]) == BIG_LINE - len(line)

        run(main())

    def test_only_a_line_feed_ends_a_line(self, run) -> None:
        """U+2028, U+2029 and U+0085 come unescaped."""

        async def main() -> None:
            client = Client()
            async with client.connected_to("separators") as cx:
                assert await ask(cx) == SEPARATORS
            assert client.heard == [{"text": SEPARATORS}]

        run(main())

    def test_update_before_the_answer_that_names_its_session(self, run) -> None:
        """Delivered before the answer and after it, as on the wire; none is dropped."""

        async def main() -> None:
            client = Client()
            async with client.connected_to("update_before_the_answer") as cx:
                answered = asyncio.Event()

                async def keep(result: acprt.Result[Any]) -> None:
                    client.heard.append(result.unwrap())
                    answered.set()

                cx.send_request("session/new", {}).on_receiving_result(keep)
                await answered.wait()
                assert await ask(cx) == "next"
            assert client.heard == [{"sessionId": "s-1", "n": 1}, {"sessionId": "s-1"}, {"sessionId": "s-1", "n": 2}]

        run(main())

    def test_unknown_request_is_refused_at_once(self, run) -> None:
        """A vendor's method without the prefix; the agent waits for the answer."""

        async def main() -> None:
            async with Client().connected_to("vendor_request") as cx:
                assert await ask(cx) == acprt.ErrorCode.METHOD_NOT_FOUND

        run(main())


class TestLines:
    def test_no_line_ends_the_conversation(self, run) -> None:
        """What is no message is counted, never answered; the answer behind it, with a BOM and a CR, arrives."""

        async def main() -> None:
            async with Client().connected_to("bad_lines") as cx:
                assert await ask(cx) == "answered"
                assert cx.status().counters.bad_lines >= 12
                assert await ask(cx, "how_many_came_back") == 0

        run(main())

    def test_flood_of_stderr_does_not_stop_the_agent(self, run) -> None:
        """Two megabytes, with CR and invalid UTF-8; what is kept of it is bounded and ends with its end."""

        async def main() -> None:
            async with Client().connected_to("stderr_flood") as cx:
                assert await ask(cx) == "answered"
                with pytest.raises(acprt.RpcError) as caught:
                    await ask(cx)
            data = caught.value.data
            assert data["exit_status"] == 7
            assert data["stderr_tail"].endswith("the end of stderr\n")
            assert len(data["stderr_tail"].encode()) <= DEFAULT_LIMITS.stderr_tail_bytes

        run(main())


class TestEnds:
    def test_agent_that_ignores_eof_is_ended(self, run) -> None:
        """It goes on sending; SIGTERM ends it after the first grace."""

        async def main() -> None:
            async with Client().connected_to("ignores_eof", acprt.Limits(exit_grace_seconds=0.1)) as cx:
                pid = await ask(cx)
                started = time.monotonic()
            assert time.monotonic() - started < SECONDS
            assert not is_running(pid)
            assert exit_status(cx) == -15

        run(main())

    def test_agent_that_ignores_sigterm_is_killed(self, run) -> None:
        """The last step is not optional."""

        async def main() -> None:
            async with Client().connected_to("ignores_sigterm", QUICK) as cx:
                pid = await ask(cx)
            assert not is_running(pid)
            assert exit_status(cx) == -9

        run(main())

    def test_exit_of_the_child_is_the_end_although_an_orphan_holds_its_pipes(self, run) -> None:
        """What waits fails at once and says why, and the rest of the group goes with it."""

        async def main() -> None:
            async with Client().connected_to("leaves_an_orphan") as cx:
                orphan = await ask(cx)
                with pytest.raises(acprt.RpcError) as caught:
                    await ask(cx)
                assert acprt.is_incoming_transport_closed(caught.value)
                assert caught.value.data["exit_status"] == 3
            await gone(orphan)

        run(main())

    def test_orphan_that_left_the_group_is_not_waited_for(self, run) -> None:
        """It may hold the pipes for ever."""

        async def main() -> None:
            async with Client().connected_to("leaves_an_orphan_in_another_group") as cx:
                orphan = await ask(cx)
                try:
                    with pytest.raises(acprt.RpcError) as caught:
                        await ask(cx)
                    assert caught.value.data["exit_status"] == 3
                finally:
                    os.kill(orphan, 9)

        run(main())

    def test_signal_reaches_the_program_behind_a_wrapper(self, run) -> None:
        """A signal to the wrapper alone does nothing; one to its group ends the real program, then the wrapper."""

        async def main() -> None:
            limits = acprt.Limits(exit_grace_seconds=0.1, term_grace_seconds=60)
            async with Client().connected_to("wraps_without_passing_signals_on", limits) as cx:
                real = await ask(cx)
            assert not is_running(real)

        run(main())

    def test_death_by_a_signal_is_told_with_the_last_words(self, run) -> None:
        """Nobody asked it to end, so the request that waits learns how it did."""

        async def main() -> None:
            async with Client().connected_to("dies_of_a_signal") as cx:
                with pytest.raises(acprt.RpcError) as caught:
                    await ask(cx)
            assert caught.value.data["exit_status"] == -9
            assert "terminate called after throwing" in str(caught.value)

        run(main())
