"""The hooks of a dialect work by themselves: another protocol needs no change of the dispatch loop."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

import acprt
from acprt.wire.frames import NotificationFrame, RequestFrame
from tests.runtime.scripted import (
    ScriptedTransport,
    cancel,
    error,
    keeper,
    notification,
    request,
    result,
    until_idle,
)

Requests = acprt.Responder[Any]


class Silent(acprt.Dialect):
    """A protocol that answers nothing to a cancelled request, and says nothing more about it."""

    name = "silent"
    answers_cancelled = False
    gates_frames = True
    withdraws_queued = True
    cascades_cancel = True


class OtherCancel(acprt.Dialect):
    """A protocol with a cancel of its own: name, shape, reason."""

    cancel_methods = frozenset({"notifications/cancelled"})

    def parse_cancel(self, frame: NotificationFrame) -> acprt.CancelNotice | None:
        params = msgspec.json.decode(frame.params)
        if not isinstance(params, dict) or type(params.get("requestId")) not in (int, str):
            return None
        return acprt.CancelNotice(params["requestId"], params.get("reason"))

    def build_cancel(self, id: Any, reason: str | None = None) -> tuple[str, Any]:
        params = {"requestId": id}
        return "notifications/cancelled", params if reason is None else params | {"reason": reason}


@asynccontextmanager
async def speaking(dialect: acprt.Dialect, endpoint: acprt.Endpoint | None = None):
    """A scripted connection in that dialect."""
    endpoint = endpoint or acprt.Endpoint("x")
    endpoint.dialect = dialect
    transport = ScriptedTransport()
    async with endpoint.connect(transport) as cx:
        yield cx, transport


def waiting_endpoint() -> tuple[acprt.Endpoint, list[str]]:
    """`slow` waits for ever, `stubborn` swallows its cancel and returns, `broken` raises from its clean-up."""
    endpoint = acprt.Endpoint("x")
    steps: list[str] = []

    @endpoint.method("slow")
    async def slow(_params: Any) -> None:
        steps.append("slow")
        await asyncio.Event().wait()

    @endpoint.method("stubborn")
    async def stubborn(_params: Any) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            steps.append("swallowed")
        return "value"

    @endpoint.method("broken")
    async def broken(_params: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("clean-up")

    return endpoint, steps


def seeing_endpoint() -> tuple[acprt.Endpoint, list[str]]:
    """It answers every request with "ok", and the methods of what it was given, in order."""
    endpoint = acprt.Endpoint("x")
    seen: list[str] = []

    @endpoint.on_receive_dispatch
    async def see(dispatch: acprt.Dispatch[Any]) -> None:
        seen.append(dispatch.method)
        if dispatch.responder is not None:
            dispatch.responder.respond("ok")

    return endpoint, seen


class TestAnswersCancelled:
    """`answers_cancelled = False`: the request just ends (DEC-9, DEC-11)."""

    @pytest.mark.parametrize("method", ["slow", "stubborn", "broken"])
    def test_nothing_is_written_for_a_cancelled_method(self, run, method):
        """DEC-9: whatever its handler returns or raises; it leaves the table when it has ended."""
        endpoint, _steps = waiting_endpoint()

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.deliver(request(1, method))
                await until_idle()
                transport.deliver(cancel(1))
                await until_idle()
                assert transport.written == []
                assert cx.status().in_flight == []

        run(main())

    def test_nothing_is_written_for_one_cancelled_before_it_began(self, run):
        """DEC-10: and its handler never begins."""
        endpoint, steps = waiting_endpoint()

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.deliver(request(1, "slow"), cancel(1), request(2, "nobody"))
                await until_idle()
                assert [line["id"] for line in transport.written] == [2]
                assert steps == []
                assert cx.status().in_flight == []

        run(main())

    def test_answer_of_a_kept_responder_is_held_back(self, run):
        """DEC-9: centrally, not in the handler."""
        endpoint, kept = keeper()

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.deliver(request(1, "ask"), request(2, "ask"))
                await until_idle()
                transport.deliver(cancel(1))
                kept[0].respond("no longer wanted")
                kept[1].respond("wanted")
                await until_idle()
                assert transport.written == [result(2, "wanted")]
                assert cx.status().in_flight == []

        run(main())

    def test_slot_of_a_cancelled_member_is_left_out_of_the_array(self, run):
        """BA-03: the others are answered; a batch of nothing but cancelled members is not."""
        endpoint, _steps = waiting_endpoint()

        async def main():
            async with speaking(Silent(), endpoint) as (_cx, transport):
                transport.deliver([request(1, "slow"), request(2, "nobody")], [request(3, "slow")])
                await until_idle()
                transport.deliver(cancel(1), cancel(3))
                await until_idle()
                assert transport.written == [[error(2, -32601, "Method not found", "nobody")]]

        run(main())

    def test_own_request_that_is_cancelled_stops_waiting_at_once(self, run):
        """DEC-11: nothing will come, so the waiter gets a local -32800; a late answer is known for what it is."""

        async def main():
            async with speaking(Silent()) as (cx, transport):
                sent = cx.send_request("m")
                waiting = asyncio.create_task(sent.block_task())
                got: list[Any] = []
                by_callback = cx.send_request("n")

                async def callback(outcome: acprt.Result[Any]) -> None:
                    got.append(outcome)

                by_callback.on_receiving_result(callback)
                await until_idle()
                sent.cancel()
                by_callback.cancel()
                with pytest.raises(acprt.RpcError) as caught:
                    await asyncio.wait_for(waiting, 5)
                assert caught.value == acprt.RpcError.request_cancelled()
                await until_idle()
                assert got == [acprt.Err(acprt.RpcError.request_cancelled())]
                assert transport.written[2:] == [cancel(1), cancel(2)]
                transport.deliver(result(1, "late"))
                await until_idle()
                assert cx.status().counters.late_responses == 1

        run(main())

    def test_hook_for_an_answer_that_never_comes_never_runs(self, run):
        """`after_response` is for what follows an answer on the wire."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any, cx: acprt.Connection) -> None:
            cx.after_response(lambda: cx.send_notification("after"))
            await asyncio.Event().wait()

        async def main():
            async with speaking(Silent(), endpoint) as (_cx, transport):
                transport.deliver(request(1, "slow"))
                await until_idle()
                transport.deliver(cancel(1))
                await until_idle()
                assert transport.written == []

        run(main())


