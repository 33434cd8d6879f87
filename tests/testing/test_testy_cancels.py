"""testy for clients of version 1: a turn that is cancelled, closed or deleted ends as `cancelled`, wherever it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from acprt.testing import testy
from tests.acp.talking import prompt_params, ready_client_of
from tests.rawpeer import RawPeer

ID = "testy-session-1"
HELLO = {
    "protocolVersion": 1,
    "clientInfo": {"name": "raw", "version": "1"},
    "clientCapabilities": {"terminal": True, "elicitation": {"form": {}, "url": {}}},
}
CANCELLED = {"stopReason": "cancelled"}


@asynccontextmanager
async def client_in_session() -> AsyncIterator[RawPeer]:
    async with ready_client_of(testy.agent_v1(), HELLO) as client:
        client.request("new", "session/new", {"cwd": "/", "mcpServers": []})
        assert (await client.receive())["result"]["sessionId"] == ID
        yield client


def prompt(client: RawPeer, id: str, text: str) -> None:
    client.request(id, "session/prompt", prompt_params(ID, text))


async def next_of(client: RawPeer, *, method: str = "", id: Any = None) -> dict[str, Any]:
    """The next request or notification of that method, or the next answer to that id."""
    while True:
        line: dict[str, Any] = await client.receive()
        if line["method"] == method if "method" in line else line["id"] == id:
            return line


async def asked_for(client: RawPeer, method: str, *results: Any) -> dict[str, Any]:
    """Answer the requests that come with `results`; the one behind them, which must be of that method."""
    answers = list(results)
    while True:
        line: dict[str, Any] = await client.receive()
        if "id" in line and "method" in line:
            if not answers:
                assert line["method"] == method
                return line
            client.respond(line["id"], answers.pop(0))


async def status_of(client: RawPeer) -> str:
    """What `cancel_status` says: it speaks only when there was none."""
    prompt(client, "status", "cancel_status")
    stop_reason: str = (await next_of(client, id="status"))["result"]["stopReason"]
    return stop_reason


def test_wait_for_cancel_ends_with_a_cancel(run) -> None:
    """Nothing is said, and the cancel is not remembered: it was heard."""

    async def main() -> None:
        async with client_in_session() as client:
            prompt(client, "p", "wait_for_cancel")
            assert await client.settled() == []
            client.notify("session/cancel", {"sessionId": ID})
            assert await client.receive() == {"jsonrpc": "2.0", "id": "p", "result": CANCELLED}
            assert await status_of(client) == "end_turn"
            client.notify("session/cancel", {"sessionId": ID})
            assert await status_of(client) == "cancelled"

    run(main())


def test_cancel_stays_in_force_for_all_turns_of_the_session(run) -> None:
    """Each of them ends."""

    async def main() -> None:
        async with client_in_session() as client:
            for id in ("p", "q"):
                prompt(client, id, "wait_for_cancel")
            await client.settled()
            client.notify("session/cancel", {"sessionId": ID})
            answers = [await client.receive(), await client.receive()]
            assert {answer["id"]: answer["result"] for answer in answers} == {"p": CANCELLED, "q": CANCELLED}
            assert await status_of(client) == "end_turn"

    run(main())


@pytest.mark.parametrize("scenario", ["cancel_status", "full"])
def test_cancel_of_an_idle_session_is_remembered_once(run, scenario: str) -> None:
    """`cancel_status` and `full` tell it by their stop reason, and only the first that asks."""

    async def main() -> None:
        async with client_in_session() as client:
            client.notify("session/cancel", {"sessionId": ID})
            await client.settled()
            prompt(client, "hello", "hello")
            assert (await next_of(client, id="hello"))["result"] == {"stopReason": "end_turn"}
            prompt(client, "p", scenario)
            while (line := await client.receive()).get("id") != "p":
                if "id" in line:
                    client.respond_error(line["id"], -32601, "Method not found")
            assert line["result"] == CANCELLED
            assert await status_of(client) == "end_turn"

    run(main())


def test_cancel_of_another_session_is_another_session_s(run) -> None:
    """Nothing here is cancelled by it."""

    async def main() -> None:
        async with client_in_session() as client:
            client.notify("session/cancel", {"sessionId": "nobody"})
            assert await status_of(client) == "end_turn"

    run(main())


def test_cancel_of_the_request_is_no_cancel_of_the_session(run) -> None:
    """`$/cancel_request` is answered -32800; a cancel of the idle session after it is remembered."""

    async def main() -> None:
        async with client_in_session() as client:
            prompt(client, "p", "wait_for_cancel")
            await client.settled()
            client.cancel("p")
            assert (await client.receive())["error"]["code"] == -32800
            client.notify("session/cancel", {"sessionId": ID})
            assert await status_of(client) == "cancelled"

    run(main())


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_end_of_the_session_cancels_what_runs(run, method: str) -> None:
    """The turn is answered first; the session is gone then."""

    async def main() -> None:
        async with client_in_session() as client:
            prompt(client, "p", "wait_for_cancel")
            await client.settled()
            client.request("end", method, {"sessionId": ID})
            assert await client.receive() == {"jsonrpc": "2.0", "id": "p", "result": CANCELLED}
            assert await client.receive() == {"jsonrpc": "2.0", "id": "end", "result": {}}
            prompt(client, "again", "hello")
            assert (await client.receive())["error"]["code"] == -32602

    run(main())


@pytest.mark.parametrize(
    ("method", "answers"),
    [
        ("session/request_permission", []),
        ("fs/write_text_file", [{"outcome": {"outcome": "cancelled"}}]),
        ("terminal/output", [{"outcome": {"outcome": "cancelled"}}, {}, {"content": ""}, {"terminalId": "t"}]),
    ],
)
@pytest.mark.parametrize("end", ["session/cancel", "session/close"])
def test_question_under_way_is_taken_back(run, method: str, answers: list[Any], end: str) -> None:
    """The client is told by `$/cancel_request`, and nothing more is asked."""

    async def main() -> None:
        async with client_in_session() as client:
            prompt(client, "p", "callbacks")
            question = await asked_for(client, method, *answers)
            if end == "session/cancel":
                client.notify(end, {"sessionId": ID})
            else:
                client.request("end", end, {"sessionId": ID})
            taken_back = await next_of(client, method="$/cancel_request")
            assert taken_back["params"] == {"requestId": question["id"]}
            client.respond_error(question["id"], -32800, "Request cancelled")
            assert (await next_of(client, id="p"))["result"] == CANCELLED
            assert [line for line in await client.settled() if "method" in line] == []

    run(main())


class TestTerminalOfFull:
    """The terminal that `full` shows in a tool call is given back whenever the turn is cut."""

    @staticmethod
    async def cut_while_creating(client: RawPeer) -> dict[str, Any]:
        """The request for the terminal, which is not answered."""
        prompt(client, "p", "full")
        question = await asked_for(client, "terminal/create")
        client.notify("session/cancel", {"sessionId": ID})
        await next_of(client, method="$/cancel_request")
        return question

    def test_no_terminal_nothing_to_give_back(self, run) -> None:
        """The client cancelled the request for it: nothing comes of it."""

        async def main() -> None:
            async with client_in_session() as client:
                question = await self.cut_while_creating(client)
                client.respond_error(question["id"], -32800, "Request cancelled")
                assert (await next_of(client, id="p"))["result"] == CANCELLED
                assert await client.settled() == []

        run(main())

    def test_terminal_that_comes_late_is_given_back(self, run) -> None:
        """The client made one in spite of the cancel."""

        async def main() -> None:
            async with client_in_session() as client:
                question = await self.cut_while_creating(client)
                assert (await next_of(client, id="p"))["result"] == CANCELLED
                client.respond(question["id"], {"terminalId": "late"})
                release = await next_of(client, method="terminal/release")
                assert release["params"] == {"sessionId": ID, "terminalId": "late"}
                client.respond(release["id"], {})

        run(main())

    def test_terminal_that_comes_with_the_cancel_is_given_back(self, run) -> None:
        """Both are read at once, in either order."""

        async def main(cancel_first: bool) -> None:
            async with client_in_session() as client:
                prompt(client, "p", "full")
                question = await asked_for(client, "terminal/create")
                answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"terminalId": "t"}}
                cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": ID}}
                client.send(*((cancel, answer) if cancel_first else (answer, cancel)))
                release = await next_of(client, method="terminal/release")
                assert release["params"]["terminalId"] == "t"
                client.respond(release["id"], {})

        run(main(True))
        run(main(False))

    def test_giving_it_back_is_not_taken_back(self, run) -> None:
        """A turn that is cancelled while it gives back the terminal ends at once, and leaves that request alone."""

        async def main() -> None:
            async with client_in_session() as client:
                prompt(client, "p", "full")
                release = await asked_for(client, "terminal/release", {"terminalId": "t"})
                client.notify("session/cancel", {"sessionId": ID})
                assert (await client.receive()) == {"jsonrpc": "2.0", "id": "p", "result": CANCELLED}
                client.respond(release["id"], {})
                assert await client.settled() == []

        run(main())


def test_end_of_input_ends_a_turn_that_waits(run) -> None:
    """Nobody is left to cancel it: after the drain it is given up."""

    async def main() -> None:
        async with client_in_session() as client:
            prompt(client, "p", "wait_for_cancel")
            await client.settled()
            client.request("end", "session/close", {"sessionId": ID})
            client.close_write()
            await asyncio.wait_for(client.at_eof.wait(), 10)
            assert [line["id"] for line in client.unread()] == ["p", "end"]

    run(main())
