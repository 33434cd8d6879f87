"""Messages that are read late or never, streams of any order, and the mailbox of a turn."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, strategies

import acprt
from acprt import claude
from acprt.claude.mailbox import Mailbox
from acprt.claude.tickets import Tickets, TicketState
from tests.claude.talking import begin, fake_client, kinds, raw_client, read


class TestSlowReaders:
    def test_reader_too_far_behind_gets_an_error_and_the_turn_is_stopped(self, run) -> None:
        async def main() -> None:
            async with (
                raw_client(limits=acprt.Limits(session_bytes=10_000)) as (cli, peer),
                cli.prompt("go") as turn,
            ):
                uuid = await peer.prompt()
                begin(peer, uuid)
                for _ in range(100):
                    peer.say("assistant", message={"content": [{"type": "text", "text": "x" * 500}]})
                assert (await peer.receive())["request"] == {"subtype": "interrupt"}
                peer.result(uuid, subtype="error_during_execution", terminal_reason="aborted_streaming")
                messages = []
                with pytest.raises(claude.MessagesLost, match="session_bytes"):
                    async for message in turn:
                        messages.append(message)  # noqa: PERF401  # what came before the error is the point
                assert 10 < len(messages) < 30

        run(main())

    def test_message_larger_than_the_limit_reaches_a_reader_who_keeps_up(self, run) -> None:
        async def main() -> None:
            async with raw_client(limits=acprt.Limits(session_bytes=10_000)) as (cli, peer):
                reading = asyncio.create_task(cli.prompt("go").text())
                uuid = await peer.prompt()
                begin(peer, uuid)
                for letter in "ab":  # in one burst: the reader cannot take the first before the second is there
                    peer.say("assistant", message={"content": [{"type": "text", "text": letter * 50_000}]})
                peer.result(uuid)
                assert await reading == "a" * 50_000 + "b" * 50_000

        run(main())

    def test_between_prompts_the_oldest_are_dropped_and_counted(self, run) -> None:
        async def main() -> None:
            async with raw_client(limits=acprt.Limits(session_bytes=10_000)) as (cli, peer):
                for number in range(100):
                    peer.say("tool_use_summary", summary=str(number) + "x" * 500)
                peer.close_write()
                await cli.connection.incoming_closed()
                left: list[Any] = [message async for message in cli.messages()]
                assert cli.dropped_messages == 100 - len(left) > 0
                assert left[-1].summary.startswith("99x")

        run(main())

    def test_many_tool_calls_before_anyone_reads(self, run) -> None:
        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> claude.Allow:
                return claude.Allow()

            async with fake_client(can_use_tool=ask) as (cli, _fake), cli.prompt("two-tools") as turn:
                while turn.outcome is None:
                    await asyncio.sleep(0)
                assert kinds(await read(turn)).count("UserMessage") == 2

        run(main())


_uuids = strategies.sampled_from(["a", "b", "c", "stranger"])


_frames = strategies.one_of(
    strategies.builds(
        lambda uuid, state: {"type": "command_lifecycle", "command_uuid": uuid, "state": state},
        _uuids,
        strategies.sampled_from(["queued", "started", "completed", "cancelled", "refused", "discarded", "tomorrow"]),
    ),
    strategies.builds(
        lambda uuids, origin: {"type": "result", "user_message_uuids": uuids, "origin": origin},
        strategies.lists(_uuids, max_size=3),
        strategies.sampled_from([None, {"kind": "human"}, {"kind": "task-notification"}]),
    ),
    strategies.builds(
        lambda uuid: {"type": "assistant", "message": {}, "user_message_uuid": uuid}, strategies.none() | _uuids
    ),
    strategies.builds(
        lambda uuid: {"type": "user", "message": {"content": ""}, "isReplay": True, "uuid": uuid}, _uuids
    ),
    strategies.just({"type": "system", "subtype": "init"}),
    strategies.just({"type": "stream_event", "event": {"type": "ping"}}),
)


class TestAnyStream:
    @given(strategies.lists(_frames, max_size=20))
    def test_every_message_has_one_place_and_every_prompt_an_end(self, frames: list[Any]) -> None:
        async def main() -> None:
            tickets = Tickets(1 << 20, lambda ticket: None)
            prompts = [tickets.claim(uuid, {}) for uuid in "abc"]
            for ticket in prompts:
                tickets.enter(ticket)
            for frame in frames:
                tickets.deliver(claude.decode(json.dumps(frame)), 1)
            running = [ticket for ticket in prompts if ticket.state is not TicketState.DONE]
            assert list(tickets.open) == running
            tickets.end(lambda: claude.ProcessEnded("over", 0))
            assert all(ticket.outcome is not None for ticket in prompts)
            seen = 0
            for box in (tickets.between, *(ticket.mailbox for ticket in prompts)):
                while True:
                    try:
                        message: Any = await box.next()
                    except (StopAsyncIteration, claude.ClaudeError):
                        break
                    ends = message.user_message_uuids if isinstance(message, claude.ResultMessage) else None
                    seen += 1 if ends is None or len(set(ends) & set("abc")) < 2 else 0
            shared = [f for f in frames if len(set(f.get("user_message_uuids") or ()) & set("abc")) >= 2]
            assert seen == len(frames) - len(shared)

        asyncio.run(main())


class TestMailbox:
    def test_rest_is_read_after_the_end_then_its_error_once(self, run) -> None:
        async def main() -> None:
            box = Mailbox()
            box.put(claude.KeepAlive(), 1)
            box.end(claude.ClaudeError("over"))
            box.put(claude.KeepAlive(), 1)
            assert await box.next() == claude.KeepAlive()
            with pytest.raises(claude.ClaudeError, match="over"):
                await box.next()
            assert await _is_over(box)

        run(main())

    def test_cancelled_reader_loses_nothing(self, run) -> None:
        async def main() -> None:
            box = Mailbox()
            waiting = asyncio.create_task(box.next())
            await asyncio.sleep(0)
            box.put(claude.KeepAlive(), 1)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert await box.next() == claude.KeepAlive()

        run(main())

    def test_end_wakes_every_reader(self, run) -> None:
        async def main() -> None:
            box = Mailbox()

            readers = [asyncio.create_task(_is_over(box)) for _ in range(3)]
            await asyncio.sleep(0)
            box.end()
            assert await asyncio.gather(*readers) == [True] * 3

        run(main())


async def _is_over(box: Mailbox) -> bool:
    try:
        await box.next()
    except StopAsyncIteration:
        return True
    return False
