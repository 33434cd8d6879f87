"""testy for clients of version 1: its commands, its scenarios and the methods that it answers."""

from __future__ import annotations

from typing import get_args

import pytest

import acprt
from acprt import acp
from acprt.acp import v1
from acprt.testing import testy
from tests.testing.scripted_client import ScriptedClient, connected, opened, program, prompted

CALLBACKS = [
    "session/request_permission",
    "fs/write_text_file",
    "fs/read_text_file",
    "terminal/create",
    "terminal/output",
    "terminal/wait_for_exit",
    "terminal/kill",
    "terminal/release",
]
ELICITATIONS = [
    "elicitation/form_session_accept: ok accept content_fields=2",
    "elicitation/form_session_decline: ok decline",
    "elicitation/form_request_cancel: ok cancel",
    "elicitation/url_session_accept: ok accept content_fields=0",
    "elicitation/complete_session_url: sent",
    "elicitation/url_request_decline: ok decline",
    "elicitations: completed",
]


def talk(run, client: ScriptedClient, *prompts: str) -> list[str]:
    """Prompt a testy with each text, in one session; the stop reasons."""

    async def main() -> list[str]:
        async with connected(client) as cx:
            session_id = await opened(cx)
            return [await prompted(cx, session_id, prompt) for prompt in prompts]

    return run(main())


class TestCommands:
    @pytest.mark.parametrize(
        ("prompt", "command"),
        [
            ("", testy.Greet()),
            ("  \n", testy.Greet()),
            ("What is the weather?", testy.Greet()),
            ("greet", testy.Greet()),
            ("HELP", testy.Help()),
            (" help ", testy.Help()),
            ("echo  two  words", testy.Echo(" two  words")),
            ("Echo me", testy.Greet()),
            ("echo", testy.Greet()),
            ("updates", testy.RunScenario("session_updates")),
            ("Tool Calls", testy.RunScenario("tool_calls")),
            ("client callbacks", testy.RunScenario("callbacks")),
            ("elicit", testy.RunScenario("elicitations")),
            ("cancel", testy.RunScenario("cancel_status")),
            ("wait for cancel", testy.RunScenario("wait_for_cancel")),
            ("all", testy.RunScenario("full")),
            ('{"command":"greet"}', testy.Greet()),
            ('{"command":"run_scenario","scenario":"content"}', testy.RunScenario("content")),
            ('{"command":"list_tools","server":"s"}', testy.ListTools("s")),
            ('{"command":"call_tool","server":"s","tool":"t"}', testy.CallTool("s", "t")),
            ('{"command":"fly"}', testy.Greet()),
            ('{"command":"run_scenario","scenario":"updates"}', testy.Greet()),
            ('{"command":"echo"}', testy.Greet()),
            ("{no json", testy.Greet()),
        ],
    )
    def test_text_means_a_command(self, prompt: str, command: testy.Command) -> None:
        """JSON, plain words and aliases; what is not understood is a greeting."""
        assert testy.parse(prompt) == command

    @pytest.mark.parametrize(
        "command",
        [
            testy.Help(),
            testy.Greet(),
            testy.Echo('say "hi"\n'),
            testy.ListTools("s"),
            testy.CallTool("s", "t", {"x": [1, None]}),
            *(testy.RunScenario(name) for name in get_args(testy.Scenario)),
        ],
    )
    def test_prompt_of_a_command_means_that_command(self, command: testy.Command) -> None:
        """`prompt_of` and `parse` are each other's inverse."""
        assert testy.parse(testy.prompt_of(command)) == command

    @pytest.mark.parametrize(
        ("prompt", "said"), [("hello", "Hello, world!"), ("echo Ada", "Ada"), ('{"command":"echo","message":""}', "")]
    )
    def test_answer_is_one_piece_of_message(self, run, prompt: str, said: str) -> None:
        """And the turn ends."""
        client = ScriptedClient()
        assert talk(run, client, prompt) == ["end_turn"]
        assert client.kinds == ["agent_message_chunk"]
        assert client.said == said

    def test_text_blocks_are_joined_by_a_space(self, run) -> None:
        """A command may come in pieces."""

        async def main() -> str:
            client = ScriptedClient()
            async with connected(client) as cx:
                await prompted(cx, await opened(cx), "echo", "Ada", "Lovelace")
            return client.said

        assert run(main()) == "Ada Lovelace"

    def test_help_is_one_line_that_names_every_scenario(self, run) -> None:
        """And the JSON form."""
        client = ScriptedClient()
        talk(run, client, "help")
        assert "\n" not in client.said
        assert all(word in client.said for word in ("echo", '{"command":', *get_args(testy.Scenario)))

    def test_ids_are_never_used_twice(self, run) -> None:
        """Not in another turn, and not in another session of the connection."""

        async def main() -> ScriptedClient:
            client = ScriptedClient()
            async with connected(client) as cx:
                for session_id in (await opened(cx), await opened(cx)):
                    for prompt in ("updates", "full", "hello"):
                        await prompted(cx, session_id, prompt)
            return client

        client = run(main())
        messages = [update.message_id for update in client.updates if isinstance(update, v1.ContentChunk)]
        calls = [update.tool_call_id for update in client.of_kind(v1.ToolCall)]
        assert None not in messages
        assert len(set(messages)) == len(messages) == 2 * (7 + 7 + 3)
        assert len(set(calls)) == len(calls) == 2 * (2 + 3)
        assert messages[7] == "testy-message-end-turn-8"