class TestGate:
    """`gates_frames = True`: nothing more is said for a cancelled request."""

    def test_progress_of_a_cancelled_request_is_dropped(self, run):
        """DEC-13: from its handler and from what it spawned; other requests are not touched."""
        endpoint = acprt.Endpoint("x")
        cleaned: list[Any] = []

        @endpoint.method("slow")
        async def slow(params: Any, cx: acprt.Connection) -> None:
            cx.send_notification("progress", params)
            try:
                await asyncio.Event().wait()
            finally:
                cx.send_notification("cleaning", params)
                cx.spawn(tell(params, cx))
                cleaned.append(params)

        async def tell(params: Any, cx: acprt.Connection) -> None:
            cx.send_notification("spawned", params)

        async def main():
            async with speaking(Silent(), endpoint) as (_cx, transport):
                transport.deliver(request(1, "slow", ["a"]), request(2, "slow", ["b"]))
                await until_idle()
                transport.deliver(cancel(1))
                await until_idle()
                assert cleaned == [["a"]]
                assert transport.written == [notification("progress", ["a"]), notification("progress", ["b"])]

        run(main())

    def test_ungated_dialect_lets_it_through(self, run):
        """DEC-13: under the plain dialect a cancelled handler may report."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("slow")
        async def slow(_params: Any, cx: acprt.Connection) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cx.send_notification("cleaning")

        async def main():
            async with speaking(acprt.Dialect(), endpoint) as (_cx, transport):
                transport.deliver(request(1, "slow"))
                await until_idle()
                transport.deliver(cancel(1))
                await until_idle()
                assert transport.written == [notification("cleaning"), error(1, -32800, "Request cancelled")]

        run(main())


class TestWithdrawal:
    """`withdraws_queued = True`: what is still queued for a cancelled request is taken back."""

    def test_queued_progress_and_answer_are_taken_back(self, run):
        """Reference race: cancel while the result waits in the write queue; other frames stay, in order."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("quick")
        async def quick(params: Any, cx: acprt.Connection) -> Any:
            cx.send_notification("progress", params)
            return params

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.stall()
                cx.send_notification("own")
                transport.deliver(request(1, "quick", ["a"]), request(2, "quick", ["b"]))
                await until_idle()
                transport.deliver(cancel(1))
                await until_idle()
                transport.flow()
                await until_idle()
                assert transport.written == [
                    notification("own"),
                    notification("progress", ["b"]),
                    result(2, ["b"]),
                ]
                assert cx.status().outbox.bytes == 0

        run(main())

    def test_queued_request_of_ours_is_taken_back_with_its_cancel(self, run):
        """DEC-11: neither is written, and the waiter fails at once."""

        async def main():
            async with speaking(Silent()) as (cx, transport):
                transport.stall()
                cx.send_notification("own")
                sent, other = cx.send_request("m"), cx.send_request("other")
                sent.cancel()
                with pytest.raises(acprt.RpcError) as caught:
                    await sent.block_task()
                assert caught.value.code == -32800
                transport.flow()
                await until_idle()
                assert transport.written == [notification("own"), request(other.id, "other")]
                other.detach()

        run(main())

    def test_written_request_is_cancelled_by_a_notification(self, run):
        """DEC-11: the peer has it."""

        async def main():
            async with speaking(Silent()) as (cx, transport):
                sent = cx.send_request("m")
                await until_idle()
                sent.cancel()
                await until_idle()
                assert transport.written == [request(1, "m"), cancel(1)]

        run(main())

    def test_plain_dialect_writes_both_in_order(self, run):
        """DEC-11, SR-26."""

        async def main():
            async with speaking(acprt.Dialect()) as (cx, transport):
                transport.stall()
                cx.send_notification("own")
                sent = cx.send_request("m")
                sent.cancel()
                transport.flow()
                await until_idle()
                assert transport.written == [notification("own"), request(1, "m"), cancel(1)]
                sent.detach()

        run(main())

    def test_late_cancel_of_an_answered_request_hits_only_that_generation(self, run):
        """Reference race: the id was used again; the queued answer of the first stays, the second is cancelled."""
        endpoint, _steps = waiting_endpoint()

        @endpoint.method("quick")
        async def quick(_params: Any) -> str:
            return "first"

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.stall()
                cx.send_notification("own")
                transport.deliver(request(1, "quick"))
                await until_idle()
                transport.deliver(request(1, "slow"), cancel(1))
                await until_idle()
                transport.flow()
                await until_idle()
                assert transport.written == [notification("own"), result(1, "first")]

        run(main())


