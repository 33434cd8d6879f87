"""What `acprt chat` does by itself: the commands that begin with a colon, against a session in memory."""

from __future__ import annotations

import asyncio
import io

import msgspec
import pytest
from rich.console import Console

from acprt import acp
from acprt.acp import v1
from acprt.cli.chat.local_commands import AgentState, LocalCommands
from acprt.cli.chat.screen import Screen
from acprt.testing import acp_pair


def agent_with_options() -> acp.Agent:
    """An agent with an option that is on or off, and one whose values are in groups."""
    agent = acp.Agent("optional", version="1")
    values = [v1.SessionConfigSelectOption(value=name, name=name.title()) for name in ("small", "large", "local")]
    groups: list[v1.SessionConfigSelectEntry] = [
        v1.SessionConfigSelectGroup(group="cloud", name="Cloud", options=values[:2]),
        v1.SessionConfigSelectGroup(group="here", name="Here", options=values[2:]),
    ]
    options: dict[str, v1.SessionConfigOption] = {
        "search": v1.SessionConfigBoolean(id="search", name="Web search", current_value=False),
        "model": v1.SessionConfigSelect(id="model", name="Model", current_value="small", options=groups),
    }

    @agent.method
    async def new_session(request: v1.NewSessionRequest) -> v1.NewSessionResponse:
        return v1.NewSessionResponse(session_id="s-1", config_options=list(options.values()))

    @agent.method
    async def set_config_option(request: v1.SetSessionConfigOptionRequest) -> v1.SetSessionConfigOptionResponse:
        option = options[request.config_id]
        options[request.config_id] = msgspec.structs.replace(option, current_value=request.value)
        return v1.SetSessionConfigOptionResponse(config_options=list(options.values()))

    return agent


def shown_by(*lines: str) -> list[str]:
    """What the chat shows when these lines are typed."""
    output = io.StringIO()

    async def typed() -> None:
        async with acp_pair(agent_with_options()) as pair, acp.session(pair.client, cwd="/") as session:
            commands = LocalCommands(session, Screen(Console(file=output, width=100)), AgentState("optional"))
            for line in lines:
                assert await commands.run(line)

    asyncio.run(typed())
    return output.getvalue().splitlines()


def test_options_are_listed_with_all_their_values() -> None:
    assert shown_by(":option") == [
        "search           false  (Web search: true or false)",
        "model            small  (Model: small, large, local)",
    ]


@pytest.mark.parametrize(("line", "now"), [(":option search true", "true"), (":option search false", "false")])
def test_an_option_that_is_on_or_off_is_set_by_true_and_false(line: str, now: str) -> None:
    assert shown_by(line)[0] == f"search           {now}  (Web search: true or false)"


def test_another_word_for_such_an_option_is_refused_and_changes_nothing() -> None:
    refusal, search, _ = shown_by(":option search yes")

    assert refusal == "search is true or false, not yes"
    assert search.startswith("search           false")


def test_a_value_of_a_group_can_be_set() -> None:
    assert shown_by(":option model local")[1].startswith("model            local")