class TestTelling:
    def test_session_updates_tells_every_kind(self, run) -> None:
        """Info, mode, options, commands, usage; then the content; then the tool calls and the plan."""
        client = ScriptedClient()
        assert talk(run, client, "session_updates") == ["end_turn"]
        kinds = client.kinds
        assert kinds[:8] == [
            "session_info_update",
            "current_mode_update",
            "config_option_update",
            "available_commands_update",
            "usage_update",
            "user_message_chunk",
            "agent_thought_chunk",
            "agent_message_chunk",
        ]
        calls = ["tool_call", "tool_call_update", "tool_call_update", "tool_call", "tool_call_update"]
        assert kinds[12:] == [*calls, "plan", "agent_message_chunk"]
        info, usage = client.updates[0], client.updates[4]
        assert isinstance(info, v1.SessionInfoUpdate)
        assert isinstance(usage, v1.UsageUpdate)
        assert info.title == "Testy deterministic session"
        assert (usage.used, usage.size, usage.cost) == (128, 4096, v1.Cost(amount=0.0, currency="USD"))
        assert client.report == ["scenario: session_updates", "session_updates: sent"]

    def test_content_tells_every_kind_of_block(self, run) -> None:
        """Text, image, audio, a link and an embedded resource; and how many blocks the prompt had."""
        client = ScriptedClient()
        talk(run, client, "content")
        blocks = [chunk.content.type for chunk in client.of_kind(v1.AgentMessageChunk)[:-1]]
        assert blocks == ["text", "image", "audio", "resource_link", "resource"]
        assert client.of_kind(v1.UserMessageChunk)[0].content.text == "received 1 prompt content block(s)"
        assert client.report == ["scenario: content", "content_blocks: 1"]

    def test_tool_calls_go_from_pending_to_completed(self, run) -> None:
        """One that reads, one that edits with a diff, and a plan of three steps."""
        client = ScriptedClient()
        talk(run, client, "tool_calls")
        told = [update for update in client.updates if isinstance(update, v1.ToolCall | v1.ToolCallUpdate)]
        assert [update.status for update in told] == ["pending", "in_progress", "completed", "pending", "completed"]
        assert told[-1].content == [v1.Diff(path="/tmp/testy-output.txt", old_text="before\n", new_text="after\n")]
        plan = client.of_kind(v1.Plan)[0]
        assert [(step.priority, step.status) for step in plan.entries] == [
            ("high", "completed"),
            ("medium", "in_progress"),
            ("low", "pending"),
        ]
        assert client.report == ["scenario: tool_calls", "tool_calls: sent"]


