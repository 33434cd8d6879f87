"""A peer's cancel under both eras: what it reaches, what it does not, and that nothing more is said."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import msgspec
import pytest

import acprt
from acprt import mcp
from tests.mcp.scripted import ERAS, LEGACY, MODERN, MODERN_META, PREFIX, Tools, client_of, server_of, until

both_eras = pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)


@both_eras
class TestInFlight:
    def test_cancel_reaches_the_handler_and_nothing_more_is_written(self, run, era):
        """It ends with CancelledError; no answer, no progress, no log; the server serves on."""
        server = server_of(era)

        async def main():
            tools = Tools(server)
            async with client_of(server, era) as client:
                client.send(client.call(2, "slow", {"name": "a"}, progressToken="p"))
                await until(lambda: tools.seen)
                client.send(client.cancelled(2, reason="user"))
                await until(lambda: tools.ended)
                client.send(client.call(3, "quick", {"name": "b"}))
                answer = await client.peer.receive()
                assert (answer["id"], answer["result"]["quick"]) == (3, "b")
                assert await client.settled() == []
            assert tools.ended == [("cancelled", "a")]

        run(main())

    def test_handler_that_swallows_its_cancel_is_not_heard(self, run, era):
        """Neither what it reports afterwards nor its result, and a log level does not change that."""
        server = server_of(era)

        async def main():
            tools = Tools(server)
            meta: dict[str, Any] = {"progressToken": 0, PREFIX + "logLevel": "debug"}
            async with client_of(server, era) as client:
                client.send(client.call(2, "stubborn", **meta))
                await client.settled()
                client.send(client.cancelled(2))
                await until(lambda: tools.ended == ["swallowed"])
                assert await client.settled() == []
                tools.go.set()
                client.send(client.call(3, "stubborn", **meta))
                lines = [await client.peer.receive() for _ in range(4)]
                assert [line.get("method", line.get("id")) for line in lines] == [
                    "notifications/progress",
                    "notifications/message",
                    "notifications/other",
                    3,
                ]

        run(main())

    def test_cancel_in_the_chunk_of_its_request_is_in_time(self, run, era):
        """The request is registered before the cancel is looked at: its handler never begins."""
        server = server_of(era)

        async def main():
            tools = Tools(server)
            async with client_of(server, era) as client:
                client.send(client.call(2, "slow", {"name": "a"}), client.cancelled(2))
                assert await client.settled() == []
            assert tools.seen == []

        run(main())

    def test_what_a_thread_sends_while_the_cancel_is_read_is_not_heard(self, run, era):
        """It passed the gate in its thread; the cancel comes before its turn on the loop."""
        server = server_of(era)
        sending, cancelled = threading.Event(), threading.Event()

        @server.method("slow")
        def slow(params: Any, cx: acprt.Connection) -> None:
            hand_over = cx.call_on_loop

            def later(callback: Any) -> None:
                sending.set()
                assert cancelled.wait(10)
                hand_over(callback)

            cx.call_on_loop = later  # type: ignore[method-assign]
            cx.send_notification("notifications/late", {})
            cx.call_on_loop = hand_over  # type: ignore[method-assign]
            cx.call_on_loop(heard.set)

        heard = asyncio.Event()

        async def main():
            async with client_of(server, era) as client:
                client.send(client.call(2, "slow"))
                assert await asyncio.to_thread(sending.wait, 10)
                client.send(client.cancelled(2))
                assert await client.settled() == []
                cancelled.set()
                await heard.wait()
                assert await client.settled() == []

        run(main())

    def test_second_cancel_is_nothing(self, run, era):
        server = server_of(era)

        async def main():
            tools = Tools(server)
            async with client_of(server, era) as client:
                client.send(client.call(2, "stubborn"), client.call(3, "slow"))
                await until(lambda: tools.seen)
                client.send(client.cancelled(2), client.cancelled(2), client.cancelled(2))
                assert await client.settled() == []
                assert tools.ended == ["swallowed"]
                client.send(client.cancelled(3))

        run(main())

    def test_cancel_ahead_of_its_request_is_dropped(self, run, era):
        """That id is unknown at that moment: the request then runs."""
        server = server_of(era)

        async def main():
            Tools(server)
            async with client_of(server, era) as client:
                client.send(client.call(1, "quick"))
                await client.peer.receive()
                client.send(client.cancelled(2), client.call(2, "quick", {"name": "a"}))
                assert (await client.peer.receive())["result"]["quick"] == "a"

        run(main())

    def test_old_cancel_does_not_hit_a_reused_id(self, run, era):
        """It came before the id was used again; a new generation has its own cancel."""
        server = server_of(era)

        async def main():
            tools = Tools(server)
            async with client_of(server, era) as client:
                client.send(client.call(2, "slow", {"name": "first"}))
                await until(lambda: tools.seen)
                client.send(client.cancelled(2), client.call(2, "slow", {"name": "second"}))
                await until(lambda: len(tools.seen) == 2)
                assert await client.settled() == []
                assert tools.ended == [("cancelled", "first")]
                tools.go.set()
                assert (await client.peer.receive())["id"] == 2
                assert tools.ended[1:] == [("done", "second")]

        run(main())

    def test_cancel_of_an_answered_request_is_nothing(self, run, era):
        """The answer has left: who waits for it drops it."""
        server = server_of(era)

        async def main():
            Tools(server)
            async with client_of(server, era) as client:
                client.send(client.call(2, "quick"))
                assert (await client.peer.receive())["id"] == 2
                client.send(client.cancelled(2))
                assert await client.settled() == []

        run(main())


@both_eras
class TestMatching:
    @pytest.mark.parametrize(
        ("id", "named"),
        [
            ("0", "0"),
            ("0", "-0.0"),
            ("-1", "-1"),
            ('""', '""'),
            ('"a"', '"\\u0061"'),
            ("1", "1.0"),
            ("1", "1e0"),
            ("1.0", "1"),
            ("1e1", "10"),
            ("92233720368547758080", "92233720368547758080"),
            ("-92233720368547758080", "-9223372036854775808e1"),
        ],
    )
    def test_same_id_in_any_spelling_is_cancelled(self, run, era, id, named):
        """Integers by value, strings by text."""
        self._check(run, era, id, named, cancelled=True)

    @pytest.mark.parametrize(
        ("id", "named"), [("1", '"1"'), ('"3"', "3"), ('"07"', "7"), ("7", '"07"'), ("0", '""'), ("1", "2")]
    )
    def test_other_kind_of_id_is_another_id(self, run, era, id, named):
        """Nothing is coerced."""
        self._check(run, era, id, named, cancelled=False)

    @staticmethod
    def _check(run, era, id, named, *, cancelled):
        server = server_of(era)

        async def main():
            tools = Tools(server)
            async with client_of(server, era) as client:
                meta = client.call(0, "slow")["params"]
                line = b'{"jsonrpc":"2.0","id":%b,"method":"slow","params":%b}'

                client.send(line % (id.encode(), msgspec.json.encode(meta)))
                await until(lambda: tools.seen)
                client.send(client_cancel(named))
                assert await client.settled() == []
                assert tools.ended == ([("cancelled", None)] if cancelled else [])
                tools.go.set()
                if not cancelled:
                    answer = await client.peer.receive_raw()
                    assert answer.startswith(b'{"jsonrpc":"2.0","id":%b,"result":' % id.encode())

        run(main())


def client_cancel(id: str) -> bytes:
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}' % id.encode()


@both_eras
class TestSpelledIds:
    @pytest.mark.parametrize(
        "id", ["1.0", "1e3", "-0", "-0.0", "92233720368547758080", "123456789012345678901234567890"]
    )
    def test_answer_repeats_an_id_as_it_was_spelled(self, run, era, id):
        """Results and errors."""
        server = server_of(era)

        async def main():
            Tools(server)
            async with client_of(server, era) as client:
                for method in ("quick", "nobody"):
                    call = client.call(0, method)

                    line = msgspec.json.encode(call).replace(b'"id":0', b'"id":' + id.encode())
                    client.send(line)
                    answer = await client.peer.receive_raw()
                    assert answer.startswith(b'{"jsonrpc":"2.0","id":%b,' % id.encode()), answer

        run(main())

    def test_status_shows_an_id_as_it_was_spelled(self, run, era):
        """As text: it prints, and is JSON."""
        server = server_of(era)
        connections: list[acprt.Connection] = []

        @server.with_spawned
        async def connected(cx: acprt.Connection) -> None:
            connections.append(cx)

        async def main():
            tools = Tools(server)
            async with client_of(server, era) as client:
                client.send(msgspec.json.encode(client.call(77, "slow")).replace(b"77", b"1.0"))
                await until(lambda: tools.seen)
                status = connections[0].status()
                assert "slow (id '1.0')" in str(status)
                assert json.loads(json.dumps(status.as_dict()))["in_flight"][0]["id"] == "1.0"
                tools.go.set()

        run(main())

    @pytest.mark.parametrize("id", ["null", "1.5", "true", "1e10001", "{}", "[1]"])
    def test_what_is_no_id_is_refused(self, run, era, id):
        """As any request that cannot be read; a number past a double is no JSON to most readers."""
        server = server_of(era)

        async def main():
            async with client_of(server, era) as client:
                client.send(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % id.encode())
                answer = await client.peer.receive()
                assert (answer["id"], answer["error"]["code"]) == (None, -32700 if id == "1e10001" else -32600)

        run(main())


@both_eras
class TestIgnored:
    @pytest.mark.parametrize(
        "params",
        [
            '{"requestId":999}',
            '{"requestId":null}',
            '{"requestId":1.5}',
            '{"requestId":true}',
            '{"requestId":[2]}',
            '{"requestId":2,"reason":null}',
            '{"requestId":2,"reason":5}',
            '{"requestId":2,"_meta":[]}',
            '{"requestId":2,"_meta":{"-bad/x":1}}',
            "{}",
            '{"reason":"x"}',
            "[2]",
            "null",
            "",
        ],
    )
    def test_unknown_and_malformed_cancels_are_silent(self, run, era, params):
        """Nothing is cancelled, nothing is written, nothing breaks."""
        server = server_of(era)

        async def main():
            tools = Tools(server)
            async with client_of(server, era) as client:
                client.send(client.call(2, "slow"))
                await until(lambda: tools.seen)
                rest = f',"params":{params}' if params else ""
                client.send(f'{{"jsonrpc":"2.0","method":"notifications/cancelled"{rest}}}')
                assert await client.settled() == []
                assert tools.ended == []
                tools.go.set()
                assert (await client.peer.receive())["id"] == 2

        run(main())

    def test_cancel_with_an_id_is_an_unknown_request(self, run, era):
        """-32601 with the method, and nothing is cancelled."""
        server = server_of(era)

        async def main():
            tools = Tools(server)
            async with client_of(server, era) as client:
                client.send(client.call(2, "slow"))
                await until(lambda: tools.seen)
                client.send(client.call(77, "notifications/cancelled", {"requestId": 2}))
                answer = await client.peer.receive()
                assert (answer["id"], answer["error"]["code"]) == (77, -32601)
                assert tools.ended == []
                tools.go.set()

        run(main())

    def test_opening_is_not_cancelled(self, run, era):
        """Neither while it runs nor while its answer waits in the outbox."""
        method = "initialize" if era is LEGACY else "server/discover"
        server = acprt.Endpoint("server", dialect=mcp.dialect(era, "server"))

        async def main():
            go = asyncio.Event()

            @server.method(method)
            async def opening(params: Any) -> dict[str, Any]:
                await go.wait()
                return {}

            async with client_of(server, era) as client:
                client.send(client.call(1, method))
                client.send(client.cancelled(1))
                assert await client.settled() == []
                go.set()
                assert (await client.peer.receive())["id"] == 1

        run(main())

    def test_handlers_see_a_cancel_that_is_well_formed(self, run, era):
        """In its place in the order, after it was applied."""
        server = server_of(era)

        async def main():
            heard: list[Any] = []
            tools = Tools(server)

            @server.on_receive_notification
            async def cancelled(note: mcp.CancelledNotification) -> None:
                heard.append((note.request_id, note.reason))

            async with client_of(server, era) as client:
                client.send(client.call(2, "slow"))
                await until(lambda: tools.seen)
                client.send(client.cancelled(1.5), client.cancelled(2, reason="user"))
                await client.settled()
            assert heard == [(2, "user")]

        run(main())


class TestReading:
    """How strictly a cancel is read: peers of 2025 all send, or honour, more than the closed payload."""

    @staticmethod
    def ended_by(run, era, members, version=None, **options):
        server = server_of(era, **options)

        async def main():
            tools = Tools(server)
            async with client_of(server, era) as client:
                if version is not None:
                    client.send(
                        client.call(
                            1,
                            "initialize",
                            {"protocolVersion": version, "clientInfo": MODERN_META[PREFIX + "clientInfo"]},
                        )
                    )
                    assert (await client.peer.receive())["result"]["protocolVersion"] == version
                client.send(client.call(2, "slow"))
                await until(lambda: tools.seen)
                client.send(client.cancelled(2, **members))
                assert await client.settled() == []
                tools.go.set()
                return bool(tools.ended)

        return run(main())

    @pytest.mark.parametrize(("version", "ended"), [(None, False), ("2024-11-05", False), ("2025-11-25", True)])
    def test_extra_member_counts_where_a_version_of_2025_was_agreed(self, run, version, ended):
        """The closed payload is that of 2024-11-05."""
        assert self.ended_by(run, LEGACY, {"vendor": 1}, version) is ended

    def test_reading_can_be_chosen(self, run):
        assert self.ended_by(run, LEGACY, {"vendor": 1}, cancels="lenient") is True
        assert self.ended_by(run, LEGACY, {"vendor": 1}, "2025-11-25", cancels="strict") is False

    def test_modern_payload_is_open(self, run):
        """And the keys that clients stamp on everything do no harm."""
        assert self.ended_by(run, MODERN, {"vendor": 1, "_meta": MODERN_META}) is True

    def test_profile_can_be_chosen(self, run):
        """They differ in `_meta` on a legacy cancel."""
        assert self.ended_by(run, LEGACY, {"_meta": {"traceparent": "00"}}) is True
        assert self.ended_by(run, LEGACY, {"_meta": {"traceparent": "00"}}, profile="0.5") is False

    def test_half_a_surrogate_in_a_reason_does_not_save_a_request(self, run):
        """JavaScript cuts strings in the middle of a pair."""
        server = server_of(MODERN)

        async def main():
            tools = Tools(server)
            async with client_of(server, MODERN) as client:
                client.send(client.call(2, "slow"))
                await until(lambda: tools.seen)
                client.send(
                    rb'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"\ud83d"}}'
                )
                assert await client.settled() == []
                assert tools.ended

        run(main())
