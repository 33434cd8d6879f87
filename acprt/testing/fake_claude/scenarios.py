"""What the fake plays. The first word of a prompt names it, the rest are its arguments; any other prompt is echoed.

hello                  a word of thinking, then text
say TEXT               that text
large BYTES            a block of so many bytes
flood COUNT            so many streaming events
wait                   streams until it is interrupted
tool [COMMAND]         a Bash call that needs permission
two-tools              two of them, asked one after the other
question               a tool that asks the user something
todo                   a TodoWrite call
shell [SECONDS]        a background shell that ends by itself, with a turn of its own
detached               a background shell with a real process in a session of its own
agent [SECONDS]        a background agent; `resume` runs it again, `late` tells of its first run after that
agent-inside           what an agent does shows under the call that first started it
handback KIND          send, send-warned, flagged, withheld or bare: an agent that hands back
links                  an MCP task that ends with resource links
auth, api-error, max-turns, budget, refusal
                       turns that end that way
hook                   runs the host's PreToolUse hooks
mcp SERVER             lists the tools of a server of the host's
elicit, dialog KIND    asks the host
odd                    asks the host for something that does not exist
stray                  lines on stdout that are no frames
broken                 a damaged frame in mid-turn
crash                  exits 3 in mid-turn
garbage-result BYTES   a result of so many bytes, for one that is longer than it may be
environment NAME       the value of a variable
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from acprt.testing.fake_claude.stage import Stage

__all__ = ["scenario_for"]

Scenario = Callable[[Stage], Awaitable[None]]
_scenarios: dict[str, Scenario] = {}


def scenario_for(text: str) -> Scenario:
    """What to play for a prompt."""
    word = text.split(maxsplit=1)[0] if text.strip() else ""
    return _scenarios.get(word, _echo)


def _scenario(*names: str) -> Callable[[Scenario], Scenario]:
    def enter(play: Scenario) -> Scenario:
        _scenarios.update(dict.fromkeys(names, play))
        return play

    return enter


def _arguments(stage: Stage) -> list[str]:
    return stage.text.split()[1:]


async def _echo(stage: Stage) -> None:
    stage.speak(stage.text)
    stage.result(stage.text)


@_scenario("hello")
async def _hello(stage: Stage) -> None:
    stage.speak("A greeting.", thinking=True)
    stage.speak("Hello, I am a fake.")
    stage.result("Hello, I am a fake.")


@_scenario("say")
async def _say(stage: Stage) -> None:
    text = stage.text.partition(" ")[2]
    stage.speak(text)
    stage.result(text)


@_scenario("large")
async def _large(stage: Stage) -> None:
    stage.speak("x" * int(_arguments(stage)[0]))
    stage.speak("after")
    stage.result("after")


@_scenario("flood")
async def _flood(stage: Stage) -> None:
    for number in range(int(_arguments(stage)[0])):
        stage.stream(f"{number} ")
    if "wait" in stage.text:
        await asyncio.Event().wait()
    stage.result("done")


@_scenario("wait")
async def _wait(stage: Stage) -> None:
    stage.stream("waiting")
    await asyncio.Event().wait()


@_scenario("tool")
async def _tool(stage: Stage) -> None:
    command = stage.text.partition(" ")[2] or "touch f"
    await _bash(stage, "toolu_1", command)
    stage.result("done")


@_scenario("two-tools")
async def _two_tools(stage: Stage) -> None:
    await _bash(stage, "toolu_1", "first")
    await _bash(stage, "toolu_2", "second")
    stage.result("done")


async def _bash(stage: Stage, id: str, command: str) -> None:
    asked = {"command": command, "description": "make a file"}
    stage.use_tool(id, "Bash", asked)
    suggestions = [
        {
            "type": "addRules",
            "rules": [{"toolName": "Bash", "ruleContent": command}],
            "behavior": "allow",
            "destination": "localSettings",
        }
    ]
    more = {"description": "make a file", "permission_suggestions": suggestions, "blocked_path": "/src/f"}
    given = await stage.permitted(id, "Bash", asked, **more)
    if given is not None:
        stage.tool_result(id, f"ran {given.get('command')}", tool_use_result={"stdout": "", "interrupted": False})


@_scenario("question")
async def _question(stage: Stage) -> None:
    asked = {"questions": [{"question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}]}
    stage.use_tool("toolu_q", "AskUserQuestion", asked)
    given = await stage.permitted("toolu_q", "AskUserQuestion", asked, requires_user_interaction=True)
    if given is not None:
        stage.tool_result("toolu_q", f"answers: {given.get('answers')}")
    stage.result("done")


@_scenario("todo")
async def _todo(stage: Stage) -> None:
    todos = [
        {"content": "Read", "status": "completed", "activeForm": "Reading"},
        {"content": "Write", "status": "in_progress", "activeForm": "Writing"},
    ]
    stage.use_tool("toolu_t", "TodoWrite", {"todos": todos})
    stage.tool_result("toolu_t", "ok")
    stage.result("planned")


@_scenario("shell")
async def _shell(stage: Stage) -> None:
    seconds = float((_arguments(stage) or ["0.01"])[0])
    _start_shell(stage, seconds=seconds)
    stage.speak("started")
    stage.result("started")


@_scenario("detached")
async def _detached(stage: Stage) -> None:
    _start_shell(stage, detached=True)
    stage.result("started")


def _start_shell(stage: Stage, *, seconds: float | None = None, detached: bool = False) -> None:
    background = stage.command.background
    stage.use_tool("toolu_b", "Bash", {"command": "sleep 2", "run_in_background": True})
    run = background.start("b0000task", "local_bash", "toolu_b", "bg", detached=detached)
    stage.tool_result("toolu_b", "running in the background", tool_use_result={"backgroundTaskId": run.task_id})
    if seconds is not None:
        summary = 'Background command "bg" completed (exit code 0)'
        stage.command.spawn(background.finish_after(seconds, run, summary=summary))


@_scenario("agent", "resume", "agent-inside")
async def _agent(stage: Stage) -> None:
    background = stage.command.background
    resumes = stage.text.startswith("resume")
    call = "toolu_call_b" if resumes else "toolu_call_a"
    stage.use_tool(call, "SendMessage" if resumes else "Agent", {"prompt": "look"})
    run = background.start(
        "a0000000000000dbb", "local_agent", call, "Look around", spawn_depth=1, subagent_type="general", prompt="look"
    )
    stage.tool_result(call, "running in the background")
    background.progress(run, "Running inner", "Bash")
    stage.use_tool("toolu_inner", "Bash", {"command": "ls"}, parent="toolu_call_a")
    usage = {"total_tokens": 18, "tool_uses": 1, "duration_ms": 1906 if resumes else 1207}
    how: dict[str, Any] = {"summary": "Found it again" if resumes else "Found it", "usage": usage}
    seconds = float((_arguments(stage) or ["0.01"])[0])
    stage.command.spawn(background.finish_after(seconds, run, summary_is_report=True, **how))
    stage.result("started")


@_scenario("late")
async def _late(stage: Stage) -> None:
    late: dict[str, Any] = {
        "task_id": "a0000000000000dbb",
        "run_id": "0mx0001",
        "status": "failed",
        "summary": "too late",
    }
    stage.command.say("system", "task_notification", **late, output_file="")
    stage.result("told")


_HANDBACKS: dict[str, dict[str, Any]] = {
    "send": {"handback": "send", "handback_report": {"text": "The report.", "toolUseId": "toolu_h"}},
    "send-warned": {"handback": "send", "handback_report": {"text": "The report.", "warning": "Not reviewed."}},
    "flagged": {"handback": "flagged", "handback_report": {"text": "The report.", "warning": "Careful!"}},
    "withheld": {"handback": "withheld"},
    "bare": {"handback": "send"},
}


@_scenario("handback")
async def _handback(stage: Stage) -> None:
    background = stage.command.background
    stage.use_tool("toolu_h0", "Agent", {"prompt": "report"})
    run = background.start("a0000000000000aaa", "local_agent", "toolu_h0", "Report")
    stage.tool_result("toolu_h0", "running in the background")
    background.finish(run, summary="notes for the model", **_HANDBACKS[_arguments(stage)[0]])
    stage.result("reported")


@_scenario("links")
async def _links(stage: Stage) -> None:
    background = stage.command.background
    stage.use_tool("toolu_m", "mcp__files__find", {})
    run = background.start("m0000task", "mcp_task", "toolu_m", "find")
    stage.tool_result("toolu_m", "running in the background")
    links = [{"uri": "file:///a", "name": "a", "mimeType": "text/plain"}]
    background.finish(run, summary="1 file", resource_links=links)
    stage.result("found")


@_scenario("woken")
async def _woken(stage: Stage) -> None:
    text = f"Noted: {stage.prompt['task']['summary']}"
    stage.speak(text)
    stage.result(text)


@_scenario("auth")
async def _auth(stage: Stage) -> None:
    text = "Not logged in · Please run /login"
    message = {
        "id": "m",
        "model": "<synthetic>",
        "role": "assistant",
        "stop_reason": "stop_sequence",
        "content": [{"type": "text", "text": text}],
    }
    failed: dict[str, Any] = {"error": "authentication_failed", "is_api_error_message": True}
    stage.command.say("assistant", message=message, parent_tool_use_id=None, **failed)
    stage.result(text, is_error=True, terminal_reason="api_error", stop_reason="stop_sequence", api_error_status=None)


@_scenario("api-error")
async def _api_error(stage: Stage) -> None:
    stage.command.say("system", "api_retry", attempt=1, max_retries=10, retry_delay_ms=1, error_status=None, error="x")
    stage.result("API Error: 500", is_error=True, terminal_reason="api_error", api_error_status=500)


@_scenario("max-turns")
async def _max_turns(stage: Stage) -> None:
    reason = "Reached maximum number of turns (1)"
    stage.result(subtype="error_max_turns", is_error=True, errors=[reason], terminal_reason="max_turns")


@_scenario("budget")
async def _budget(stage: Stage) -> None:
    stage.result(subtype="error_max_budget_usd", is_error=True, errors=["spent"], terminal_reason="budget_exhausted")


@_scenario("refusal")
async def _refusal(stage: Stage) -> None:
    stage.result("", stop_reason="refusal")


@_scenario("hook")
async def _hook(stage: Stage) -> None:
    for matcher in stage.command.initialize.get("hooks", {}).get("PreToolUse", []):
        for callback_id in matcher["hookCallbackIds"]:
            event = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}}
            ask = stage.command.ask("hook_callback", callback_id=callback_id, input=event, tool_use_id="toolu_1")
            try:
                async with asyncio.timeout(matcher.get("timeout", 60)):
                    output = await ask
            except TimeoutError:
                output = "timeout"
            except RuntimeError as error:
                output = f"error: {error}"
            stage.speak(f"hook: {output}")
    stage.result("hooked")


@_scenario("mcp")
async def _mcp(stage: Stage) -> None:
    (server,) = _arguments(stage)
    try:
        answer = await stage.command.mcp(server, {"id": 1, "method": "tools/list"})
    except RuntimeError as error:
        answer = str(error)
    stage.speak(f"tools: {answer}")
    stage.result("listed")


@_scenario("elicit")
async def _elicit(stage: Stage) -> None:
    answer = await stage.command.ask("elicitation", mcp_server_name="forms", message="Your name?")
    stage.speak(f"elicited: {answer}")
    stage.result("elicited")


@_scenario("dialog")
async def _dialog(stage: Stage) -> None:
    (kind,) = _arguments(stage)
    try:
        async with asyncio.timeout(0.2):
            answer = await stage.command.ask("request_user_dialog", dialog_kind=kind, payload={})
    except TimeoutError:
        answer = "silence"
    stage.speak(f"dialog: {answer}")
    stage.result("shown")


@_scenario("odd")
async def _odd(stage: Stage) -> None:
    try:
        answer = await stage.command.ask("read_mind", of="user")
    except RuntimeError as error:
        answer = str(error)
    stage.speak(f"odd: {answer}")
    stage.result("odd")


@_scenario("stray")
async def _stray(stage: Stage) -> None:
    for line in (b"[SandboxDebug] x", b"\x1b[31mred\x1b[0m", b"", b"  ", b"\xe4\xbd", b"[1]", b"{cut", b"{} {}"):
        stage.command.write_raw(line + b"\n")
        stage.speak("between")
    stage.result("between")


@_scenario("broken")
async def _broken(stage: Stage) -> None:
    stage.command.write_raw(b'{"type":"assistant","message":{"content":[\n')
    stage.speak("after")
    stage.result("after")


@_scenario("garbage-result")
async def _garbage_result(stage: Stage) -> None:
    stage.result("x" * int(_arguments(stage)[0]))


@_scenario("crash")
async def _crash(stage: Stage) -> None:
    stage.stream("going to ")
    sys.stderr.write("fatal: it broke\n")
    stage.command.exit(3)
    await asyncio.Event().wait()


@_scenario("environment")
async def _environment(stage: Stage) -> None:
    (name,) = _arguments(stage)
    text = repr(os.environ.get(name))
    stage.speak(text)
    stage.result(text)
