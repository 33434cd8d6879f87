"""A proxy between two connections: ids are per hop, and so are cancels."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import pytest

import acprt
from tests.rawpeer import RawPeer, raw_client_of, raw_server_for
from tests.runtime.scripted import (
    cancel,
    error,
    notification,
    request,
    result,
)

Requests = acprt.Responder[Any]

CANCELLED_1 = error(1, -32800, "Request cancelled")


class TestHops:
    """A proxy: ids are per hop, and so are cancels (CP-01…CP-06)."""

    @staticmethod
    @asynccontextmanager
    async def _proxy(forward: Any):
        """A raw client, a proxy that answers `work` with `forward(cx of the backend, responder)`, a raw backend."""
        async with raw_server_for(acprt.Endpoint("to the backend")) as (backend_cx, backend):
            proxy = acprt.Endpoint("proxy")

            @proxy.on_receive_request("work")
            async def work(_params: Any, responder: Requests, cx: acprt.Connection) -> None:
                forward(backend_cx, responder, cx)

            async with raw_client_of(proxy) as client:
                yield client, backend

    def test_forwarding_reissues_the_cancel_once_under_its_own_id(self, run):
        """CP-01, CP-03, SR-10: the raw notification is not tunnelled; the backend's answer is the answer."""

        def forward(backend_cx: acprt.Connection, responder: Requests, _cx: acprt.Connection) -> None:
            backend_cx.send_request("work").forward_response_to(responder)

        async def main():
            async with self._proxy(forward) as (client, backend):
                client.request("upstream", "work")
                assert await backend.receive() == request(1, "work")
                client.cancel("upstream")
                client.cancel("upstream")
                assert await backend.receive() == cancel(1)
                await client.settled()
                assert await backend.settled() == []
                backend.respond(1, "partial")
                assert await client.receive() == result("upstream", "partial")

        run(main())

    def test_forwarded_cancel_may_be_answered_with_the_error(self, run):
        """CP-03."""

        def forward(backend_cx: acprt.Connection, responder: Requests, _cx: acprt.Connection) -> None:
            backend_cx.send_request("work").forward_response_to(responder)

        async def main():
            async with self._proxy(forward) as (client, backend):
                client.request(1, "work")
                await backend.receive()
                client.cancel(1)
                await backend.receive()
                backend.respond_error(1, -32800, "Request cancelled")
                assert await client.receive() == CANCELLED_1

        run(main())

    @pytest.mark.parametrize("opted_in", [False, True])
    def test_custom_forwarding_absorbs_the_cancel_unless_it_opts_in(self, run, opted_in):
        """CP-04, SR-20."""

        def forward(backend_cx: acprt.Connection, responder: Requests, _cx: acprt.Connection) -> None:
            sent = backend_cx.send_request("work")
            if opted_in:
                sent.forward_cancellation_from(responder.cancellation)

            async def answer(outcome: acprt.Result[Any]) -> None:
                responder.respond_with_result(outcome)

            sent.on_receiving_result(answer)

        async def main():
            async with self._proxy(forward) as (client, backend):
                client.request(1, "work")
                await backend.receive()
                client.cancel(1)
                await client.settled()
                assert await backend.settled() == ([cancel(1)] if opted_in else [])
                backend.respond(1, "done")
                assert await client.receive() == result(1, "done")

        run(main())

    def test_method_that_waits_for_the_backend_cancels_there_too(self, run):
        """CP-04, SR-14: its task is cancelled in `block_task`, and that cancels the request it waits for."""

        async def main():
            async with raw_server_for(acprt.Endpoint("to the backend")) as (backend_cx, backend):
                proxy = acprt.Endpoint("proxy")

                @proxy.method("work")
                async def work(_params: Any) -> Any:
                    return await backend_cx.send_request("work").block_task()

                async with raw_client_of(proxy) as client:
                    client.request(1, "work")
                    assert await backend.receive() == request(1, "work")
                    client.cancel(1)
                    assert await client.receive() == CANCELLED_1
                    assert await backend.receive() == cancel(1)
                    backend.respond(1, "late")
                    assert await backend.settled() == []
                    assert backend_cx.status().counters.late_responses == 1

        run(main())

    @pytest.mark.parametrize("end", ["eof", "closed", "failed"])
    @pytest.mark.parametrize("way", ["method", "ordered method", "request", "result", "late"])
    def test_end_of_the_backend_is_no_end_to_the_client(self, run, caplog, way, end):
        """SR-11, PY-63: an error of the backend's connection that a handler lets out is told in neutral words, as
        `forward_response_to` does it; nothing of what is known here of that end reaches the client.
        """

        caplog.set_level("INFO")

        async def main():
            near, far = acprt.memory_pair()
            backend = RawPeer(far)
            backend_cx = await acprt.Endpoint("to the backend").open(near)
            proxy = acprt.Endpoint("proxy")

            if way == "method":

                @proxy.method("work")
                async def work(_params: Any) -> Any:
                    return await backend_cx.send_request("inner").block_task()

            elif way == "ordered method":

                @proxy.on_receive_dispatch
                async def decline(dispatch: acprt.Dispatch[Any]) -> acprt.Handled:
                    return acprt.Handled.no(dispatch)

                @proxy.method("work")
                async def work_behind(_params: Any) -> Any:
                    return await backend_cx.send_request("inner").block_task()

            elif way == "request":

                @proxy.on_receive_request("work")
                async def wait(_params: Any, _responder: Requests) -> None:
                    await backend_cx.send_request("inner").block_task()

            elif way == "result":

                @proxy.on_receive_request("work")
                async def ask(_params: Any, responder: Requests) -> None:
                    async def answer(outcome: acprt.Result[Any]) -> None:
                        responder.respond_with_result(outcome)

                    backend_cx.send_request("inner").on_receiving_result(answer)

            else:

                @proxy.method("work")
                async def notify(_params: Any) -> None:
                    with pytest.raises(acprt.RpcError):
                        await backend_cx.send_request("inner").block_task()
                    await backend_cx.aclose()
                    backend_cx.send_notification("inner")

            async with raw_client_of(proxy) as client:
                client.request(1, "work")
                assert await backend.receive() == request(1, "inner")
                if end == "eof":
                    backend.close_write()
                elif end == "closed":
                    await backend_cx.aclose()
                else:
                    backend_cx.fail(ValueError("broken"))
                told = (await client.receive())["error"]
                reason = "downstream_failed" if end == "failed" else "downstream_closed"
                assert (told["code"], told["data"]) == (-32603, {"reason": reason, "method": "inner"})
            await backend_cx.aclose()

        run(main())
        lets_out = way in ("method", "ordered method", "late")
        assert ("work failed with a connection: [-32603]" in caplog.text) is lets_out

    def test_word_of_the_backend_is_passed_on_and_is_no_end(self, run):
        """SR-10: what a peer says goes on as it is; and it ends no connection, so the predicate says no."""
        data = {"reason": "incoming_transport_closed", "method": "work"}
        seen: list[acprt.RpcError] = []

        async def main():
            async with raw_server_for(acprt.Endpoint("to the backend")) as (backend_cx, backend):
                proxy = acprt.Endpoint("proxy")

                @proxy.method("work")
                async def work(_params: Any) -> Any:
                    try:
                        return await backend_cx.send_request("work").block_task()
                    except acprt.RpcError as told:
                        seen.append(told)
                        raise

                async with raw_client_of(proxy) as client:
                    client.request(1, "work")
                    await backend.receive()
                    backend.respond_error(1, -32603, "Incoming transport closed", data=data)
                    assert await client.receive() == error(1, -32603, "Incoming transport closed", data)

        run(main())
        assert not acprt.is_incoming_transport_closed(seen[0])

    def test_cancel_can_be_sent_for_any_id(self, run):
        """CP-06: the low-level way is a notification like any other."""

        async def main():
            async with raw_server_for(acprt.Endpoint("x")) as (cx, peer):
                cx.send_notification("$/cancel_request", {"requestId": "anything"})
                assert await peer.receive() == cancel("anything")

        run(main())

    def test_handler_may_translate_the_cancel_itself(self, run):
        """CP-05: it is offered the notification in wire order, with the id of its own hop."""

        async def main():
            async with raw_server_for(acprt.Endpoint("to the backend")) as (backend_cx, backend):
                proxy = acprt.Endpoint("proxy")

                @proxy.on_receive_request("work")
                async def work(_params: Any, responder: Requests) -> None:
                    backend_cx.send_notification("start", {"name": responder.id})
                    kept.append(responder)

                @proxy.on_receive_notification("$/cancel_request")
                async def translate(params: Any) -> None:
                    backend_cx.send_notification("stop", {"name": params["requestId"]})

                kept: list[Requests] = []
                async with raw_client_of(proxy) as client:
                    client.request("a", "work")
                    assert await backend.receive() == notification("start", {"name": "a"})
                    client.cancel("a")
                    assert await backend.receive() == notification("stop", {"name": "a"})
                    kept.pop().respond("stopped")
                    assert await client.receive() == result("a", "stopped")

        run(main())
