"""A dialect follows a handshake: it sees answers as they pass, names work to cancel, and hands a connection over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import acprt
from acprt.runtime.handlers import Chains
from acprt.wire.frames import NotificationFrame, RequestFrame, ResponseFrame
from tests.rawpeer import raw_client_of, raw_server_for


class Following(acprt.Dialect):
    """Keeps what it sees of the requests called `hello`, and may replace the answers to ours."""

    def __init__(self, verdict: acprt.RpcError | None = None) -> None:
        self.asked: list[str] = []
        self.seen: list[Any] = []
        self.verdict = verdict
        self.cx: acprt.Connection | None = None

    def connected(self, cx: acprt.Connection) -> None:
        self.cx = cx

    def admit(self, frame: RequestFrame | NotificationFrame) -> acprt.RpcError | None:
        self.asked.append(frame.method)
        return acprt.RpcError(-1, "refused") if frame.method == "refused" else None

    def follow(self, frame: RequestFrame) -> Callable[[ResponseFrame | None], None] | None:
        return self.seen.append if frame.method in ("hello", "refused") else None

    def follow_sent(
        self, id: Any, method: str
    ) -> Callable[[ResponseFrame | acprt.RpcError], acprt.RpcError | None] | None:
        return self.judge if method == "hello" else None

    def judge(self, outcome: ResponseFrame | acprt.RpcError) -> acprt.RpcError | None:
        self.seen.append(outcome)
        return self.verdict


def greeting(dialect: acprt.Dialect) -> acprt.Endpoint:
    endpoint = acprt.Endpoint("greeting", dialect=dialect)

    @endpoint.method("hello")
    async def hello(params: Any) -> Any:
        params = params or {}
        if params == {"fail": True}:
            raise acprt.RpcError(7, "no")
        return "welcome" * params.get("times", 1)

    return endpoint


class TestFollow:
    def test_answers_of_followed_requests_are_shown(self, run) -> None:
        """Values and errors, in the order in which they are queued."""

        async def main() -> None:
            dialect = Following()
            async with raw_client_of(greeting(dialect)) as client:
                for id, params in ((1, {}), (2, {"fail": True})):
                    client.request(id, "hello", params)
                    await client.receive()
                await client.settled()
            value, error = dialect.seen
            assert (value.id, bytes(value.result), value.error) == (1, b'"welcome"', None)
            assert (error.id, error.error) == (2, acprt.RpcError(7, "no"))

        run(main())

    def test_long_answer_is_shown_whole(self, run) -> None:
        async def main() -> None:
            dialect = Following()
            async with raw_client_of(greeting(dialect)) as client:
                client.request(1, "hello", {"times": 20_000})
                assert (await client.receive())["result"] == "welcome" * 20_000
            assert bytes(dialect.seen[0].result) == b'"%b"' % (b"welcome" * 20_000)

        run(main())

    def test_members_of_a_batch_are_followed_too(self, run) -> None:
        async def main() -> None:
            dialect = Following()
            async with raw_client_of(greeting(dialect)) as client:
                client.send([{"jsonrpc": "2.0", "id": 1, "method": "hello"}])
                await client.receive()
            assert [frame.id for frame in dialect.seen] == [1]

        run(main())

    def test_refused_request_is_not_followed(self, run) -> None:
        """Its answer is the dialect's own."""

        async def main() -> None:
            dialect = Following()
            async with raw_client_of(greeting(dialect)) as client:
                client.request(1, "refused")
                assert (await client.receive())["error"]["code"] == -1
            assert dialect.seen == []

        run(main())

    def test_request_that_ends_without_an_answer_is_shown_as_none(self, run) -> None:
        class Silent(Following):
            answers_cancelled = False

        async def main() -> None:
            dialect, begun = Silent(), asyncio.Event()
            endpoint = acprt.Endpoint("silent", dialect=dialect)

            @endpoint.method("hello")
            async def hello(_params: Any) -> None:
                begun.set()
                await asyncio.Event().wait()

            async with raw_client_of(endpoint) as client:
                client.request(1, "hello")
                await begun.wait()
                client.cancel(1)
                await client.settled()
            assert dialect.seen == [None]

        run(main())

    def test_dialect_that_admits_all_is_asked_no_more(self, run) -> None:
        """From the next read on."""

        async def main() -> None:
            dialect = Following()
            async with raw_client_of(greeting(dialect)) as client:
                client.request(1, "hello")
                await client.receive()
                dialect.admits_all = True
                client.request(2, "hello")
                client.notify("note")
                await client.receive()
                await client.settled()
            assert dialect.asked == ["hello"]
            assert [frame.id for frame in dialect.seen] == [1]

        run(main())


