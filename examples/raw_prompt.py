"""Drives any agent that speaks the Agent Client Protocol through one prompt, with untyped messages.

`raw_prompt.py "CMD" "text"` starts CMD, prints what the agent says as it comes, and at the end why it stopped. Ctrl-C
cancels the turn. What the agent asks permission for is allowed: give it only to agents and prompts that you trust.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import acprt

PROTOCOL_VERSION = 1
NEWEST_STDERR_LINES = 20


class Unusable(Exception):
    """The agent answered, but with nothing that a turn can go on with."""


class Watch:
    """What an error message needs to know: the stage of the run, its age, and what the agent wrote beside messages."""

    def __init__(self) -> None:
        self.plain_text = ""
        self.stderr: deque[str] = deque(maxlen=NEWEST_STDERR_LINES)
        self._silence: asyncio.Timeout | None = None
        self._silence_seconds = 0.0
        self.enter("start")

    def enter(self, stage: str) -> None:
        self.stage = stage
        self.since = time.monotonic()
        self.seconds = 0.0

    def leave(self) -> None:
        """Before the agent is closed, which may take seconds more."""
        self.seconds = time.monotonic() - self.since

    def line_passed(self, event: acprt.TraceEvent) -> None:
        """Every line of the connection comes by here."""
        if event.direction == "out":
            return
        if self._silence is not None:
            self._silence.reschedule(asyncio.get_running_loop().time() + self._silence_seconds)
        if not self.plain_text and not event.line.lstrip().startswith((b"{", b"[")):
            self.plain_text = event.line[:200].decode("utf-8", "replace").strip()

    @contextlib.asynccontextmanager
    async def no_silence_of(self, seconds: float) -> AsyncIterator[None]:
        """A limit on silence, not on the turn, since agents work for hours: each line puts the end off."""
        self._silence_seconds = seconds
        try:
            async with asyncio.timeout(seconds) as self._silence:
                yield
        finally:
            self._silence = None


def client_watched_by(watch: Watch) -> acprt.Endpoint:
    """What the agent may ask of its client, and tell it."""
    client = acprt.Endpoint("raw-prompt")
    client.trace(watch.line_passed)

    @client.on_receive_notification("session/update")
    async def update(params: Any) -> None:
        match params:
            case {"update": {"sessionUpdate": "agent_message_chunk", "content": {"text": str(text)}}}:
                print(text, end="", flush=True)

    @client.method("session/request_permission")
    async def permission(params: Any) -> Any:
        option = preferred(params.get("options") or [])
        if option is None:
            return {"outcome": {"outcome": "cancelled"}}
        print(f"[permission: {option.get('name', option['optionId'])}]", file=sys.stderr)
        return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}

    @client.method("fs/read_text_file", "fs/write_text_file")
    async def files(_params: Any) -> Any:
        raise acprt.RpcError(acprt.ErrorCode.METHOD_NOT_FOUND, "this client gives no access to files")

    return client


def preferred(options: list[dict[str, Any]]) -> dict[str, Any] | None:
    """By kind, since ids and names are the agent's own: once, then always, then whatever comes first."""
    for kind in ("allow_once", "allow_always"):
        for option in options:
            if option.get("kind") == kind:
                return option
    return options[0] if options else None


async def run(arguments: argparse.Namespace, watch: Watch) -> str:
    """The stop reason of one whole turn."""
    agent = acprt.AgentProcess.parse(arguments.command, on_stderr=watch.stderr.append)
    async with client_watched_by(watch).connect(agent) as cx:
        try:
            return await turn(cx, arguments, watch)
        finally:
            watch.leave()


async def turn(cx: acprt.Connection, arguments: argparse.Namespace, watch: Watch) -> str:
    watch.enter("initialize")
    capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    hello = {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": capabilities}
    match await cx.send_request("initialize", hello).block_task(timeout=arguments.timeout):
        case {"protocolVersion": int(version)} if version == PROTOCOL_VERSION:
            pass
        case answer:
            raise Unusable(f"the agent does not speak version {PROTOCOL_VERSION} of the protocol: {answer!r:.200}")

    watch.enter("session/new")
    where = {"cwd": arguments.cwd, "mcpServers": []}
    match await cx.send_request("session/new", where).block_task(timeout=arguments.timeout):
        case {"sessionId": str(session_id)}:
            pass
        case answer:
            raise Unusable(f"the agent opened no session: {answer!r:.200}")

    watch.enter("session/prompt")
    cancel_on_interrupt(cx, session_id)
    text = arguments.text.encode("utf-8", "surrogateescape").decode(
        "utf-8", "replace"
    )  # whatever the locale made of it
    prompt = {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]}
    async with watch.no_silence_of(arguments.idle_timeout):
        answer = await cx.send_request("session/prompt", prompt).block_task()
    return str(answer.get("stopReason")) if isinstance(answer, dict) else repr(answer)


def cancel_on_interrupt(cx: acprt.Connection, session_id: str) -> None:
    """Ctrl-C asks the agent to stop; a second one ends this program."""
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        cx.send_notification("session/cancel", {"sessionId": session_id})

    loop.add_signal_handler(signal.SIGINT, interrupted)


def reason(error: Exception, watch: Watch) -> str:
    """What went wrong, in words that say what to look at."""
    if isinstance(error, acprt.RpcError):
        facts = error.data if isinstance(error.data, dict) else {}
        if facts.get("reason") == "spawn_failed":
            return f"the agent could not be started: {facts['error']}"
        if not acprt.is_incoming_transport_closed(error):
            return f"the agent answered with an error: {error}"
        text = f"the agent ended with exit status {facts.get('exit_status')}"
    elif isinstance(error, TimeoutError):
        text = "the agent stayed silent; see --help for how to wait longer"
    else:
        return str(error)
    if watch.plain_text:
        text = f"this is not the protocol, the first line on its stdout is {watch.plain_text!r}; {text}"
    if watch.stderr:
        text += "\nIts stderr ends:\n" + "\n".join(f"  {line}" for line in watch.stderr)
    return text


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="One prompt to any ACP agent. It is allowed whatever it asks for.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("command", help='the agent, as in a shell: "FOO=1 agent --flag"')
    parser.add_argument("text", help="the prompt")
    parser.add_argument("--cwd", type=os.path.abspath, default=".", help="the folder that the agent works in")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each stage before the prompt")
    parser.add_argument("--idle-timeout", type=float, default=300.0, help="seconds of silence during the prompt")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    arguments, watch = arguments_of(argv), Watch()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]  # a TextIO here
    try:
        stop_reason = asyncio.run(run(arguments, watch))
    except (acprt.RpcError, TimeoutError, Unusable, ValueError) as error:
        where = f"{watch.stage} failed after {watch.seconds:.1f} s"
        print(f"raw_prompt: {where}: {reason(error, watch)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"\n[{stop_reason}]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