class TestCascade:
    """`cascades_cancel = True`: a cancel reaches the requests that its handler sent."""

    def test_nested_requests_are_cancelled_too(self, run):
        """DEC-13: also those that nobody waits for; the late answer is dropped, other requests live."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("outer")
        async def outer(params: Any, cx: acprt.Connection) -> Any:
            cx.send_request("detached", params).detach()
            return await cx.send_request("nested", params).block_task()

        async def main():
            async with speaking(Silent(), endpoint) as (cx, transport):
                transport.deliver(request("a", "outer", ["a"]), request("b", "outer", ["b"]))
                await until_idle()
                sent = {(line["method"], line["params"][0]): line["id"] for line in transport.written}
                transport.deliver(cancel("a"))
                await until_idle()
                cancels = transport.written[4:]
                expected = [cancel(sent["detached", "a"]), cancel(sent["nested", "a"])]
                assert sorted(cancels, key=str) == sorted(expected, key=str)
                transport.deliver(result(sent["nested", "a"], "late"), result(sent["nested", "b"], "done"))
                await until_idle()
                assert transport.written[6:] == [result("b", "done")]
                assert cx.status().counters.unmatched_responses == 0

        run(main())

    def test_plain_dialect_cancels_what_is_waited_for_and_nothing_else(self, run):
        """SR-14, SR-17: there the cancelled task cancels its own wait; a detached request runs on."""
        endpoint = acprt.Endpoint("x")

        @endpoint.method("outer")
        async def outer(_params: Any, cx: acprt.Connection) -> Any:
            cx.send_request("detached").detach()
            return await cx.send_request("nested").block_task()

        async def main():
            async with speaking(acprt.Dialect(), endpoint) as (_cx, transport):
                transport.deliver(request("a", "outer"))
                await until_idle()
                transport.deliver(cancel("a"))
                await until_idle()
                assert sorted(transport.written[2:], key=str) == sorted(
                    [cancel(2), error("a", -32800, "Request cancelled")], key=str
                )

        run(main())


class TestAdmission:
    def test_batches_may_be_refused(self, run):
        """One -32600 for the array, its members are not looked at."""

        class NoBatches(acprt.Dialect):
            accepts_batches = False

        endpoint, steps = waiting_endpoint()

        async def main():
            async with speaking(NoBatches(), endpoint) as (cx, transport):
                transport.deliver([request(1, "slow"), notification("n")], request(2, "nobody"))
                await until_idle()
                assert [(line["id"], line["error"]["code"]) for line in transport.written] == [
                    (None, -32600),
                    (2, -32601),
                ]
                assert "batches" in str(transport.written[0]["error"]["data"])
                assert steps == []
                assert cx.status().in_flight == []

        run(main())

    def test_admit_refuses_requests_with_its_error_and_notifications_silently(self, run):
        """Reference hook `classify_opening`: what comes before the handshake, say."""

        class Handshake(acprt.Dialect):
            def __init__(self) -> None:
                self.opened = False

            def for_connection(self) -> acprt.Dialect:
                return Handshake()

            def admit(self, frame: RequestFrame | NotificationFrame) -> acprt.RpcError | None:
                self.opened = self.opened or frame.method == "initialize"
                return None if self.opened else acprt.RpcError.invalid_request({"reason": "not initialized"})

        endpoint, seen = seeing_endpoint()

        async def talk():
            async with speaking(Handshake(), endpoint) as (cx, transport):
                transport.deliver(
                    request(1, "early"),
                    notification("early"),
                    request(2, "initialize"),
                    request(3, "now"),
                    notification("now"),
                )
                await until_idle()
                assert transport.written == [
                    error(1, -32600, "Invalid request", {"reason": "not initialized"}),
                    result(2, "ok"),
                    result(3, "ok"),
                ]
                assert cx.status().in_flight == []

        async def main():
            for _ in range(2):  # the state of one connection is no other's
                seen.clear()
                await talk()
                assert seen == ["initialize", "now", "now"]

        run(main())

    def test_notifications_before_the_first_request_may_wait_for_it(self, run, caplog):
        """Reference hook `pre_era_buffer`: bounded, offered to `admit` in front of the request that decides; a request
        that is refused decides nothing, and a cancel that came too early hits nothing (CA-06).
        """

        class Buffering(acprt.Dialect):
            opening_buffer = 3

            def admit(self, frame: RequestFrame | NotificationFrame) -> acprt.RpcError | None:
                return acprt.RpcError.invalid_request() if frame.method.startswith("refused") else None

        endpoint, seen = seeing_endpoint()

        async def main():
            async with speaking(Buffering(), endpoint) as (_cx, transport):
                transport.deliver(notification("a"), notification("refused too"), cancel(2), notification("too many"))
                transport.deliver(request(1, "refused"))
                await until_idle()
                assert seen == []
                transport.deliver(request(2, "first"), notification("b"))
                await until_idle()
                assert seen == ["a", "$/cancel_request", "first", "b"]
                assert transport.written == [error(1, -32600, "Invalid request"), result(2, "ok")]

        run(main())
        assert "dropped too many" in caplog.text

    def test_first_request_inside_a_batch_ends_the_waiting(self, run):
        """Reference hook `pre_era_buffer`: an array is no other door; what waited goes in front of its request."""

        class Buffering(acprt.Dialect):
            opening_buffer = 3

        endpoint, seen = seeing_endpoint()

        async def main():
            async with speaking(Buffering(), endpoint) as (_cx, transport):
                transport.deliver(notification("a"), [notification("b"), request(1, "first"), notification("c")])
                transport.deliver(notification("d"))
                await until_idle()
                assert seen == ["a", "b", "first", "c", "d"]
                assert transport.written == [[result(1, "ok")]]

        run(main())

    @pytest.mark.parametrize("hook", ["admit", "key", "parse_cancel"])
    def test_error_of_a_hook_ends_the_connection(self, run, hook):
        """TF-01: a defect of a dialect is never a connection that is open and hears nothing."""

        class Broken(acprt.Dialect):
            def admit(self, frame: RequestFrame | NotificationFrame) -> acprt.RpcError | None:
                return None

            def key(self, id: Any) -> Hashable:
                return super().key(id)

        def fail(self: Any, *_args: Any) -> Any:
            raise ZeroDivisionError("in the dialect")

        setattr(Broken, hook, fail)

        async def main():
            with pytest.raises(ZeroDivisionError, match="in the dialect"):
                async with speaking(Broken()) as (_cx, transport):
                    transport.deliver(cancel(1) if hook == "parse_cancel" else request(1, "nobody"))
                    await asyncio.Event().wait()
            assert transport.closed

        run(main())

    def test_refused_member_of_a_batch_has_its_slot(self, run):
        """BA-02, BA-03."""

        class Picky(acprt.Dialect):
            def admit(self, frame: RequestFrame | NotificationFrame) -> acprt.RpcError | None:
                return acprt.RpcError.method_not_found("refused") if frame.method == "refused" else None

        async def main():
            async with speaking(Picky()) as (_cx, transport):
                transport.deliver([request(1, "refused"), request(2, "nobody")])
                await until_idle()
                assert transport.written == [
                    [error(1, -32601, "Method not found", "refused"), error(2, -32601, "Method not found", "nobody")]
                ]

        run(main())

    def test_outgoing_request_may_be_refused_without_sending(self, run):
        """Reference hook: a version that has no such method, say; the error comes through the handle."""

        class Guarded(acprt.Dialect):
            def on_request_sent(self, id: Any, method: str, params: Any) -> acprt.RpcError | None:
                return acprt.RpcError.method_not_found(method) if method == "newer" else None

        async def main():
            async with speaking(Guarded()) as (cx, transport):
                with pytest.raises(acprt.RpcError) as caught:
                    await cx.send_request("newer").block_task()
                assert caught.value == acprt.RpcError.method_not_found("newer")
                cx.send_request("known").detach()
                await until_idle()
                assert [line["method"] for line in transport.written] == ["known"]

        run(main())


class TestCancelRules:
    def test_cancel_has_the_name_and_shape_of_the_dialect(self, run):
        """Reference hooks `parse_cancel`, `build_cancel`: in both directions, with the reason of a timeout."""
        endpoint, _steps = waiting_endpoint()

        async def main():
            async with speaking(OtherCancel(), endpoint) as (cx, transport):
                transport.deliver(request(1, "slow"))
                await until_idle()
                transport.deliver(cancel(1), notification("notifications/cancelled", {"requestId": True}))
                await until_idle()
                assert transport.written == []
                transport.deliver(notification("notifications/cancelled", {"requestId": 1, "reason": "user"}))
                await until_idle()
                assert transport.written == [error(1, -32800, "Request cancelled")]
                with pytest.raises(TimeoutError):
                    await cx.send_request("m").block_task(timeout=0.01)
                await until_idle()
                assert transport.written[-1] == notification(
                    "notifications/cancelled", {"requestId": 1, "reason": "no answer within 0.01 s"}
                )

        run(main())

    def test_uncancellable_request_of_the_peer_runs_on(self, run):
        """Reference hook `may_cancel`: `initialize`, say; the cancel changes nothing, not even the marker."""

        class Protected(acprt.Dialect):
            def may_cancel_incoming(self, method: str) -> bool:
                return method != "initialize"

        endpoint = acprt.Endpoint("x")
        release = asyncio.Event()

        @endpoint.method("initialize")
        async def initialize(_params: Any) -> str:
            await release.wait()
            return "ready"

        async def main():
            async with speaking(Protected(), endpoint) as (cx, transport):
                transport.deliver(request(1, "initialize"), cancel(1))
                await until_idle()
                assert [entry.is_cancelled for entry in cx.status().in_flight] == [False]
                release.set()
                await until_idle()
                assert transport.written == [result(1, "ready")]

        run(main())

    def test_cancelled_request_gets_the_result_that_the_dialect_has_for_its_method(self, run):
        """In the place of any error, in whatever state the cancel finds it; other methods get -32800."""

        class Worded(acprt.Dialect):
            def cancelled_answer(self, method: str) -> Any:
                return "cancelled" if method in ("slow", "keep") else super().cancelled_answer(method)

        endpoint, _steps = waiting_endpoint()
        kept: list[Requests] = []

        @endpoint.on_receive_request("keep")
        async def keep(_params: Any, responder: Requests) -> None:
            kept.append(responder)

        @endpoint.method("other")
        async def other(_params: Any) -> None:
            await asyncio.Event().wait()

        async def main():
            async with speaking(Worded(), endpoint) as (_cx, transport):
                transport.deliver(request(1, "slow"), request(2, "other"), request(3, "keep"))
                await until_idle()
                transport.deliver(cancel(1), cancel(2), cancel(3), request(4, "slow"), cancel(4))
                await until_idle()
                kept.pop().respond_with_error(acprt.RpcError(-1, "not now"))
                await until_idle()
                answers = {answer["id"]: answer for answer in transport.written}
                assert answers == {
                    1: result(1, "cancelled"),
                    2: error(2, -32800, "Request cancelled"),
                    3: result(3, "cancelled"),
                    4: result(4, "cancelled"),
                }

        run(main())

    @pytest.mark.parametrize("how", ["cancel", "drop", "timeout", "task"])
    def test_uncancellable_request_of_ours_is_never_cancelled(self, run, how):
        """Reference hook `may_cancel`: who stops waiting just leaves; a late answer is recognised."""

        class Protected(Silent):
            def may_cancel_outgoing(self, method: str) -> bool:
                return method != "initialize"

        async def main():
            async with speaking(Protected()) as (cx, transport):
                sent = cx.send_request("initialize")
                match how:
                    case "cancel":
                        sent.cancel()
                        sent.detach()
                    case "drop":
                        del sent
                    case "timeout":
                        with pytest.raises(TimeoutError):
                            await sent.block_task(timeout=0.01)
                    case "task":
                        waiting = asyncio.create_task(sent.block_task())
                        await asyncio.sleep(0)
                        waiting.cancel()
                        await asyncio.wait([waiting])
                await until_idle()
                assert transport.written == [request(1, "initialize")]
                transport.deliver(result(1, "late"))
                await until_idle()
                assert cx.status().counters.late_responses == 1

        run(main())

    def test_ids_are_looked_up_by_the_key_of_the_dialect(self, run):
        """Reference hook `key`: under one that folds case, "A" cancels "a"."""

        class Folding(acprt.Dialect):
            def key(self, id: Any) -> Hashable:
                return id.lower() if isinstance(id, str) else id

        endpoint, _steps = waiting_endpoint()

        async def main():
            async with speaking(Folding(), endpoint) as (cx, transport):
                transport.deliver(request("a", "slow"), request("b", "slow"))
                await until_idle()
                transport.deliver(cancel("A"))
                await until_idle()
                assert transport.written == [error("a", -32800, "Request cancelled")]
                assert [entry.id for entry in cx.status().in_flight] == ["b"]

        run(main())


class TestShutdown:
    def test_dialect_decides_what_is_answered_at_the_end(self, run):
        """DEC-25: another error, or nothing."""

        class Terse(acprt.Dialect):
            def answer_on_shutdown(self, method: str) -> acprt.RpcError | None:
                return acprt.RpcError(-1, "bye") if method == "slow" else None

        endpoint, _steps = waiting_endpoint()
        kept: list[Requests] = []

        @endpoint.on_receive_request("keep")
        async def keep(_params: Any, responder: Requests) -> None:
            kept.append(responder)

        async def main():
            async with speaking(Terse(), endpoint) as (cx, transport):
                transport.deliver(request(1, "slow"), request(2, "keep"))
                await until_idle()
                await cx.aclose()
                assert transport.written == [error(1, -1, "bye")]
                assert cx.status().in_flight == []

        run(main())

    def test_cancelled_request_that_still_runs_at_the_end_is_answered_as_cancelled(self, run):
        """DEC-9, DEC-25: the peer's cancel came first."""
        endpoint = acprt.Endpoint("x")
        kept: list[Requests] = []

        @endpoint.on_receive_request("keep")
        async def keep(_params: Any, responder: Requests) -> None:
            kept.append(responder)

        async def main():
            for dialect, expected in ((acprt.Dialect(), [error(1, -32800, "Request cancelled")]), (Silent(), [])):
                async with speaking(dialect, endpoint) as (cx, transport):
                    transport.deliver(request(1, "keep"))
                    await until_idle()
                    transport.deliver(cancel(1))
                    await cx.aclose()
                    assert transport.written == expected
                kept.clear()

        run(main())


class TestPlainDialect:
    def test_name_and_defaults(self):
        """Plain JSON-RPC with `$/cancel_request`, one answer always."""
        dialect = acprt.Dialect()
        assert dialect.name == "json-rpc"
        assert dialect.for_connection() is dialect
        assert dialect.build_cancel(7, "why") == ("$/cancel_request", {"requestId": 7})
        assert dialect.accepts_batches
        assert dialect.answers_cancelled
        assert [dialect.gates_frames, dialect.withdraws_queued, dialect.cascades_cancel] == [False] * 3
        assert dialect.may_cancel_incoming("anything")
        assert dialect.may_cancel_outgoing("anything")
