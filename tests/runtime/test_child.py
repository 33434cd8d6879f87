"""A connection to an agent that it spawned: how the child's end shows in every error, and what ends with it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import pytest

import acprt
from tests.transports.children import PATIENT, QUICK

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="AgentProcess needs POSIX")

LAST_WORDS = "import sys; print('last words', file=sys.stderr, flush=True); "
AWAITS_LINE = "sys.stdin.readline(); "
DIES_BY_SIGNAL = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"

ENDS = {"sys.exit(0)": 0, "sys.exit(3)": 3, DIES_BY_SIGNAL: -signal.SIGKILL}
"""Last statements of a child, and the exit status that they lead to."""


def agent(script: str, *, limits: acprt.Limits = PATIENT) -> acprt.AgentProcess:
    """A child that runs a line of Python."""
    return acprt.AgentProcess(sys.executable, "-I", "-S", "-c", script, limits=limits)


async def failure_of(sent: acprt.SentRequest[Any]) -> acprt.RpcError:
    """The error that a request fails with."""
    with pytest.raises(acprt.RpcError) as caught:
        await sent.block_task(timeout=15)
    return caught.value


@pytest.mark.parametrize(("end", "status"), ENDS.items())
class TestExit:
    """Exit of the child is end of input, whatever its status (DEC-27)."""

    def test_pending_requests_carry_status_and_stderr(self, run, end, status):
        """AG-30, AG-36, PY-75: deterministic; the text shows both."""

        async def main():
            async with acprt.Endpoint("near").connect(agent(LAST_WORDS + AWAITS_LINE + end)) as cx:
                first, second = cx.send_request("first"), cx.send_request("second")
                for method, sent in (("first", first), ("second", second)):
                    error = await failure_of(sent)
                    assert acprt.is_incoming_transport_closed(error)
                    assert error.data == {
                        "reason": "incoming_transport_closed",
                        "method": method,
                        "exit_status": status,
                        "stderr_tail": "last words\n",
                    }
                    assert f'"exit_status":{status}' in str(error)
                    assert "last words" in str(error)

        run(main())

    def test_later_requests_carry_them_too(self, run, end, status):
        """EO-05: also after the close."""

        async def main():
            async with acprt.Endpoint("near").connect(agent(LAST_WORDS + end)) as cx:
                await asyncio.wait_for(cx.incoming_closed(), 15)
                error = await failure_of(cx.send_request("m"))
                assert (error.data["exit_status"], error.data["stderr_tail"]) == (status, "last words\n")
            error = await failure_of(cx.send_request("m"))
            assert error.data["exit_status"] == status

        run(main())

    def test_close_callbacks_run_and_the_block_goes_on(self, run, end, status):
        """AG-16, DEC-27: whatever the status; the block decides what it means."""
        endpoint = acprt.Endpoint("near")
        seen: list[Any] = []

        @endpoint.on_close
        async def bye(cx: acprt.Connection) -> None:
            child = cx.status().child
            assert child is not None
            seen.append(child.exit_status)

        async def main():
            async with endpoint.connect(agent(LAST_WORDS + end)) as cx:
                await asyncio.wait_for(cx.incoming_closed(), 15)
                assert seen == [status]
                cx.send_notification("to nobody")
                await asyncio.sleep(0)
                assert cx.status().state == "input_closed"

        run(main())

    def test_serving_side_of_a_child_ends_cleanly(self, run, end, status):
        """AG-14, AG-15 (DEC-27): the status is a fact of the errors, not a failure of `serve`."""

        async def main():
            await asyncio.wait_for(acprt.Endpoint("near").serve(agent(LAST_WORDS + end)), 15)

        run(main())

    def test_status_tells_it(self, run, end, status):
        """`child {pid, exit_status}`."""

        async def main():
            async with acprt.Endpoint("near").connect(agent(AWAITS_LINE.join(("import sys; ", end)))) as cx:
                child = cx.status().child
                assert child is not None
                assert child.pid > 0
                assert child.exit_status is None
                assert "running" in str(cx.status())
                cx.send_notification("go")
                await asyncio.wait_for(cx.incoming_closed(), 15)
                child = cx.status().child
                assert child is not None
                assert child.exit_status == status
                assert f"exit status {status}" in str(cx.status())

        run(main())


class TestLocalEnd:
    """The connection ends first; the child with it, and its status is known when the waiters are told."""

    @pytest.mark.parametrize("end", ["closed", "failed"])
    def test_waiters_carry_status_and_stderr(self, run, end):
        """Also those that a close on this side fails, after the child is reaped."""
        script = LAST_WORDS + 'print(\'{"jsonrpc":"2.0","method":"up"}\', flush=True); sys.stdin.read(); sys.exit(5)'
        endpoint = acprt.Endpoint("near")
        up = asyncio.Event()

        @endpoint.on_receive_notification("up")
        async def on_up(_params: Any) -> None:
            up.set()

        async def main():
            cx = await endpoint.open(agent(script))
            await asyncio.wait_for(up.wait(), 15)
            waiter = asyncio.create_task(failure_of(cx.send_request("m")))
            got: list[acprt.Result[Any]] = []

            async def callback(outcome: acprt.Result[Any]) -> None:
                got.append(outcome)

            cx.send_request("n").on_receiving_result(callback)
            await asyncio.sleep(0)
            if end == "failed":
                cx.fail(ValueError("of this side"))
            await asyncio.wait_for(cx.aclose(), 15)
            error = await waiter
            assert error.data["exit_status"] == 5
            assert error.data["stderr_tail"] == "last words\n"
            assert error.data["reason"] == ("connection_closed" if end == "closed" else "connection_failed")
            assert isinstance(got[0], acprt.Err)
            assert got[0].error.data["exit_status"] == 5

        run(main())

    def test_child_that_ignores_eof_is_terminated_and_the_waiters_are_told(self, run):
        """AG-17 (PY-72): EOF, SIGTERM, SIGKILL, each bounded; the status is the signal."""
        script = "import signal; signal.pause()"

        async def main():
            cx = await acprt.Endpoint("near").open(agent(script, limits=QUICK))
            waiter = asyncio.create_task(failure_of(cx.send_request("m")))
            await asyncio.sleep(0)
            await asyncio.wait_for(cx.aclose(), 15)
            assert (await waiter).data["exit_status"] == -signal.SIGTERM

        run(main())

    def test_child_that_never_reads_does_not_hold_up_the_close(self, run):
        """AG-18: with megabytes pending, and under a timeout of the caller."""
        script = "import signal; signal.pause()"
        limits = acprt.Limits(exit_grace_seconds=0.1, term_grace_seconds=0.1)

        async def main():
            async with acprt.Endpoint("near", limits=limits).connect(agent(script, limits=limits)) as cx:
                sent = cx.send_request("m", {"big": "x" * 3_000_000})
            error = await failure_of(sent)
            assert error.data["reason"] == "connection_closed"
            assert error.data["exit_status"] is not None

        run(main())

    def test_child_that_closes_its_output_with_a_write_pending(self, run):
        """AG-18 (DEC-27): that is end of input; the block may go on, and leaving it is bounded."""
        script = "import os, signal; os.close(1); signal.pause()"
        limits = acprt.Limits(exit_grace_seconds=0.1, term_grace_seconds=0.1)

        async def main():
            async with acprt.Endpoint("near", limits=limits).connect(agent(script, limits=limits)) as cx:
                sent = cx.send_request("m", {"big": "x" * 3_000_000})
                error = await failure_of(sent)
                assert acprt.is_incoming_transport_closed(error)
                assert error.data["exit_status"] is None

        run(main())

    def test_cancelled_block_leaves_no_child(self, run):
        """AG-13, PY-70: the cancellation passes on once the child is dead."""

        async def main():
            pids: list[int] = []

            async def work(entered: asyncio.Event) -> None:
                async with acprt.Endpoint("near").connect(agent("import signal; signal.pause()", limits=QUICK)) as cx:
                    child = cx.status().child
                    assert child is not None
                    pids.append(child.pid)
                    entered.set()
                    await asyncio.Event().wait()

            entered = asyncio.Event()
            task = asyncio.create_task(work(entered))
            await asyncio.wait_for(entered.wait(), 15)
            task.cancel()
            await asyncio.wait([task], timeout=15)
            assert task.cancelled()
            with pytest.raises(ProcessLookupError):
                os.kill(pids[0], 0)

        run(main())

    def test_failure_of_the_block_is_what_comes_out(self, run):
        """AG-21, LC-11: ending the child changes nothing about the error."""

        async def work() -> None:
            async with acprt.Endpoint("near").connect(agent("import sys; sys.stdin.read(); sys.exit(9)")):
                raise KeyError("mine")

        async def main():
            with pytest.raises(KeyError, match="mine"):
                await work()

        run(main())


class TestStart:
    def test_missing_program_raises_from_connect(self, run):
        """AG-11: nothing is left, the block does not run."""

        async def work() -> None:
            async with acprt.Endpoint("near").connect(acprt.AgentProcess("no-such-program-anywhere")):
                raise AssertionError("the block ran")

        async def main():
            with pytest.raises(acprt.RpcError, match="no-such-program-anywhere") as caught:
                await work()
            assert caught.value.data["reason"] == "spawn_failed"

        run(main())

    def test_timeout_shows_the_end_of_stderr(self, run):
        """Its last words alone, with secrets masked also where the text is cut."""
        code = f"import sys; print('SECRET=' + 'hunter2' * 100 + ' warming up', file=sys.stderr); {AWAITS_LINE * 2}"
        child = agent(code)

        async def main():
            loop, written = asyncio.get_running_loop(), asyncio.Event()
            child.on_stderr = lambda _line: loop.call_soon_threadsafe(written.set)
            async with acprt.Endpoint("near").connect(child) as cx:
                sent = cx.send_request("m")
                await written.wait()
                assert sent.describe_silence().endswith(" is running; its stderr ends: SECRET=*** warming up")
                sent.detach()

        run(main())

    def test_lines_are_traced_in_both_directions(self, run):
        """AG-40: what goes to the agent and what comes from it, for any transport."""
        endpoint = acprt.Endpoint("near")
        seen: list[tuple[str, bytes]] = []
        endpoint.trace(lambda event: seen.append((event.direction, event.line)))
        answer = '{"jsonrpc":"2.0","id":1,"result":null}'

        async def main():
            async with endpoint.connect(
                agent(f"import sys; sys.stdin.readline(); print({answer!r}, flush=True)")
            ) as cx:
                await cx.send_request("m").block_task(timeout=15)
            assert seen == [("out", b'{"jsonrpc":"2.0","id":1,"method":"m"}'), ("in", answer.encode())]

        run(main())
