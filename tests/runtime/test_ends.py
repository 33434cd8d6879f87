"""How a connection ends: whatever ends it, every wait gets an answer or an error with a reason."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_client_of
from tests.runtime.scripted import SHUTTING_DOWN, ScriptedTransport, error, outcome_of, request, until_idle

Outcome = acprt.Result[Any]


FACTS = {"exit_status": 3, "stderr_tail": "last words"}


BROKEN_READ = OSError("cannot read")


BROKEN_WRITE = BrokenPipeError("nobody reads")


BROKEN_TASK = ValueError("the task broke")


class Ending:
    """A connection in an `async with` block whose end a test can bring about in each of its ways."""

    def __init__(self, cx: acprt.Connection, transport: ScriptedTransport, leave: asyncio.Event) -> None:
        self.cx = cx
        self.transport = transport
        self._leave = leave

    async def bring(self, end: str) -> None:
        """End the connection so; returns when it has ended, or when the close callbacks are done."""
        match end:
            case "eof":
                self.transport.end()
            case "read error":
                self.transport.lose(BROKEN_READ)
            case "write error":
                self.transport.lose(BROKEN_WRITE)
            case "block ended":
                self._leave.set()
            case "task failed":

                async def fail() -> None:
                    raise BROKEN_TASK

                self.cx.spawn(fail())
            case "closed":
                await self.cx.aclose()
        await asyncio.wait_for(self.cx.incoming_closed(), 5)


@asynccontextmanager
async def ending(endpoint: acprt.Endpoint | None = None) -> AsyncIterator[Ending]:
    """What `Ending` describes, torn down afterwards; its own outcome is looked at in test_connect_failure.py."""
    opened: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    async def block() -> None:
        transport, leave = ScriptedTransport(facts=FACTS), asyncio.Event()
        async with (endpoint or acprt.Endpoint("near")).connect(transport) as cx:
            opened.set_result(Ending(cx, transport, leave))
            await leave.wait()

    task = asyncio.create_task(block())
    it = await opened
    try:
        yield it
    finally:
        await it.cx.aclose()
        it._leave.set()
        await asyncio.wait([task])
        task.exception()


ENDS = ["eof", "read error", "write error", "block ended", "task failed", "closed"]


CAUSES = {"read error": BROKEN_READ, "write error": BROKEN_WRITE, "task failed": BROKEN_TASK}


def check(failure: acprt.RpcError, end: str, method: str) -> None:
    """An error says why, of which request, and how the child ended."""
    assert failure.code == -32603
    if end == "eof":
        assert failure.message == "Incoming transport closed"
        expected = {"reason": "incoming_transport_closed"}
    elif end in CAUSES:
        assert failure.message == "Connection failed"
        assert failure.__cause__ is CAUSES[end]
        expected = {"reason": "connection_failed", "error": str(CAUSES[end])}
    else:
        assert failure.message == "Connection closed"
        expected = {"reason": "connection_closed"}
    assert failure.data == {"method": method, **expected, **FACTS}
    assert acprt.is_incoming_transport_closed(failure) is (end == "eof")
    assert "last words" in str(failure)


@pytest.mark.parametrize("end", ENDS)
class TestEveryEnd:
    """The matrix: whatever ends the connection, whoever waits is told the reason (EO-03…EO-05, TF-01, TF-02, PY-60)."""

    def test_pending_requests_fail_with_the_reason(self, run, end):
        """EO-02, EO-03, EO-04, TF-01, TF-02, SR-24: all of them."""

        async def main():
            async with ending() as it:
                sent = [it.cx.send_request(f"m{n}") for n in range(3)]
                waiters = [asyncio.create_task(outcome_of(each)) for each in sent]
                await asyncio.sleep(0)
                await it.bring(end)
                for n, waiter in enumerate(waiters):
                    check((await waiter).error, end, f"m{n}")  # type: ignore[union-attr]  # an Ok would fail here

        run(main())

    def test_request_that_nobody_waits_for_yet_fails_with_the_reason(self, run, end):
        """EO-04: the handle keeps the outcome."""

        async def main():
            async with ending() as it:
                sent = it.cx.send_request("m")
                await it.bring(end)
                await it.cx.aclose()
                with pytest.raises(acprt.RpcError) as caught:
                    await sent.block_task()
                check(caught.value, end, "m")

        run(main())

    def test_queued_request_fails_with_the_reason(self, run, end):
        """EO-06: it waits behind a peer that does not read."""

        async def main():
            async with ending() as it:
                it.transport.stall()
                it.cx.send_request("first").detach()
                sent = it.cx.send_request("m")
                assert it.transport.written == []
                if end in ("block ended", "closed", "task failed"):
                    asyncio.get_running_loop().call_soon(it.transport.flow)  # else the close waits for its bound
                await it.bring(end)
                with pytest.raises(acprt.RpcError) as caught:
                    await sent.block_task()
                check(caught.value, end, "m")
                it.transport.flow()

        run(main())

    def test_new_request_fails_at_once_with_the_reason(self, run, end):
        """EO-05, LC-14, DEC-20: through the handle; nothing is written."""

        async def main():
            async with ending() as it:
                await it.bring(end)
                before = it.transport.written
                sent = it.cx.send_request("new")
                with pytest.raises(acprt.RpcError) as caught:
                    await sent.block_task()
                check(caught.value, end, "new")
                await until_idle()
                assert it.transport.written == before

        run(main())

    def test_the_reason_can_be_asked_for_without_a_request(self, run, end):
        """For who waits for something else: None while requests are answered, and nothing is written to ask."""

        async def main():
            async with ending() as it:
                assert it.cx.closed_error("m") is None
                await it.bring(end)
                before = it.transport.written
                failure = it.cx.closed_error("m")
                assert failure is not None
                check(failure, end, "m")
                assert it.transport.written == before

        run(main())

    @pytest.mark.parametrize("way", ["on_receiving_result", "on_receiving_ok_result"])
    def test_callback_gets_the_reason(self, run, end, way):
        """EO-04, OB-09, PY-60: called once with the error, or its responder is answered, without a barrier."""

        async def main():
            async with ending() as it:
                got: list[Outcome] = []

                async def callback(outcome: Outcome) -> None:
                    got.append(outcome)

                async def on_ok(_value: Any, _responder: acprt.Responder[Any]) -> None:
                    raise AssertionError("called for an error")

                kept: list[acprt.Responder[Any]] = []
                upstream = acprt.Endpoint("upstream")

                @upstream.on_receive_request("work")
                async def work(_params: Any, responder: acprt.Responder[Any]) -> None:
                    kept.append(responder)

                async with raw_client_of(upstream) as client:
                    client.request("up", "work")
                    await client.settled()
                    sent = it.cx.send_request("m")
                    if way == "on_receiving_result":
                        sent.on_receiving_result(callback)
                        kept.pop().respond(None)
                        await client.receive()
                    else:
                        sent.on_receiving_ok_result(kept.pop(), on_ok)
                    await it.bring(end)
                    await it.cx.aclose()
                    if way == "on_receiving_result":
                        assert isinstance(got[0], acprt.Err)
                        check(got[0].error, end, "m")
                        assert len(got) == 1
                    else:
                        assert (await client.receive())["error"]["code"] == -32603

        run(main())

    def test_forwarded_request_is_answered_in_neutral_words(self, run, end):
        """SR-11, PY-63: the upstream peer is told that the hop behind failed, never that its own connection did, and
        nothing of what a child wrote to stderr.
        """
        upstream = acprt.Endpoint("upstream")

        async def main():
            async with ending() as it:

                @upstream.on_receive_request("work")
                async def work(_params: Any, responder: acprt.Responder[Any]) -> None:
                    it.cx.send_request("m").forward_response_to(responder)

                async with raw_client_of(upstream) as client:
                    client.request("up", "work")
                    await client.settled()
                    await it.bring(end)
                    await it.cx.aclose()
                    answer = await client.receive()
                    assert answer["id"] == "up"
                    assert answer["error"]["code"] == -32603
                    data = answer["error"]["data"]
                    assert data["method"] == "m"
                    assert data["reason"].startswith("downstream_")
                    assert not data.keys() & {"stderr_tail", "exit_status", "error"}

        run(main())

    def test_detached_and_abandoned_requests_end_quietly(self, run, end, caplog):
        """SR-16, SR-17: nobody waits, nobody is told."""

        async def main():
            async with ending() as it:
                it.cx.send_request("detached").detach()
                it.cx.send_request("dropped")
                gc.collect()
                await it.bring(end)
                await it.cx.aclose()
                assert it.cx.status().pending == []

        run(main())
        assert "dropped" not in caplog.text

    def test_incoming_closed_wakes_its_waiters(self, run, end):
        """EO-13, EO-14, PY-60: whatever the end was."""

        async def main():
            async with ending() as it:
                waiting = asyncio.create_task(it.cx.incoming_closed())
                await asyncio.sleep(0)
                assert not it.cx.is_incoming_closed
                await it.bring(end)
                await asyncio.wait_for(waiting, 5)
                assert it.cx.is_incoming_closed
                await it.cx.incoming_closed()

        run(main())

    def test_close_callbacks_run_only_at_clean_eof(self, run, end):
        """EO-17, PY-61."""
        endpoint = acprt.Endpoint("near")
        ran: list[str] = []

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            ran.append("bye")

        async def main():
            async with ending(endpoint) as it:
                await it.bring(end)
                await it.cx.aclose()
                assert ran == (["bye"] if end == "eof" else [])

        run(main())

    def test_what_the_peer_asked_is_answered(self, run, end):
        """DEC-25: every accepted request gets its one answer as long as something can be written."""
        endpoint = acprt.Endpoint("near")

        @endpoint.method("slow")
        async def slow(_params: Any) -> None:
            await asyncio.Event().wait()

        async def main():
            async with ending(endpoint) as it:
                it.transport.deliver(request(1, "slow"), [request(2, "slow"), request(3, "nobody")])
                await until_idle()
                await it.bring(end)
                await it.cx.aclose()
                assert it.cx.status().in_flight == []
                if end not in ("read error", "write error"):  # then nobody is there to be answered
                    single, batch = sorted(it.transport.written, key=lambda line: isinstance(line, list))
                    assert single == {"jsonrpc": "2.0", "id": 1, "error": SHUTTING_DOWN}
                    assert batch == [
                        {"jsonrpc": "2.0", "id": 2, "error": SHUTTING_DOWN},
                        error(3, -32601, "Method not found", "nobody"),
                    ]

        run(main())

    def test_everything_is_released(self, run, end):
        """The transport is closed, no task of the connection is left."""
        endpoint = acprt.Endpoint("near")

        @endpoint.with_spawned
        async def background(_cx: acprt.Connection) -> None:
            await asyncio.Event().wait()

        async def main():
            before = asyncio.all_tasks()
            async with ending(endpoint) as it:
                await it.bring(end)
                await it.cx.aclose()
                assert it.transport.closed
                assert it.cx.status().state == "ended"
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == before

        run(main())

    def test_afterwards_the_handle_says_so(self, run, end):
        """LC-14, OU-09, SP-04, DY-03: sends, spawns and registrations are refused by name; nothing hangs."""

        async def main():
            async with ending() as it:
                await it.bring(end)
                await it.cx.aclose()
                reason = "connection_failed" if end in CAUSES else "connection_closed"

                async def never() -> None:
                    raise AssertionError("started")

                async def handler(_dispatch: acprt.Dispatch) -> None: ...

                for attempt in (
                    lambda: it.cx.send_notification("late"),
                    lambda: it.cx.spawn(never()),
                    lambda: it.cx.add_dynamic_handler(handler),
                ):
                    with pytest.raises(acprt.RpcError) as caught:
                        attempt()
                    assert caught.value.data["reason"] == reason
                await it.cx.drain()
                await it.cx.aclose()

        run(main())