class TestAsking:
    def test_callbacks_asks_for_everything_in_order(self, run) -> None:
        """Each answer is a line of the report; the elicitations follow."""
        client = ScriptedClient()
        assert talk(run, client, "callbacks") == ["end_turn"]
        assert client.asked == CALLBACKS + ["elicitation/create"] * 5
        assert [line.partition(": ok")[0] for line in client.report[1:9]] == CALLBACKS
        assert client.report[3] == 'fs/read_text_file: ok {"content":"1+20"}'
        assert client.report[9:] == ELICITATIONS

    def test_what_the_client_refuses_is_a_line_too(self, run) -> None:
        """Without a terminal the steps that need one are skipped."""
        client = ScriptedClient(files=False, terminals=False)
        assert talk(run, client, "callbacks") == ["end_turn"]
        assert client.report[2].startswith("fs/write_text_file: error [-32601]")
        assert client.report[4].startswith("terminal/create: error [-32601]")
        assert client.report[5:9] == [f"{method}: skipped" for method in CALLBACKS[4:]]

    def test_elicitations_asks_in_every_mode_and_scope(self, run) -> None:
        """Forms and links, of the session and of a request; a link that was accepted is completed."""
        client = ScriptedClient()
        talk(run, client, "elicitations")
        scopes = [(each.mode, "session" if each.session_id else "request") for each in client.elicited]
        assert scopes == [
            ("form", "session"),
            ("form", "session"),
            ("form", "request"),
            ("url", "session"),
            ("url", "request"),
        ]
        form = client.elicited[0]
        assert form.tool_call_id is not None
        assert form.requested_schema is not None
        assert len(form.requested_schema.properties) == 10
        assert client.completed == ["testy-url-session"]
        assert client.report == ["scenario: elicitations", *ELICITATIONS]

    @pytest.mark.parametrize("offered", [None, v1.ElicitationCapabilities(url=v1.ElicitationUrlCapabilities())])
    def test_without_forms_nothing_is_asked(self, run, offered: v1.ElicitationCapabilities | None) -> None:
        """The prompt fails before the first question, also where only links are offered."""
        capabilities = v1.ClientCapabilities(elicitation=offered)
        client = ScriptedClient(forms=False, links=False, capabilities=capabilities)
        with pytest.raises(acprt.RpcError, match="form elicitation") as caught:
            talk(run, client, "elicitations")
        assert caught.value.code == -32602
        assert client.elicited == []

    @pytest.mark.parametrize("scenario", ["elicitations", "callbacks", "full"])
    def test_without_links_the_forms_are_asked(self, run, scenario: str) -> None:
        """And the prompt fails where the links would come."""
        client = ScriptedClient(links=False)
        with pytest.raises(acprt.RpcError, match="URL elicitation") as caught:
            talk(run, client, scenario)
        assert caught.value.code == -32602
        assert [each.mode for each in client.elicited] == ["form"] * 3

    def test_full_does_all_of_it(self, run) -> None:
        """It shows a terminal in a tool call, and gives back every terminal that it was given."""
        client = ScriptedClient()
        assert talk(run, client, "full") == ["end_turn"]
        own = ["terminal/create", "terminal/release"]
        assert client.asked == own + CALLBACKS + ["elicitation/create"] * 5
        shown = [
            item.terminal_id
            for update in client.of_kind(v1.ToolCallUpdate)
            for item in update.content or ()
            if isinstance(item, v1.Terminal)
        ]
        assert shown == client.created[:1]
        assert client.released == client.created
        assert client.report[0:3] == ["scenario: full", "session_updates: sent", "content_blocks: 1"]
        assert client.report[3].startswith("terminal/create_for_tool_call: ok")
        assert client.report[4:6] == ["tool_calls: sent", "terminal/release_for_tool_call: ok {}"]
        assert client.report[-1] == "cancel_status: not_cancelled"

    def test_full_does_without_a_terminal(self, run) -> None:
        """The tool calls are told without one, and nothing is given back."""
        client = ScriptedClient(terminals=False)
        assert talk(run, client, "full") == ["end_turn"]
        assert client.report[3].startswith("terminal/create_for_tool_call: error")
        assert len(client.of_kind(v1.ToolCall)) == 2


