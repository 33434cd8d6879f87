"""What a caller gets wrong is refused before it reaches the peer; what a peer gets wrong is not heard."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

import acprt
from acprt import mcp
from tests.mcp.scripted import ERAS, LEGACY, MODERN, PREFIX, client_endpoint, client_of, server_for, server_of
from tests.rawpeer import turns

both_eras = pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)


async def listens(note: mcp.ProgressNotification) -> None: ...


@both_eras
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"idle_seconds": None}, TypeError),
        ({"absolute_seconds": "5"}, TypeError),
        ({"idle_seconds": math.nan}, ValueError),
        ({"absolute_seconds": math.nan}, ValueError),
        ({"on_progress": listens}, TypeError),
    ],
)
def test_call_with_a_wrong_option_sends_nothing(run, era, wrong, error):
    """Once sent, the request would run on with nobody to cancel it, or its progress would be heard by nobody."""

    async def main():
        async with server_for(client_endpoint(era)) as (cx, peer):
            with pytest.raises(error, match=next(iter(wrong))):
                await mcp.call(cx, mcp.CallToolRequest(name="x"), **wrong)
            await turns()
            assert peer.unread() == []

    run(main())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"side": "both"}, ValueError),
        ({"side": "client", "cancels": "lax"}, ValueError),
        ({"side": "client", "profile": "0.6"}, ValueError),
        ({"side": "client", "info": "me"}, TypeError),
        ({"side": "client", "info": {"name": "me", "version": "1"}}, TypeError),
    ],
)
def test_dialect_with_a_wrong_option_is_not_made(options: dict[str, Any], error: type[Exception]) -> None:
    """Peers would be the first to meet it."""
    with pytest.raises(error, match=list(options)[-1]):
        mcp.negotiated(**options)
    with pytest.raises(error, match=list(options)[-1]):
        mcp.dialect(MODERN, **options)


@both_eras
def test_progress_behind_the_result_is_heard_by_nobody(run, era):
    """A peer must not send it; who listens has the result by then, as far as the wire is concerned."""
    client = client_endpoint(era)

    async def main():
        async with server_for(client) as (cx, peer):
            heard: list[float] = []
            request = mcp.CallToolRequest(name="x")
            call = asyncio.create_task(mcp.call(cx, request, on_progress=lambda note: heard.append(note.progress)))
            sent = await peer.receive()

            def progress(number: int) -> dict[str, Any]:
                params = {"progressToken": sent["params"]["_meta"]["progressToken"], "progress": number}
                return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}

            result = {"jsonrpc": "2.0", "id": sent["id"], "result": {"content": []}}
            peer.send(progress(1), result, progress(2))  # in one write
            assert (await call).content == []
            assert heard == [1]

    run(main())


def test_classifier_takes_a_policy() -> None:
    with pytest.raises(TypeError, match="EraPolicy"):
        mcp.StdioEraClassifier("auto")  # type: ignore[arg-type]


@both_eras
class TestServing:
    def test_number_that_json_does_not_know_is_no_progress(self, run, era):
        """It would be null on the wire."""
        server = server_of(era)

        @server.method("report")
        async def report(params: Any, cx: acprt.Connection) -> Any:
            for progress, total in ((math.nan, None), (1, math.inf), (-math.inf, 3)):
                with pytest.raises(ValueError, match="finite"):
                    mcp.report_progress(cx, progress, total)
            return {}

        async def main():
            async with client_of(server, era) as client:
                client.send(client.call(1, "report", progressToken=1))
                assert [(line.get("method"), "result" in line) for line in await client.settled()] == [(None, True)]

        run(main())

    @pytest.mark.parametrize("asked", [{}, {PREFIX + "logLevel": "debug"}], ids=["unasked", "asked"])
    def test_level_that_there_is_not_is_refused(self, run, era, asked):
        """Whatever the client wants to hear."""
        server = server_of(era)

        @server.method("report")
        async def report(params: Any, cx: acprt.Connection) -> Any:
            with pytest.raises(ValueError, match="'loud'"):
                mcp.log(cx, "loud", "x")  # type: ignore[arg-type]
            return {}

        async def main():
            async with client_of(server, era) as client:
                client.send(client.call(1, "report", **(asked if era is not LEGACY else {})))
                assert [(line.get("method"), "result" in line) for line in await client.settled()] == [(None, True)]

        run(main())


def test_modern_client_is_not_blamed_for_what_its_server_may_not_ask(run):
    """Its own request was in order: the answer is an internal error, and says what the handler tried."""
    server = server_of(MODERN)

    @server.method("ask")
    async def ask(params: Any, cx: acprt.Connection) -> Any:
        return await cx.send_request("sampling/createMessage", {}).block_task()

    async def main():
        async with client_of(server, MODERN) as client:
            client.send(client.call(1, "ask"))
            (answer,) = await client.settled()
            assert answer["error"]["code"] == acprt.ErrorCode.INTERNAL_ERROR
            assert "sends no requests" in answer["error"]["data"]

    run(main())
