"""What a caller gets wrong is refused at once, and in words that say what it was."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Any

import pytest

import acprt
from acprt import claude
from tests.claude.talking import begin, fake_client, raw_client


def test_process_without_a_command_is_refused() -> None:
    """The first option would be taken for the program."""
    with pytest.raises(TypeError, match="command is missing"):
        claude.ClaudeProcess(cwd=".")


def test_member_cannot_take_the_place_of_the_subtype(run) -> None:
    """Another request than the named one would go out."""

    async def main() -> None:
        async with raw_client() as (cli, peer):
            with pytest.raises(ValueError, match="'set_model'"):
                await cli.control("set_model", {"subtype": "interrupt"})
            asked = asyncio.create_task(cli.control("set_model", {"model": "m"}))
            frame = await peer.receive()
            assert frame["request"] == {"subtype": "set_model", "model": "m"}
            peer.accept(frame["request_id"])
            await asked

    run(main())


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"subtype": ""}, "the turn failed (no reason was given)"),
        ({"subtype": "error_max_cost"}, "the turn failed (error_max_cost)"),
        ({"subtype": "x", "terminal_reason": "api_error", "result": "down"}, "the turn failed (api_error): down"),
    ],
)
def test_failed_turn_says_what_there_is_to_say(run, members: dict[str, Any], text: str) -> None:
    """A result need not have a word of why."""

    async def main() -> None:
        async with raw_client() as (cli, peer):
            turn = cli.prompt("hi")
            finished = asyncio.create_task(turn.finished())
            uuid = await peer.prompt()
            begin(peer, uuid)
            peer.result(uuid, **({"is_error": True, "result": ""} | members))
            with pytest.raises(claude.TurnFailed) as caught:
                await finished
            assert str(caught.value) == text

    run(main())


def test_fake_answers_a_prompt_whose_text_is_null(run) -> None:
    """It is how a NaN arrives."""

    async def main() -> None:
        async with fake_client() as (cli, _fake):
            assert await cli.prompt([{"type": "text", "text": None}, {"type": "text", "text": "hi"}]).text() == "hi"

    run(main())


@pytest.mark.parametrize("way", ["text", "finished", "cancel", "__anext__"])
def test_task_that_is_cancelled_before_its_first_step_has_used_its_prompt(run, recwarn, way: str) -> None:
    """Nothing was sent, as was wanted: nobody is to be told that the prompt was forgotten."""

    async def main() -> None:
        async with raw_client() as (cli, peer):
            task = asyncio.ensure_future(getattr(cli.prompt("hi"), way)())
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            del task
            gc.collect()
            assert peer.unread() == []

    run(main())
    assert [str(each.message) for each in recwarn] == []


def test_prompt_that_was_never_used_is_told(run) -> None:
    async def main() -> None:
        async with raw_client() as (cli, _peer):
            with pytest.warns(RuntimeWarning, match="never used"):
                cli.prompt("hi")

    run(main())


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")
def test_prompts_that_a_full_queue_ends_the_connection_for_fail_as_those_before(run) -> None:
    """The one that does not fit, and those behind it, are no other kind of error to who catches ClaudeError."""
    deaf = [sys.executable, "-I", "-S", "-c", "import signal; signal.pause()"]
    quick = acprt.Limits(drain_seconds=0.1, exit_grace_seconds=0.1, term_grace_seconds=0.1)
    small = acprt.Limits(drain_seconds=0.1, outbox_high_bytes=100_000, outbox_max_bytes=200_000)

    async def main() -> None:
        process = claude.ClaudeProcess(*deaf, limits=quick)
        async with claude.connect(process, initialize=None, limits=small) as cli:
            turns = [cli.prompt("x" * 100_000).finished() for _ in range(8)]
            outcomes = await asyncio.gather(*turns, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [claude.ProcessEnded] * 8
        assert any("outbox_full" in str(getattr(outcome, "__cause__", "")) for outcome in outcomes)

    run(main())