class TestFollowSent:
    def test_outcome_is_seen_before_whoever_waits(self, run) -> None:
        async def main() -> None:
            dialect = Following()
            async with raw_server_for(acprt.Endpoint("x", dialect=dialect)) as (cx, server):
                sent, other = cx.send_request("hello"), cx.send_request("other")
                server.respond(sent.id, "welcome")
                server.respond(other.id, "too")
                assert await other.block_task() == "too"
                assert [bytes(frame.result) for frame in dialect.seen] == [b'"welcome"']
                assert await sent.block_task() == "welcome"

        run(main())

    @pytest.mark.parametrize("way", ["block_task", "callback"])
    def test_error_that_it_returns_is_the_outcome(self, run, way) -> None:
        async def main() -> None:
            dialect = Following(acprt.RpcError(9, "not so"))
            async with raw_server_for(acprt.Endpoint("x", dialect=dialect)) as (cx, server):
                sent = cx.send_request("hello")
                outcome: asyncio.Future[Any] = cx.loop.create_future()
                if way == "callback":

                    async def answered(result: acprt.Result[Any]) -> None:
                        outcome.set_result(result)

                    sent.on_receiving_result(answered)
                server.respond((await server.receive())["id"], "welcome")
                if way == "callback":
                    assert await outcome == acprt.Err(acprt.RpcError(9, "not so"))
                else:
                    with pytest.raises(acprt.RpcError, match="not so"):
                        await sent.block_task()

        run(main())

    def test_local_failure_is_an_outcome(self, run) -> None:
        """A value that cannot be written, and the end of the connection."""

        async def main() -> None:
            dialect = Following()
            async with raw_server_for(acprt.Endpoint("x", dialect=dialect)) as (cx, server):
                with pytest.raises(acprt.RpcError):
                    await cx.send_request("hello", [object()]).block_task()
                assert isinstance(dialect.seen[0], acprt.RpcError)
                sent = cx.send_request("hello")
                server.close_write()
                with pytest.raises(acprt.RpcError, match="Incoming transport closed"):
                    await sent.block_task()
                assert acprt.is_incoming_transport_closed(dialect.seen[1])

        run(main())

    def test_request_that_was_refused_is_not_followed(self, run) -> None:
        class Refusing(Following):
            def on_request_sent(self, id: Any, method: str, params: Any) -> acprt.RpcError | None:
                return acprt.RpcError(-2, "not now")

        async def main() -> None:
            dialect = Refusing()
            async with raw_server_for(acprt.Endpoint("x", dialect=dialect)) as (cx, _server):
                with pytest.raises(acprt.RpcError, match="not now"):
                    await cx.send_request("hello").block_task()
            assert dialect.seen == []

        run(main())


