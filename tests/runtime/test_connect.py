"""Foreground mode: an `async with` block beside a connection, `open()`, and endpoints joined in process."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import acprt
from acprt.limits import Limits
from acprt.runtime.responder import current_request
from acprt.transports.base import Sink
from tests.rawpeer import raw_server_for
from tests.runtime.scripted import ScriptedTransport, notification, request, result, scripted, until_idle


async def fail_with(error: Exception) -> None:
    raise error


def broken() -> ValueError:
    """A new one each time: a raised exception remembers its context."""
    return ValueError("the cause")


class TestBlock:
    def test_block_runs_beside_the_connection_and_may_return(self, run):
        """LC-08: leaving it ends the connection."""

        async def main():
            async def work() -> Any:
                async with raw_server_for(acprt.Endpoint("near")) as (cx, peer):
                    sent = cx.send_request("m")
                    peer.respond(sent.id, "value")
                    return await sent.block_task(), cx, peer

            value, cx, peer = await work()
            assert value == "value"
            assert cx.status().state == "ended"
            assert peer.at_eof.is_set()

        run(main())

    def test_error_of_the_block_comes_out_as_it_is(self, run):
        """LC-11: the very same exception, no group, no wrapping."""
        error = KeyError("mine")

        async def main():
            transport = ScriptedTransport()
            with pytest.raises(KeyError) as caught:
                async with acprt.Endpoint("near").connect(transport):
                    raise error
            assert caught.value is error
            assert transport.closed

        run(main())

    def test_last_message_of_the_block_leaves(self, run):
        """LC-09, PY-62: queued output is written before the connection closes."""

        async def main():
            transport = ScriptedTransport()
            async with acprt.Endpoint("near").connect(transport) as cx:
                for n in range(50):
                    cx.send_notification("n", [n])
            assert transport.written == [notification("n", [n]) for n in range(50)]

        run(main())

    def test_clean_eof_leaves_the_block_running(self, run):
        """LC-12, EO-09: with close callbacks that succeed; the block decides."""
        endpoint = acprt.Endpoint("near")
        closed = asyncio.Event()

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            closed.set()

        async def main():
            transport = ScriptedTransport()
            async with endpoint.connect(transport) as cx:
                transport.end()
                await cx.incoming_closed()
                await until_idle()
                cx.send_notification("still here")
            assert closed.is_set()
            assert transport.written == [notification("still here")]

        run(main())

    def test_block_that_ends_before_the_eof_runs_no_close_callback(self, run):
        """EO-11, EO-17."""
        endpoint = acprt.Endpoint("near")

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            raise AssertionError("called without an EOF")

        async def main():
            async with endpoint.connect(ScriptedTransport()):
                pass

        run(main())

    def test_transport_that_cannot_be_opened_raises_from_connect(self, run):
        """AG-11: what the transport says, and nothing is left behind."""

        class Closed(ScriptedTransport):
            def open(self, sink: Sink, limits: Limits) -> None:
                raise OSError("no such pipe")

        async def main():
            before = asyncio.all_tasks()
            with pytest.raises(OSError, match="no such pipe"):
                async with acprt.Endpoint("near").connect(Closed()):
                    raise AssertionError("the block must not run")
            with pytest.raises(OSError, match="no such pipe"):
                await acprt.Endpoint("near").open(Closed())
            with pytest.raises(OSError, match="no such pipe"):
                await acprt.Endpoint("near").serve(Closed())
            assert asyncio.all_tasks() == before

        run(main())

    def test_write_that_fails_while_leaving_is_logged_and_the_block_stands(self, run, caplog):
        """TF-06, PY-62: the work of the block was done; `serve()` raises in this case (test_serve.py)."""

        async def main():
            transport = ScriptedTransport()
            async with acprt.Endpoint("near").connect(transport) as cx:
                cx.send_notification("last words")
                transport.drain_error = BrokenPipeError("gone")

        with caplog.at_level(logging.DEBUG, "acprt.dispatch"):
            run(main())
        assert "gone" in caplog.text


class TestFailure:
    """When the connection fails, the block is cancelled once and the cause is raised (DEC-16)."""

    @staticmethod
    async def _fail(how: str, error: Exception, cx: acprt.Connection, transport: ScriptedTransport) -> None:
        match how:
            case "spawned task":
                cx.spawn(fail_with(error))
            case "ordered callback":
                sent = cx.send_request("m")

                async def callback(_outcome: acprt.Result[Any]) -> None:
                    raise error

                sent.on_receiving_result(callback)
                transport.deliver(result(sent.id, 1))
            case "late callback":
                sent = cx.send_request("m")
                transport.deliver(result(sent.id, 1))
                await until_idle()
                sent.on_receiving_result(lambda _outcome: fail_with(error))
            case "read error":
                transport.lose(error)
            case "cx.fail":
                cx.fail(error)

    @pytest.mark.parametrize("how", ["spawned task", "ordered callback", "late callback", "read error", "cx.fail"])
    def test_block_is_cancelled_once_and_the_cause_is_raised(self, run, how):
        """LC-10, SP-02, SR-06, TF-01, TF-03: the exception itself, never a group."""
        cancels: list[int] = []
        error = broken()

        async def main():
            async def work() -> None:
                transport = ScriptedTransport()
                async with acprt.Endpoint("near").connect(transport) as cx:
                    await self._fail(how, error, cx, transport)
                    try:
                        await asyncio.Event().wait()
                    finally:
                        cancels.append(1)
                        await until_idle()  # a clean-up may await: there is no second cancel
                        cancels.append(2)

            with pytest.raises(ValueError, match="the cause") as caught:
                await work()
            assert caught.value is error
            assert cancels == [1, 2]
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0

        run(main())

    @pytest.mark.parametrize("then", ["returns", "raises", "goes on without waiting"])
    def test_cause_is_raised_whatever_the_block_makes_of_its_cancellation(self, run, then):
        """DEC-16: it cannot be swallowed; an error of the clean-up stays visible as its context."""

        async def work() -> None:
            transport = ScriptedTransport()
            async with acprt.Endpoint("near").connect(transport) as cx:
                if then == "goes on without waiting":
                    cx.fail(broken())
                    return
                cx.spawn(fail_with(broken()))
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    if then == "raises":
                        raise KeyError("clean-up") from None

        async def main():
            with pytest.raises(ValueError, match="the cause") as caught:
                await work()
            assert isinstance(caught.value.__context__, KeyError) is (then == "raises")
            await asyncio.sleep(0)  # no cancellation is left over for what comes behind the block

        run(main())

    def test_error_that_only_repeats_the_failure_gives_way_to_the_cause(self, run):
        """DEC-16: a send in the block says `connection_failed`; what it failed of is the news."""

        async def work() -> None:
            async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:
                cx.fail(broken())
                cx.send_notification("too late")

        async def main():
            with pytest.raises(ValueError, match="the cause"):
                await work()

        run(main())

    def test_failure_after_the_block_has_failed_is_not_news(self, run):
        """LC-11: the first error is the one."""

        async def work() -> None:
            async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:

                async def fail_when_cancelled() -> None:
                    try:
                        await asyncio.Event().wait()
                    finally:
                        raise broken()

                cx.spawn(fail_when_cancelled())
                await asyncio.sleep(0)
                raise KeyError("first")

        async def main():
            with pytest.raises(KeyError, match="first"):
                await work()

        run(main())

    def test_cancellation_by_somebody_else_goes_first(self, run):
        """PY-11: who cancels the task of the block gets a cancelled task, failure or not."""

        async def work(entered: asyncio.Event) -> None:
            async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:
                cx.spawn(self._wait_and_fail(entered))
                await asyncio.Event().wait()

        async def main():
            entered = asyncio.Event()
            task = asyncio.create_task(work(entered))
            await entered.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

        run(main())

    @staticmethod
    async def _wait_and_fail(entered: asyncio.Event) -> None:
        entered.set()
        await asyncio.sleep(0)
        raise broken()

    def test_timeout_around_the_block_stays_a_timeout(self, run):
        """Reference wishes: wrapping connect in a timeout must not break it."""

        async def main():
            transport = ScriptedTransport()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01), acprt.Endpoint("near").connect(transport):
                    await asyncio.Event().wait()
            assert transport.closed

        run(main())

    def test_block_entered_in_a_task_that_is_being_cancelled_still_tells_whose_cancel_it_was(self, run):
        """DEC-16: a pending cancellation from before the block is not taken for one during it."""

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:  # a last report, say
                    cx.spawn(fail_with(broken()))
                    await asyncio.Event().wait()

        async def main():
            task = asyncio.create_task(work())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(ValueError, match="the cause"):
                await task

        run(main())

    @pytest.mark.parametrize("which", ["outer", "inner", "both"])
    def test_two_connections_of_one_block_are_told_apart(self, run, which):
        """DEC-16: a proxy has two; the cause comes out of the block of the one that failed."""
        outer_error, inner_error = ValueError("outer"), ValueError("inner")
        left: list[str] = []

        async def work() -> None:
            async with acprt.Endpoint("outer").connect(ScriptedTransport()) as outer:
                try:
                    async with acprt.Endpoint("inner").connect(ScriptedTransport()) as inner:
                        if which in ("outer", "both"):
                            outer.fail(outer_error)
                        if which in ("inner", "both"):
                            inner.fail(inner_error)
                        await asyncio.Event().wait()
                except BaseException as error:
                    left.append(type(error).__name__)
                    raise

        async def main():
            with pytest.raises(ValueError) as caught:  # noqa: PT011  # which one is checked below
                await work()
            assert caught.value is (inner_error if which == "inner" else outer_error)
            assert left == ["ValueError" if which == "inner" else "CancelledError"]
            await asyncio.sleep(0)

        run(main())

    def test_with_open_the_waiters_learn_the_cause_and_aclose_does_not_raise(self, run):
        """DEC-16."""

        async def main():
            transport = ScriptedTransport()
            cx = await acprt.Endpoint("near").open(transport)
            sent, error = cx.send_request("m"), broken()
            cx.spawn(fail_with(error))
            with pytest.raises(acprt.RpcError, match="the cause") as caught:
                await sent.block_task()
            assert caught.value.__cause__ is error
            await cx.aclose()
            assert transport.closed

        run(main())

    def test_first_cause_stands(self, run):
        """EO-12: what fails later, because of the end or not, changes nothing."""

        async def main():
            async def work() -> None:
                async with acprt.Endpoint("near").connect(ScriptedTransport()) as cx:
                    cx.fail(broken())
                    cx.fail(KeyError("second"))
                    await asyncio.Event().wait()

            with pytest.raises(ValueError, match="the cause"):
                await work()

        run(main())


class TestCloseCallbackPrecedence:
    """The block ends while close callbacks run (EO-10, EO-11)."""

    @pytest.mark.parametrize("block_fails", [False, True])
    @pytest.mark.parametrize("callback_fails", [False, True])
    def test_error_of_a_close_callback_beats_the_outcome_of_the_block(self, run, block_fails, callback_fails):
        """EO-10: main × close, all four; the block waits for the callbacks to finish (EO-11)."""
        endpoint = acprt.Endpoint("near")
        entered, release = asyncio.Event(), asyncio.Event()
        order: list[str] = []
        releasing: list[asyncio.Task[None]] = []

        async def release_soon() -> None:
            await until_idle()
            release.set()

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            entered.set()
            await release.wait()
            order.append("callback")
            if callback_fails:
                raise broken()

        async def work() -> str:
            transport = ScriptedTransport()
            async with endpoint.connect(transport):
                transport.end()
                await entered.wait()
                releasing.append(asyncio.create_task(release_soon()))
                order.append("block")
                if block_fails:
                    raise KeyError("of the block")
            return "value"

        async def main():
            if callback_fails:
                with pytest.raises(ValueError, match="the cause") as caught:
                    await work()
                assert isinstance(caught.value.__context__, KeyError) is block_fails
            elif block_fails:
                with pytest.raises(KeyError, match="of the block"):
                    await work()
            else:
                assert await work() == "value"
            assert order == ["block", "callback"]

        run(main())

    def test_error_of_a_close_callback_ends_a_block_that_still_runs(self, run):
        """EO-09."""
        endpoint = acprt.Endpoint("near")

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            raise broken()

        async def work() -> None:
            transport = ScriptedTransport()
            async with endpoint.connect(transport):
                transport.end()
                await asyncio.Event().wait()

        async def main():
            with pytest.raises(ValueError, match="the cause"):
                await work()

        run(main())

    def test_block_that_waits_for_the_end_of_input_gets_the_callback_error(self, run):
        """EO-10."""
        endpoint = acprt.Endpoint("near")

        @endpoint.on_close
        async def bye(_cx: acprt.Connection) -> None:
            raise broken()

        async def work() -> None:
            transport = ScriptedTransport()
            async with endpoint.connect(transport) as cx:
                transport.end()
                await cx.incoming_closed()

        async def main():
            with pytest.raises(ValueError, match="the cause"):
                await work()

        run(main())

    def test_callbacks_may_use_what_belongs_to_the_caller(self, run):
        """EO-15: they are closures of the program like any other, and may send."""
        told: list[str] = []

        async def main():
            endpoint = acprt.Endpoint("near")
            local = {"name": "a local of the caller"}

            @endpoint.on_close
            async def bye(cx: acprt.Connection) -> None:
                told.append(local["name"])
                cx.send_notification("bye")

            transport = ScriptedTransport()
            async with endpoint.connect(transport) as cx:
                transport.end()
                await cx.incoming_closed()
            assert told == ["a local of the caller"]
            assert transport.written == [notification("bye")]

        run(main())


class TestInProcess:
    """An endpoint is a transport (LC-13)."""

    def test_what_keeps_the_other_side_from_being_served_is_raised_here(self, run, caplog) -> None:
        """DEC-5: a message that cannot be decoded fails by its name where the connection is opened, on either side."""

        class Unreadable(acprt.Request[Any], method="unreadable"):
            at: complex | range

        served = acprt.Endpoint("served")

        @served.method
        async def unreadable(request: Unreadable) -> None: ...

        async def main() -> None:
            with pytest.raises(TypeError, match="Unreadable"):
                async with acprt.Endpoint("caller").connect(served):
                    pass
            assert caplog.records == []

        run(main())

    @staticmethod
    def _server() -> acprt.Endpoint:
        server = acprt.Endpoint("server")

        @server.method("double")
        async def double(params: Any, cx: acprt.Connection) -> int:
            cx.send_notification("working")
            return params["n"] * 2

        return server

    def test_request_and_notification_pass(self, run):
        """LC-13."""
        client = acprt.Endpoint("client")
        heard = asyncio.Event()

        @client.on_receive_notification("working")
        async def working(_params: Any) -> None:
            heard.set()

        async def main():
            async with client.connect(self._server()) as cx:
                assert await cx.send_request("double", {"n": 21}).block_task(timeout=5) == 42
                assert heard.is_set()

        run(main())

    def test_one_endpoint_serves_many_connections(self, run):
        """LC-13: it holds no state of a connection."""

        async def main():
            server, client = self._server(), acprt.Endpoint("client")
            async with client.connect(server) as first, client.connect(server) as second:
                answers = await asyncio.gather(
                    *(cx.send_request("double", {"n": n}).block_task(timeout=5) for n, cx in enumerate((first, second)))
                )
                assert answers == [0, 2]

        run(main())

    def test_leaving_the_block_ends_the_served_side(self, run):
        """LC-13: it sees EOF, runs its close callbacks, drains, and is gone when the block is left."""
        server = self._server()
        ended: list[str] = []

        @server.on_close
        async def bye(_cx: acprt.Connection) -> None:
            ended.append("closed")

        async def main():
            before = asyncio.all_tasks()
            async with acprt.Endpoint("client").connect(server) as cx:
                cx.send_notification("last words")
            assert ended == ["closed"]
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == before

        run(main())

    def test_served_side_that_fails_is_an_eof_here_and_logged_there(self, run, caplog):
        """LC-13, TF-01: the error belongs to the side that failed."""
        server = self._server()

        @server.method("break")
        async def break_it(_params: Any, cx: acprt.Connection) -> None:
            cx.spawn(fail_with(ValueError("of the server")))
            await asyncio.Event().wait()

        async def main():
            async with acprt.Endpoint("client").connect(server) as cx:
                with pytest.raises(acprt.RpcError) as caught:
                    await cx.send_request("break").block_task(timeout=5)
                assert caught.value.data == {"reason": "shutting_down"}
                await asyncio.wait_for(cx.incoming_closed(), 5)

        run(main())
        assert "of the server" in caplog.text

    def test_served_side_that_does_not_end_is_ended(self, run):
        """LC-13 with a bound: its drain first, then cancellation."""
        server = acprt.Endpoint("server", limits=acprt.Limits(drain_seconds=0.05))
        ended: list[str] = []

        @server.method("for ever")
        async def for_ever(_params: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")

        async def main():
            async with acprt.Endpoint("client").connect(server) as cx:
                cx.send_request("for ever").detach()
                await until_idle()
            assert ended == ["cancelled"]

        run(main())

    def test_served_side_that_takes_too_long_is_cancelled(self, run):
        """LC-13 with a bound: this side's, when the served one's own drain is longer."""
        server = acprt.Endpoint("server", limits=acprt.Limits(drain_seconds=3600))
        client = acprt.Endpoint("client", limits=acprt.Limits(drain_seconds=0.05, exit_grace_seconds=0))
        ended: list[str] = []

        @server.method("for ever")
        async def for_ever(_params: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")

        async def main():
            before = asyncio.all_tasks()
            async with client.connect(server) as cx:
                cx.send_request("for ever").detach()
                await until_idle()
            assert ended == ["cancelled"]
            assert asyncio.all_tasks() == before

        run(main())

    def test_endpoint_given_as_a_transport_may_call_back(self, run):
        """LC-13, DL-08: both ends are client and server."""
        server, client = acprt.Endpoint("server"), acprt.Endpoint("client")

        @server.method("ask back")
        async def ask_back(_params: Any, cx: acprt.Connection) -> Any:
            return await cx.send_request("name").block_task(timeout=5)

        @client.method("name")
        async def name(_params: Any) -> str:
            return "client"

        async def main():
            async with client.connect(server) as cx:
                assert await cx.send_request("ask back").block_task(timeout=5) == "client"

        run(main())


class TestOpen:
    def test_connection_outlives_the_task_that_opened_it(self, run):
        """Open here, close there."""

        async def main():
            transport = ScriptedTransport()

            async def open_it() -> acprt.Connection:
                return await acprt.Endpoint("near").open(transport)

            cx = await asyncio.create_task(open_it())
            sent = cx.send_request("m")
            await until_idle()
            transport.deliver(result(sent.id, 1))
            assert await sent.block_task() == 1
            await asyncio.create_task(cx.aclose())
            assert transport.closed

        run(main())

    def test_closing_in_any_order(self, run):
        """Reference wishes: not only in reverse."""

        async def main():
            transports = [ScriptedTransport() for _ in range(3)]
            opened = [await acprt.Endpoint(str(n)).open(each) for n, each in enumerate(transports)]
            for n in (1, 0, 2):
                await opened[n].aclose()
            assert all(each.closed for each in transports)

        run(main())

    def test_peers_may_be_kept_on_the_connection(self, run):
        """DEC-31: `cx.peer` is assignable, `cx.name` is the endpoint's."""

        async def main():
            transport = ScriptedTransport()
            async with acprt.Endpoint("near").connect(transport) as cx:
                assert (cx.name, cx.peer) == ("near", None)
                cx.peer = {"version": 1}
                assert cx.peer == {"version": 1}
                transport.deliver(request(1, "m"))
                await until_idle()

        run(main())


