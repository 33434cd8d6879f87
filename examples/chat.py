"""Talk to any agent in the terminal: `python examples/chat.py "CMD"`.

Each line is a prompt. Before the agent does what needs permission, you are asked. Ctrl-C stops the turn that runs; when
none does, it ends the program, as the end of input does.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import threading

import acprt
from acprt import acp
from acprt.acp import v1


class Keyboard:
    """Lines from stdin, by a thread: a read that waits must hold neither the event loop nor the end of the program."""

    def __init__(self) -> None:
        self._stream = asyncio.StreamReader(limit=2**20)
        self._one_question = asyncio.Lock()
        threading.Thread(target=self._read, args=[asyncio.get_running_loop()], daemon=True).start()

    async def line(self, question: str) -> str | None:
        """Ask, and wait for a line; None at the end of input."""
        async with self._one_question:
            print(question, end="", flush=True)
            line = await self._stream.readline()
            return line.decode("utf-8", "replace").strip() if line else None

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody asks any more
            while data := os.read(sys.stdin.fileno(), 65_536):
                loop.call_soon_threadsafe(self._stream.feed_data, data)
            loop.call_soon_threadsafe(self._stream.feed_eof)


def client_with(keyboard: Keyboard) -> acp.Client:
    """What the agent may ask of us."""
    client = acp.Client("chat", version="0.1.0")

    @client.method
    async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        numbered = {str(number): option for number, option in enumerate(request.options, 1)}
        print(f"\n? {request.tool_call.title or 'The agent wants to go on'}")
        for number, option in numbered.items():
            print(f"  {number} {option.name}")
        chosen = numbered.get(await keyboard.line("  number, or nothing to refuse: ") or "")
        return acp.reject(request) if chosen is None else acp.select_option(request, chosen.option_id)

    return client


def show(update: v1.SessionUpdate) -> None:
    """One update, as a person wants to read it; what this program does not know is left out."""
    match update:
        case v1.AgentMessageChunk(content=v1.TextContent(text=text)):
            print(text, end="", flush=True)
        case v1.ToolCall(title=title):
            print(f"\n- {title}")
        case v1.ToolCallUpdate(title=title, status="failed"):
            print(f"\n- {title or 'it'} failed")
        case v1.Plan(entries=entries):
            for entry in entries:
                print(f"\n{'x' if entry.status == 'completed' else '.'} {entry.content}", end="")


async def chat(session: acp.Session, keyboard: Keyboard) -> None:
    """Turn after turn, until the end of input."""
    while (text := await keyboard.line("> ")) is not None:
        if not text:
            continue
        try:
            async for update in session.prompt(text):
                show(update)
            print("" if session.stop_reason == "end_turn" else f"\n[{session.stop_reason}]")
        except acprt.RpcError as error:  # this prompt failed; the session goes on, if there is still an agent
            if acprt.is_incoming_transport_closed(error):
                raise
            print(f"\nThe agent could not do that: {error}", file=sys.stderr)


async def run(command: str, cwd: str) -> None:
    keyboard = Keyboard()
    async with client_with(keyboard).connect(acprt.AgentProcess.parse(command)) as cx:
        agent = await acp.initialize(cx, timeout=60.0)
        async with acp.session(cx, cwd=cwd, timeout=60.0) as session:
            whole, loop = asyncio.current_task(), asyncio.get_running_loop()
            assert whole is not None, "a coroutine runs in a task"
            loop.add_signal_handler(signal.SIGINT, lambda: session.cancel() if session.is_running else whole.cancel())
            print(f"This is {agent.info.name if agent.info else command}.")
            await chat(session, keyboard)


def main() -> int:
    parser = argparse.ArgumentParser(description="Talk to an ACP agent in the terminal.")
    parser.add_argument("command", help='the agent, as in a shell: "FOO=1 agent --flag"')
    parser.add_argument("--cwd", default=".", help="the folder that the agent works in")
    arguments = parser.parse_args()
    try:
        asyncio.run(run(arguments.command, arguments.cwd))
    except (acprt.RpcError, TimeoutError) as error:
        print(f"chat: {error}", file=sys.stderr)
        return 1
    except (asyncio.CancelledError, KeyboardInterrupt):
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
