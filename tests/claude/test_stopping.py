"""Turns that are stopped and left: by whom, how often, and what it does to the prompts around them."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress

import pytest

from acprt import claude
from acprt.testing.fake_claude import Options
from tests.claude.talking import begin, fake_client, kinds, raw_client, read
from tests.rawpeer import turns


class TestStopping:
    def test_cancel_interrupts_and_waits_for_the_result(self, run) -> None:
        async def main() -> None:
            async with fake_client(Options(partial_messages=True)) as (cli, _fake):
                turn = cli.prompt("wait")
                first = await anext(turn)
                while not isinstance(first, claude.StreamEvent):
                    first = await anext(turn)
                assert await turn.cancel()
                assert (turn.outcome, turn.stop_reason) == ("cancelled", "cancelled")
                rest = await read(turn)
                assert rest[0].aborted  # type: ignore[attr-defined]  # the partial answer
                assert kinds(rest) == ["AssistantMessage", "UserMessage", "ResultMessage"]

        run(main())

    def test_prompt_that_was_not_sent_will_not_be(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                turn = cli.prompt("no")
                assert await turn.cancel()
                assert await read(turn) == []
                assert turn.stop_reason == "cancelled"
                assert await peer.silent()

        run(main())

    def test_queued_prompt_is_taken_back_and_the_running_turn_goes_on(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, fake):
                running = cli.prompt("wait")
                await anext(running)
                queued = cli.prompt("say never")
                reading = asyncio.create_task(read(queued))
                await turns()
                assert await queued.cancel()
                assert (queued.outcome, queued.result) == ("cancelled", None)
                assert kinds(await reading) == []
                assert running.outcome is None
                assert [f["request"]["subtype"] for f in fake.received if "request" in f][1:] == [
                    "cancel_async_message"
                ]
                assert await running.cancel()

        run(main())

    def test_prompt_that_started_meanwhile_is_interrupted(self, run) -> None:
        """The command says that it is too late to take it back."""

        async def main() -> None:
            async with raw_client() as (cli, peer):
                turn = cli.prompt("go")
                reading = asyncio.create_task(read(turn))
                uuid = await peer.prompt()
                peer.say("command_lifecycle", command_uuid=uuid, state="queued")
                await turns()
                cancelling = asyncio.create_task(turn.cancel())
                back = await peer.receive()
                assert back["request"] == {"subtype": "cancel_async_message", "message_uuid": uuid}
                peer.say("command_lifecycle", command_uuid=uuid, state="started")
                peer.accept(back["request_id"], {"cancelled": False})
                assert (await peer.receive())["request"] == {"subtype": "interrupt"}
                peer.result(uuid, subtype="error_during_execution", is_error=True, terminal_reason="aborted_streaming")
                assert await cancelling
                await reading

        run(main())

    @pytest.mark.parametrize("tells_lifecycle", [True, False])
    def test_prompt_that_cannot_be_taken_back_is_interrupted_in_its_own_turn(self, run, tells_lifecycle: bool) -> None:
        """A release that knows no cancel_async_message: an interrupt at once would end the turn of another prompt."""

        async def main() -> None:
            async with raw_client() as (cli, peer):
                running = asyncio.create_task(cli.prompt("first").text())
                first = await peer.prompt()
                if tells_lifecycle:
                    begin(peer, first)
                peer.say("system", "init")
                await turns()
                queued = cli.prompt("second")
                reading = asyncio.create_task(read(queued))
                second = await peer.prompt()
                if tells_lifecycle:
                    peer.say("command_lifecycle", command_uuid=second, state="queued")
                await turns()
                cancelling = asyncio.create_task(queued.cancel())
                back = await peer.receive()
                assert back["request"]["subtype"] == "cancel_async_message"
                peer.refuse(back["request_id"], "unsupported", "unsupported_request")
                assert await peer.silent()
                peer.result(first if tells_lifecycle else None)
                await running
                assert await peer.silent()
                if tells_lifecycle:
                    peer.say("command_lifecycle", command_uuid=second, state="started")
                peer.say("system", "init")
                assert (await peer.receive())["request"] == {"subtype": "interrupt"}
                peer.result(second if tells_lifecycle else None, is_error=True, terminal_reason="aborted_streaming")
                assert await cancelling
                await reading
                assert queued.outcome == "cancelled"

        run(main())

    def test_turn_that_is_being_stopped_is_not_interrupted_again(self, run) -> None:
        """A second interrupt could hit the prompt behind it."""

        async def main() -> None:
            async with raw_client() as (cli, peer):
                turn = cli.prompt("go")
                reading = asyncio.create_task(read(turn))
                uuid = await peer.prompt()
                begin(peer, uuid)
                await turns()
                assert not await turn.cancel(timeout=0)
                assert not await turn.cancel(timeout=0)
                stop = await peer.receive()
                assert stop["request"] == {"subtype": "interrupt"}
                assert await peer.silent()
                peer.accept(stop["request_id"], {"still_queued": []})
                await turns()
                cancelling = asyncio.create_task(turn.cancel())  # the first one is answered, and had no effect
                assert (await peer.receive())["request"] == {"subtype": "interrupt"}
                peer.result(uuid, is_error=True, terminal_reason="aborted_streaming")
                assert await cancelling
                await reading

        run(main())

    @pytest.mark.parametrize("steps", range(0, 24, 3))
    @pytest.mark.parametrize("prompt", ["hello", "two-tools", "wait"])
    def test_reader_that_is_cancelled_at_any_step_spoils_no_later_prompt(self, run, prompt: str, steps: int) -> None:
        async def main() -> None:
            async def ask(request: claude.CanUseTool) -> claude.Allow:
                return claude.Allow()

            async with fake_client(Options(session_states=True), can_use_tool=ask) as (cli, _fake):
                reading = asyncio.create_task(read(cli.prompt(prompt)))
                await turns(steps + 1)
                reading.cancel()
                with suppress(asyncio.CancelledError):
                    await reading
                del reading
                gc.collect()
                assert (await cli.prompt("say next").text())[:4] in ("next", "")  # "": an interrupt that crossed
                assert await cli.prompt("say after").text() == "after"
                assert await cli.settled(background_seconds=5)

        run(main())

    def test_interrupt_without_effect_is_told(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                turn = cli.prompt("go")
                reading = asyncio.create_task(read(turn))
                uuid = await peer.prompt()
                begin(peer, uuid)
                await turns()
                cancelling = asyncio.create_task(turn.cancel(timeout=0.05))
                peer.accept((await peer.receive())["request_id"], {"still_queued": []})
                assert not await cancelling
                peer.result(uuid)
                await reading
                assert turn.outcome == "completed"

        run(main())

    def test_cancel_that_crosses_the_result_changes_nothing(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, fake):
                turn = cli.prompt("say done")
                await read(turn)
                assert await turn.cancel()
                assert turn.outcome == "completed"
                assert await cli.prompt("say next").text() == "next"
                assert not [f for f in fake.received if f.get("request", {}).get("subtype") == "interrupt"]

        run(main())

    def test_interrupt_with_queued_prompts_cancels_them_too_when_asked(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                running, queued = cli.prompt("wait"), cli.prompt("say never")
                reading = asyncio.create_task(read(running))
                waiting = asyncio.create_task(read(queued))
                while not cli.session:
                    await asyncio.sleep(0)
                receipt = await cli.interrupt(cancel_queued=True)
                assert receipt == claude.InterruptReceipt(cancelled=[queued.uuid])
                await asyncio.gather(reading, waiting)
                assert (running.outcome, queued.outcome) == ("cancelled", "cancelled")

        run(main())

    def test_interrupt_before_the_first_prompt_is_answered(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                assert await cli.interrupt() == claude.InterruptReceipt()
                assert await cli.prompt("say ok").text() == "ok"

        run(main())


class TestLeaving:
    def test_leaving_the_block_interrupts_and_waits(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                async with cli.prompt("wait") as turn:
                    await anext(turn)
                assert turn.outcome == "cancelled"
                assert await cli.prompt("say next").text() == "next"

        run(main())

    def test_dropped_turn_is_interrupted(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, fake):
                async for _message in cli.prompt("wait"):
                    break
                gc.collect()
                assert await cli.prompt("say next").text() == "next"
                assert [f["request"]["subtype"] for f in fake.received if "request" in f][1:] in (
                    ["interrupt"],
                    ["cancel_async_message", "interrupt"],
                )

        run(main())

    def test_cancelled_reader_is_let_go_and_the_turn_is_interrupted(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):

                async def work() -> None:
                    async with cli.prompt("wait") as turn:
                        await read(turn)

                working = asyncio.create_task(work())
                while not cli.session:
                    await asyncio.sleep(0)
                working.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await working
                assert await cli.prompt("say next").text() == "next"

        run(main())

    def test_messages_of_a_turn_that_was_left_are_not_kept(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                async with cli.prompt("go"):
                    uuid = await peer.prompt()
                    begin(peer, uuid)
                    await turns()
                    peer.accept("acprt-1")
                    peer.say("assistant", message={"content": [{"type": "text", "text": "x"}]})
                    peer.result(uuid)
                await turns()
                await cli.aclose()
                assert kinds([message async for message in cli.messages()]) == []

        run(main())