class TestCancelGroup:
    def endpoint(
        self, notice: acprt.CancelGroup, asked: list[bytes] | None = None
    ) -> tuple[acprt.Endpoint, asyncio.Queue[Any]]:
        class ByRoom(acprt.Dialect):
            cancel_methods = frozenset({"leave"})
            grouped_methods = frozenset({"talk"})

            def parse_cancel(self, frame: NotificationFrame) -> acprt.CancelGroup:
                return notice

            def group(self, params: msgspec.Raw) -> bytes:
                if asked is not None:
                    asked.append(bytes(params))
                return bytes(params)

        endpoint, begun = acprt.Endpoint("x", dialect=ByRoom()), asyncio.Queue[Any]()

        @endpoint.method("talk")
        async def talk(params: Any) -> None:
            begun.put_nowait(params)
            await asyncio.Event().wait()

        return endpoint, begun

    def test_what_is_of_the_group_is_cancelled_and_answered_alike(self, run) -> None:
        """The answer takes the place of any error."""

        async def main() -> None:
            endpoint, begun = self.endpoint(acprt.CancelGroup(b'["a"]', {"left": True}))
            async with raw_client_of(endpoint) as client:
                for id, room in ((1, "a"), (2, "b"), (3, "a")):
                    client.request(id, "talk", [room])
                    await begun.get()
                client.notify("leave")
                answers = [await client.receive(), await client.receive()]
                assert answers == [{"jsonrpc": "2.0", "id": id, "result": {"left": True}} for id in (1, 3)]
                assert await client.settled() == []

        run(main())

    def test_without_an_answer_it_is_an_error(self, run) -> None:
        async def main() -> None:
            endpoint, begun = self.endpoint(acprt.CancelGroup(b'["a"]'))
            async with raw_client_of(endpoint) as client:
                client.request(1, "talk", ["a"])
                await begun.get()
                client.notify("leave")
                assert (await client.receive())["error"]["code"] == -32800

        run(main())

    def test_request_that_may_not_be_cancelled_goes_on(self, run) -> None:
        async def main() -> None:
            endpoint, begun = self.endpoint(acprt.CancelGroup(b'["a"]'))
            endpoint.dialect.may_cancel_incoming = lambda method: False  # type: ignore[method-assign]  # for this test
            endpoint.limits = acprt.Limits(drain_seconds=0.05)  # what goes on must not hold the end
            async with raw_client_of(endpoint) as client:
                client.request(1, "talk", ["a"])
                await begun.get()
                client.notify("leave")
                assert await client.settled() == []

        run(main())

    def test_answer_that_cannot_be_written_is_an_error(self, run, caplog) -> None:
        async def main() -> None:
            endpoint, begun = self.endpoint(acprt.CancelGroup(b'["a"]', object()))
            async with raw_client_of(endpoint) as client:
                client.request(1, "talk", ["a"])
                await begun.get()
                client.notify("leave")
                assert (await client.receive())["error"]["data"]["phase"] == "serialization"

        run(main())
        assert "cannot be written as JSON" in caplog.text

    def test_each_request_is_looked_into_once(self, run) -> None:
        """However many groups are cancelled, and not at all where none is: params may be large, and cancels many."""

        async def main() -> None:
            asked: list[bytes] = []
            endpoint, begun = self.endpoint(acprt.CancelGroup(b"nobody's"), asked)
            endpoint.limits = acprt.Limits(drain_seconds=0.05)
            async with raw_client_of(endpoint) as client:
                client.request(1, "talk", ["a"])
                await begun.get()
                assert asked == []
                for _ in range(3):
                    client.notify("leave")
                client.request(2, "talk", ["b"])
                await begun.get()
                client.notify("leave")
                assert await client.settled() == []
                assert asked == [b'["a"]', b'["b"]']

        run(main())


class TestHandOver:
    def test_other_handlers_serve_the_rest(self, run) -> None:
        """From the next frame on, close callbacks included."""
        later, closed = acprt.Endpoint("later"), []

        @later.method("who")
        async def who_later(_params: Any) -> str:
            return "later"

        @later.on_close
        async def bye(cx: acprt.Connection) -> None:
            closed.append("later")

        first = acprt.Endpoint("first")

        @first.method("who")
        async def who_first(_params: Any) -> str:
            return "first"

        @first.on_close
        async def never(cx: acprt.Connection) -> None:
            closed.append("first")

        @first.on_receive_notification("switch")
        async def switch(_params: Any, cx: acprt.Connection) -> None:
            cx.hand_over(Chains(later._routes), later.close_callbacks)

        async def main() -> None:
            async with raw_client_of(first) as client:
                client.request(1, "who")
                client.notify("switch")
                client.request(2, "who")
                answers = {line["id"]: line["result"] for line in (await client.receive(), await client.receive())}
                assert answers == {1: "first", 2: "later"}
            assert closed == ["later"]

        run(main())


def test_dialect_meets_its_connection_before_the_first_frame(run) -> None:
    dialect = Following()

    async def main() -> None:
        async with raw_server_for(acprt.Endpoint("x", dialect=dialect)) as (cx, _server):
            assert dialect.cx is cx
            assert cx.dialect is dialect

    run(main())
