"""One prompt and one process: `query`, and the wait for what a prompt left running."""

from __future__ import annotations

from acprt import claude
from tests.claude.talking import fake_process, read, texts


class TestOneShot:
    def test_query_reads_to_the_end_of_what_the_prompt_left_running(self, run) -> None:
        async def main() -> None:
            seen = [message async for message in claude.query(fake_process(), "agent 0.1")]
            results = [message for message in seen if isinstance(message, claude.ResultMessage)]
            assert [result.result for result in results] == ["started", "Noted: Found it"]

        run(main())

    def test_query_without_background_work_ends_at_its_result(self, run) -> None:
        async def main() -> None:
            process = fake_process(session_states=False)
            seen = [message async for message in claude.query(process, "say x")]
            assert texts(seen) == ["x"]
            status = process.child_status()
            assert status is not None
            assert status.exit_status == 0

        run(main())

    def test_query_that_is_left_early_ends_the_process(self, run) -> None:
        async def main() -> None:
            process = fake_process()
            messages = claude.query(process, "wait")
            async for _message in messages:
                break
            await messages.aclose()  # type: ignore[attr-defined]  # an async generator, as its docstring says
            status = process.child_status()
            assert status is not None
            assert status.exit_status is not None

        run(main())

    def test_wait_for_the_end_of_work_is_bounded_and_counted_anew_from_each_result(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process()) as cli:
                await read(cli.prompt("agent 30"))
                assert not await cli.settled(background_seconds=0.1)
                await cli.stop_task("a0000000000000dbb")
                assert await cli.settled(background_seconds=10)

        run(main())

    def test_shells_are_not_waited_for_where_the_command_does_not_tell_its_state(self, run) -> None:
        async def main() -> None:
            async with claude.connect(fake_process(session_states=False)) as cli:
                await read(cli.prompt("shell 30"))
                assert await cli.settled(background_seconds=10)

        run(main())