class TestOpenedInsideAHandler:
    """A connection opened while a request of another one's peer is served."""

    def test_it_does_not_serve_that_request(self, run):
        """DEC-13: neither its ordered handlers nor its requests belong to the request in whose handler it began."""

        async def main():
            served = acprt.Endpoint("served")
            outer: list[Any] = []
            seen: list[Any] = []
            inner = acprt.Endpoint("inner")

            @inner.on_receive_notification("n")
            async def n(_params: Any) -> None:
                seen.append(current_request.get())

            @inner.method("m")
            async def m(_params: Any) -> None:
                request_served = current_request.get()
                assert request_served is not None
                seen.append(request_served.method)

            @served.method("open")
            async def open_another(_params: Any) -> None:
                outer.append(current_request.get())
                async with scripted(inner) as (cx, transport):
                    transport.deliver(notification("n"), request(1, "m"))
                    await until_idle()
                    sent = cx.send_request("ask")
                    outer.append(sent._call.owner)
                    sent.detach()

            async with scripted(served) as (_cx, transport):
                transport.deliver(request(1, "open"))
                await until_idle()
                await asyncio.wait_for(_answered(transport), 5)
            assert outer[0].method == "open"
            assert outer[1] is None
            assert seen == [None, "m"]

        run(main())


async def _answered(transport: ScriptedTransport) -> None:
    while not transport.written:
        await asyncio.sleep(0)
