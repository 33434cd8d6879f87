"""The fake itself: nothing that a host may say to it leaves that host waiting."""

from __future__ import annotations

import pytest

from acprt import claude
from acprt.testing.fake_claude import Options
from tests.claude.talking import fake_client, fake_process


class TestScenarios:
    @pytest.mark.parametrize("prompt", ["large", "agent please look", "shell ls", "handback", "dialog", "environment"])
    def test_arguments_that_a_scenario_cannot_read_fail_the_turn(self, run, prompt: str) -> None:
        async def main() -> None:
            async with fake_client() as (cli, _fake):
                with pytest.raises(claude.TurnFailed, match=f"cannot play '{prompt}'"):
                    await cli.prompt(prompt).text()
                assert await cli.prompt("say on").text() == "on"

        run(main())

    def test_turn_that_is_interrupted_before_its_first_step_has_its_end(self, run) -> None:
        async def main() -> None:
            async with fake_client() as (cli, fake):
                turn = cli.prompt("wait")
                async with turn:
                    await cli.interrupt()
                    await turn.cancel()
                assert turn.outcome == "cancelled"
                assert fake.exit_code is None

        run(main())


class TestOptions:
    @pytest.mark.parametrize("wishes", ["no_lifecylce", "linger=soon"])
    def test_wish_that_it_does_not_know_is_a_usage_error(self, run, wishes: str) -> None:
        async def main() -> None:
            with pytest.raises(claude.ProcessEnded, match=r"FAKE_CLAUDE: .*Options") as caught:
                async with claude.connect(fake_process(wishes)):
                    pass
            assert caught.value.exit_status == 1

        run(main())

    def test_wishes_are_fields(self) -> None:
        stream = ["--output-format=stream-json", "--input-format=stream-json", "--verbose"]
        options = Options.parse(stream, {"FAKE_CLAUDE": "no_level linger=1.5"})
        assert (options.no_level, options.linger, options.usage_error) == (True, 1.5, None)