class TestMethods:
    def test_every_stable_request_is_answered(self, run) -> None:
        """Sign-in and -out, sessions in all their lives, mode and option."""

        async def main() -> None:
            async with acp.Client("test").connect(testy.agent_v1()) as cx:
                peer = await acp.initialize(cx)
                assert peer.info.name == "testy"
                await acp.authenticate(cx, peer.auth_methods[0].id)
                async with acp.session(cx, cwd="/a") as session:
                    assert session.id == "testy-session-1"
                    await session.set_mode("plan")
                    options = await session.set_config_option("verbosity", "brief")
                    assert options[0].current_value == "brief"
                async with acp.load_session(cx, "kept", cwd="/b") as loaded:
                    assert await loaded.prompt("echo hi").text() == "hi"
                async with acp.resume_session(cx, "kept", cwd="/b"):
                    await acp.delete_session(cx, "kept")
                await cx.send_request(v1.LogoutRequest()).block_task()

        run(main())

    @pytest.mark.parametrize(
        "request_",
        [
            v1.AuthenticateRequest(method_id="password"),
            v1.SetSessionModeRequest(session_id="testy-session-1", mode_id="fly"),
            v1.SetSessionConfigOptionRequest(session_id="testy-session-1", config_id="verbosity", value="loud"),
            v1.SetSessionConfigOptionRequest(session_id="testy-session-1", config_id="volume", value="brief"),
            v1.SetSessionModeRequest(session_id="nobody", mode_id="plan"),
            v1.PromptRequest(session_id="nobody", prompt=[]),
        ],
        ids=lambda request: request.method,
    )
    def test_what_is_not_known_is_refused(self, run, request_: acprt.Request) -> None:
        """-32602: a way to sign in, a mode, an option, its value, a session."""

        async def main() -> None:
            async with connected(ScriptedClient()) as cx:
                await opened(cx)
                with pytest.raises(acprt.RpcError) as caught:
                    await cx.send_request(request_).block_task()
                assert caught.value.code == -32602

        run(main())

    def test_new_session_leaves_out_ids_that_were_loaded(self, run) -> None:
        """No two sessions have the same id."""

        async def main() -> list[str]:
            async with connected(ScriptedClient()) as cx:
                request = v1.LoadSessionRequest(session_id="testy-session-1", cwd="/", mcp_servers=[])
                await cx.send_request(request).block_task()
                return [await opened(cx), await opened(cx)]

        assert run(main()) == ["testy-session-2", "testy-session-3"]

    def test_list_is_sorted_and_may_be_of_one_directory(self, run) -> None:
        """A closed session is not in it."""

        async def main() -> None:
            async with connected(ScriptedClient()) as cx:
                for cwd in ("/b", "/a", "/a"):
                    await opened(cx, cwd)
                request = v1.ResumeSessionRequest(session_id="a-session", cwd="/b", additional_directories=["/more"])
                await cx.send_request(request).block_task()
                await cx.send_request(v1.CloseSessionRequest(session_id="testy-session-3")).block_task()
                everything = await cx.send_request(v1.ListSessionsRequest()).block_task()
                some = await cx.send_request(v1.ListSessionsRequest(cwd="/a")).block_task()
            ids = [session.session_id for session in everything.sessions]
            assert ids == ["a-session", "testy-session-1", "testy-session-2"]
            assert everything.sessions[0].additional_directories == ["/more"]
            assert [session.session_id for session in some.sessions] == ["testy-session-2"]

        run(main())

    @pytest.mark.parametrize("request_type", [v1.CloseSessionRequest, v1.DeleteSessionRequest])
    def test_closed_session_takes_no_prompt(self, run, request_type: type) -> None:
        """Closing it again, or one that never was, is fine."""

        async def main() -> None:
            async with connected(ScriptedClient()) as cx:
                session_id = await opened(cx)
                for id in (session_id, session_id, "nobody"):
                    await cx.send_request(request_type(session_id=id)).block_task()
                with pytest.raises(acprt.RpcError) as caught:
                    await prompted(cx, session_id, "hello")
                assert caught.value.code == -32602

        run(main())


def test_program_serves_on_stdio(run) -> None:
    """`python -m acprt.testing.testy`, a real child, does `full` and ends with its input."""

    async def main() -> None:
        process = acprt.AgentProcess(*program())
        client = ScriptedClient()
        async with client.role.connect(process) as cx:
            await acp.initialize(cx)
            assert await prompted(cx, await opened(cx), "full") == "end_turn"
        assert client.report[-1] == "cancel_status: not_cancelled"
        status = process.child_status()
        assert status is not None
        assert status.exit_status == 0

    run(main())
