"""One prompt is one turn: its messages, its end, and which prompt each message belongs to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from acprt import claude
from acprt.testing.fake_claude import Options
from tests.claude.talking import begin, fake_client, kinds, raw_client, read
from tests.rawpeer import turns


class TestOneTurn:
    def test_messages_come_in_order_and_the_result_is_last(self, run) -> None:
        async def main() -> None:
            async with fake_client(Options(partial_messages=True)) as (cli, _fake):
                turn = cli.prompt("hello")
                messages = await read(turn)
                assert kinds(messages) == [
                    "InitMessage",
                    *["StreamEvent"] * 2,
                    "AssistantMessage",
                    *["StreamEvent"] * 5,
                    "AssistantMessage",
                    "ResultMessage",
                ]
                assert "".join(m.text for m in messages if isinstance(m, claude.StreamEvent)) == "Hello, I am a fake. "
                assert (turn.result, turn.outcome, turn.stop_reason) == (messages[-1], "completed", "end_turn")
                assert cli.session_id == cli.session.session_id if cli.session else False

        run(main())

    def test_nothing_is_sent_before_it_is_used(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                turn = cli.prompt("hello")
                assert await peer.silent()
                dropped = [turn]
                del turn
                with pytest.warns(RuntimeWarning, match="never used"):
                    dropped.clear()

        run(main())

    def test_text_and_result_are_read_to_the_end(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                assert await cli.prompt("hello").text() == "Hello, I am a fake."
                assert (await cli.prompt("say x").finished()).result == "x"
                with pytest.raises(claude.TurnFailed):
                    await cli.prompt("api-error").text()

        run(main())

    def test_blocks_are_a_prompt_too(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                blocks = [claude.TextBlock(text="say "), {"type": "text", "text": "both"}]
                assert await cli.prompt(blocks).text() == "both"

        run(main())

    @pytest.mark.parametrize("content", [b"bytes", 7, None, [1, 2], ["a"], {"type": "text", "text": "x"}])
    def test_what_is_no_prompt_is_refused_with_what_one_is(self, run, content: Any) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                with pytest.raises(TypeError, match="a prompt is a str, or a list of content blocks"):
                    cli.prompt(content)
                assert await cli.prompt([claude.TextBlock(text="say on")]).text() == "on"

        run(main())

    def test_turn_that_was_read_has_no_text_left(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                turn = cli.prompt("say once")
                assert await turn.text() == "once"
                with pytest.raises(RuntimeError, match="was read before"):
                    await turn.text()
                assert (await turn.finished()).result == "once"

        run(main())

    def test_turn_of_which_all_but_the_failure_was_read_still_fails(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                turn = cli.prompt("api-error")
                while not isinstance(await anext(turn), claude.ResultMessage):
                    pass
                with pytest.raises(claude.TurnFailed):
                    await turn.text()

        run(main())

    def test_turn_is_not_awaited_and_says_how_it_is_used(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                turn: Any = cli.prompt("say on")
                with pytest.raises(TypeError, match=r"turn\.text\(\)"):
                    await turn
                assert await turn.text() == "on"

        run(main())


class TestEnds:
    @pytest.mark.parametrize(
        ("prompt", "outcome", "stop_reason"),
        [
            ("hello", "completed", "end_turn"),
            ("refusal", "completed", "refusal"),
            ("max-turns", "limit_reached", "max_turn_requests"),
            ("budget", "limit_reached", "max_turn_requests"),
        ],
    )
    def test_agreed_ends_do_not_raise(self, run, prompt: str, outcome: str, stop_reason: str) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                turn = cli.prompt(prompt)
                await read(turn)
                assert (turn.outcome, turn.stop_reason) == (outcome, stop_reason)

        run(main())

    def test_failed_login_is_an_error_of_its_own_and_the_session_lives(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, fake):
                turn = cli.prompt("auth")
                messages = []
                with pytest.raises(claude.AuthenticationFailed, match="Not logged in") as caught:
                    async for message in turn:
                        messages.append(message)  # noqa: PERF401  # what came before the error is the point
                assert isinstance(messages[-1], claude.ResultMessage)
                assert (caught.value.result, caught.value.session_id) == (messages[-1], fake.options.session_id)
                assert (turn.outcome, turn.stop_reason) == ("not_authenticated", None)
                assert await cli.prompt("say on").text() == "on"

        run(main())

    def test_error_of_the_api_is_told_with_its_reason(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                with pytest.raises(claude.TurnFailed, match=r"api_error.*API Error: 500") as caught:
                    await cli.prompt("api-error").finished()
                assert not isinstance(caught.value, claude.AuthenticationFailed)

        run(main())

    def test_failure_of_an_inner_agent_to_log_in_is_not_that_of_the_turn(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                reading = asyncio.create_task(read(cli.prompt("go")))
                uuid = await peer.prompt()
                begin(peer, uuid)
                failed: dict[str, Any] = {"message": {"content": []}, "error": "authentication_failed"}
                peer.say("assistant", parent_tool_use_id="toolu", **failed)
                peer.result(uuid, is_error=True, result="x")
                with pytest.raises(claude.TurnFailed) as caught:
                    await reading
                assert type(caught.value) is claude.TurnFailed

        run(main())

    @pytest.mark.parametrize(
        ("members", "outcome"),
        [
            ({"subtype": "success"}, "completed"),
            ({"subtype": "success", "is_error": True, "terminal_reason": "api_error"}, "failed"),
            ({"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_tools"}, "cancelled"),
            ({"subtype": "success", "is_error": True, "terminal_reason": "aborted_streaming"}, "cancelled"),
            ({"subtype": "error_max_structured_output_retries", "is_error": True}, "limit_reached"),
            ({"subtype": "error_during_execution", "is_error": True, "terminal_reason": "tomorrow"}, "failed"),
            ({"subtype": "tomorrow"}, "failed"),
        ],
    )
    def test_result_is_classified_by_its_reason_never_by_a_text(self, members: Any, outcome: str) -> None:
        result = claude.ResultMessage(result="[Request interrupted by user] /login", **members)
        assert claude.outcome_of(result) == outcome


class TestWhichTurn:
    def test_queued_prompts_get_their_own_answers(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                answers = await asyncio.gather(*(cli.prompt(f"say {number}").text() for number in range(20)))
                assert answers == list(map(str, range(20)))

        run(main())

    def test_older_command_without_lifecycle_answers_in_order(self, run) -> None:
        async def main() -> None:
            async with fake_client(Options(no_lifecycle=True)) as (cli, _fake):
                answers = await asyncio.gather(*(cli.prompt(f"say {number}").text() for number in range(5)))
                assert answers == list(map(str, range(5)))

        run(main())

    def test_replayed_prompt_tells_which_one_runs(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                first, second = (asyncio.create_task(read(cli.prompt(text))) for text in ("a", "b"))
                await peer.prompt()
                uuid = await peer.prompt()
                peer.say("user", message={"role": "user", "content": "b"}, isReplay=True, uuid=uuid)
                peer.result()
                assert kinds(await second) == ["UserMessage", "ResultMessage"]
                assert not first.done()
                first.cancel()

        run(main())

    def test_result_after_an_interrupt_is_not_taken_for_the_next_prompts(self, run) -> None:
        """Nobody is one message behind."""

        async def main() -> None:
            async with fake_client() as (cli, _fake):
                async with cli.prompt("wait") as turn:
                    following = cli.prompt("say mine")
                    answer = asyncio.create_task(following.text())
                    async for message in turn:
                        if isinstance(message, claude.InitMessage):
                            break
                    receipt = await cli.interrupt()
                    assert receipt.still_queued == [following.uuid]
                assert turn.outcome == "cancelled"
                assert await answer == "mine"
                assert (following.result and following.result.user_message_uuid) == following.uuid

        run(main())

    def test_prompts_folded_into_one_turn_end_with_one_result(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                first, second = (asyncio.create_task(read(cli.prompt(text))) for text in ("a", "b"))
                uuids = [await peer.prompt(), await peer.prompt()]
                begin(peer, uuids[0])
                peer.say("command_lifecycle", command_uuid=uuids[1], state="queued")
                peer.say("assistant", message={"content": []}, user_message_uuids=uuids)
                peer.result(user_message_uuids=uuids)
                assert kinds(await first) == ["AssistantMessage", "ResultMessage"]
                assert kinds(await second) == ["ResultMessage"]

        run(main())

    def test_turn_of_a_background_task_belongs_to_no_prompt(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                await read(cli.prompt("shell 0"))
                between = []
                async for message in cli.messages():
                    between.append(message)
                    if isinstance(message, claude.ResultMessage):
                        break
                ends = kinds(between)
                assert ends[:3] == ["TaskUpdatedMessage", "TaskNotificationMessage", "BackgroundTasksChangedMessage"]
                assert ends[-3:] == ["InitMessage", "AssistantMessage", "ResultMessage"]
                assert between[-1].origin.kind == "task-notification"  # type: ignore[attr-defined]  # a result, as said
                assert await cli.prompt("say mine").text() == "mine"

        run(main())

    def test_autonomous_result_that_comes_while_a_prompt_waits_does_not_end_it(self, run) -> None:
        """Also where nothing tells which turn runs."""

        async def main() -> None:
            async with raw_client() as (cli, peer):
                reading = asyncio.create_task(read(cli.prompt("mine")))
                await peer.prompt()
                peer.say("system", "init")
                peer.result(origin={"kind": "task-notification"}, result="not yours")
                await turns()
                assert not reading.done()
                peer.say("system", "init")
                peer.result(result="yours")
                assert (await reading)[-1].result == "yours"  # type: ignore[attr-defined]  # a result, as scripted

        run(main())

    def test_prompt_whose_start_was_not_told_yet_takes_nothing_of_an_autonomous_turn(self, run) -> None:
        """The command tells the lifecycle of prompts, so there is nothing to guess."""

        async def main() -> None:
            async with raw_client() as (cli, peer):
                first = asyncio.create_task(cli.prompt("first").text())
                uuid = await peer.prompt()
                begin(peer, uuid)
                peer.result(uuid)
                peer.say("command_lifecycle", command_uuid=uuid, state="completed")
                await first
                second = asyncio.create_task(cli.prompt("second").text())
                uuid = await peer.prompt()
                peer.say("system", "init")
                peer.say("assistant", message={"content": [{"type": "text", "text": "of a task"}]})
                peer.result(origin={"kind": "task-notification"})
                begin(peer, uuid)
                peer.say("assistant", message={"content": [{"type": "text", "text": "of the prompt"}]})
                peer.result(uuid)
                assert await second == "of the prompt"

        run(main())

    def test_repeated_uuid_is_refused_here(self, run) -> None:
        """The command drops it without a word, and the turn would wait for ever."""

        async def main() -> None:
            async with fake_client() as (cli, _fake):
                await read(cli.prompt("say a", uuid="u-1"))
                with pytest.raises(ValueError, match="u-1"):
                    cli.prompt("say b", uuid="u-1")

        run(main())

    @pytest.mark.parametrize("state", ["refused", "discarded"])
    def test_prompt_that_is_not_taken_is_an_error(self, run, state: str) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                reading = asyncio.create_task(read(cli.prompt("no")))
                peer.say("command_lifecycle", command_uuid=await peer.prompt(), state=state)
                with pytest.raises(claude.PromptRefused, match=state):
                    await reading

        run(main())

    def test_prompt_told_to_be_complete_without_a_result_ends(self, run) -> None:
        async def main() -> None:
            async with raw_client() as (cli, peer):
                turn = cli.prompt("go")
                reading = asyncio.create_task(read(turn))
                uuid = await peer.prompt()
                begin(peer, uuid)
                peer.say("command_lifecycle", command_uuid=uuid, state="completed")
                assert kinds(await reading) == []
                assert (turn.outcome, turn.result) == ("completed", None)

        run(main())
