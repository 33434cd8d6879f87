"""Commands of agents: text to words, words to text, and what is never shown."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from acprt.transports.process import AgentProcess

parse = AgentProcess.parse


class TestWords:
    """A text that does not start with `{` is a line of POSIX words."""

    def test_a_single_word_is_the_command(self):
        """AG-03."""
        agent = parse("  agent\n")
        assert (agent.argv, agent.env) == (("agent",), {})

    def test_words_follow_the_command(self):
        """AG-03."""
        assert parse("npx -y @scope/agent --acp").argv == ("npx", "-y", "@scope/agent", "--acp")

    @pytest.mark.parametrize(
        ("text", "argv"),
        [
            ('"/opt/my agent/run" x', ("/opt/my agent/run", "x")),
            ("agent 'a \"b\" c'", ("agent", 'a "b" c')),
            (r"agent a\ b", ("agent", "a b")),
            ("agent ''", ("agent", "")),
            ("agent '#1' #2", ("agent", "#1", "#2")),
            ("agent $HOME *", ("agent", "$HOME", "*")),
        ],
    )
    def test_quotes_and_backslashes_are_posix_and_no_shell_is_run(self, text, argv):
        """AG-03."""
        assert parse(text).argv == argv

    def test_leading_assignments_are_environment(self):
        """AG-04."""
        agent = parse("FOO=1 _b2='x y' agent --flag X=1")
        assert agent.env == {"FOO": "1", "_b2": "x y"}
        assert agent.argv == ("agent", "--flag", "X=1")

    @pytest.mark.parametrize("command", ["1A=x", "=x", "A-B=x"])
    def test_what_is_no_name_is_the_command(self, command):
        """AG-04."""
        assert parse(f"{command} y").argv == (command, "y")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "Arguments cannot be empty"),
            (" \t\n", "Arguments cannot be empty"),
            ("A=1 B=2", "No command found (only environment variables provided)"),
            ('agent "x', "Failed to parse command: missing closing quote"),
            ("agent \\", "Failed to parse command: nothing follows the last backslash"),
        ],
    )
    def test_what_cannot_be_read_says_why(self, text, message):
        """AG-05."""
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            parse(text)


class TestJson:
    """A text that starts with `{` is a configuration."""

    def test_json_has_command_arguments_and_environment(self):
        """AG-01, AG-03."""
        agent = parse(' {"command": "my agent", "args": ["-x", "a b"], "env": {"B": "2", "A": "1", "GONE": null}}')
        assert agent.argv == ("my agent", "-x", "a b")
        assert agent.env == {"A": "1", "B": "2", "GONE": None}

    def test_only_the_command_is_needed(self):
        """AG-01."""
        agent = parse('{"command": "agent"}')
        assert (agent.argv, agent.env) == (("agent",), {})

    @pytest.mark.parametrize(
        "text",
        [
            '{"type": "stdio", "name": "x", "command": "agent", "args": [], "env": []}',
            '{"command": "agent", "cwd": "/"}',
            '{"args": ["x"]}',
            '{"command": "agent", "args": "x"}',
            '{"command": "agent"',
            '{"command": ""}',
            '{"command": "\\ud800"}',
            "{" * 5_000,
        ],
    )
    def test_anything_else_is_refused(self, text):
        """AG-02, AG-05: also the description of a server in another format."""
        with pytest.raises(ValueError, match=r"^Failed to parse JSON: "):
            parse(text)

    def test_unknown_keys_are_named(self):
        """AG-01."""
        with pytest.raises(ValueError, match="cwd"):
            parse('{"command": "agent", "cwd": "/"}')


class TestConfig:
    """`config()` gives the configuration back."""

    def test_empty_parts_are_left_out(self):
        """AG-01."""
        assert AgentProcess("agent").config() == {"command": "agent"}

    def test_the_environment_is_sorted(self):
        """AG-01."""
        config = AgentProcess("agent", "-x", env={"B": "2", "A": "1", "C": None}).config()
        assert config == {"command": "agent", "args": ["-x"], "env": {"A": "1", "B": "2", "C": None}}
        assert list(config["env"]) == ["A", "B", "C"]

    def test_it_is_what_was_parsed(self):
        """AG-07."""
        text = '{"command":"agent","args":["-x"],"env":{"A":"1"}}'
        assert parse(text).config() == {"command": "agent", "args": ["-x"], "env": {"A": "1"}}

    def test_parse_takes_the_options_of_a_run(self):
        """What a text cannot say is given beside it."""
        agent = parse("agent", cwd="/", inherit_env=False)
        assert (agent.cwd, agent.inherit_env) == ("/", False)


class TestArguments:
    """What no program could be started with is refused when it is written down, not when it is needed."""

    def test_no_words_are_refused(self):
        """AG-05."""
        with pytest.raises(ValueError, match="Arguments cannot be empty"):
            AgentProcess()

    def test_paths_are_words(self):
        """In the command and as working directory."""
        agent = AgentProcess(Path("/opt/agent"), cwd=Path("/tmp"))
        assert (agent.argv, agent.cwd) == (("/opt/agent",), "/tmp")

    @pytest.mark.parametrize("argv", [("",), ("agent", "a\0b")])
    def test_impossible_words_are_refused(self, argv):
        """Named where they were written."""
        with pytest.raises(ValueError, match="agent"):
            AgentProcess(*argv)

    @pytest.mark.parametrize("argv", [("agent", 1), (b"agent",), (["agent", "-x"],)])
    def test_words_of_another_type_are_refused(self, argv):
        """`AgentProcess(["agent", "-x"])` is the likely mistake."""
        with pytest.raises(TypeError):
            AgentProcess(*argv)

    @pytest.mark.parametrize("env", [{"": "x"}, {"A=B": "x"}, {"A": "x\0"}, {"A\0": None}])
    def test_impossible_variables_are_refused(self, env):
        """By name, before anything is started."""
        with pytest.raises(ValueError, match="env cannot hold"):
            AgentProcess("agent", env=env)

    @pytest.mark.parametrize("env", [{"A": 1}, {1: "x"}])
    def test_variables_of_another_type_are_refused(self, env):
        """`env={"PORT": 8080}` is the likely mistake."""
        with pytest.raises(TypeError, match="env maps names to str"):
            AgentProcess("agent", env=env)

    def test_a_coroutine_function_cannot_take_stderr(self):
        """It would never be awaited."""

        async def on_stderr(line: str) -> None: ...

        with pytest.raises(TypeError, match="plain function"):
            AgentProcess("agent", on_stderr=on_stderr)

    def test_the_environment_is_a_copy(self):
        """A dict changed later must not change the agent."""
        env: dict[str, str | None] = {"A": "1"}
        agent = AgentProcess("agent", env=env)
        env["A"] = "2"
        assert agent.env == {"A": "1"}


class TestRepr:
    """What a person sees of it."""

    def test_it_reads_like_the_call(self):
        """What differs from the defaults, as it would be written."""
        agent = AgentProcess("agent", "--flag", env={"A": "1"}, inherit_env=False, cwd="/tmp")
        assert repr(agent) == "AgentProcess('agent', '--flag', env={'A': '1'}, inherit_env=False, cwd='/tmp')"

    @pytest.mark.parametrize(
        "agent",
        [
            AgentProcess("agent", env={"MY_API_KEY": "hide me"}),
            AgentProcess("agent", "--api-key=hide me"),
            AgentProcess("agent", "--token", "hide me"),
            AgentProcess("agent", "sk-hide-me-123456"),
            AgentProcess("agent", env={"HEADER": "bearer sk-hide-me-123456"}),
        ],
    )
    def test_secrets_are_not_in_it(self, agent):
        """DEC-21."""
        assert "hide" not in repr(agent)
        assert "***" in repr(agent)

    def test_what_is_no_secret_is_in_it(self):
        """DEC-21 masks values, not whatever stands near them."""
        assert "'--model', 'large'" in repr(AgentProcess("agent", "--token", "x", "--model", "large"))
        assert "'--token', '--verbose'" in repr(AgentProcess("agent", "--token", "--verbose"))


def test_parsing_changes_no_environment(monkeypatch):
    """AG-04: assignments are for the child."""
    monkeypatch.delenv("ACPRT_TEST_ONLY", raising=False)
    parse("ACPRT_TEST_ONLY=1 agent")
    assert "ACPRT_TEST_ONLY" not in os.environ
