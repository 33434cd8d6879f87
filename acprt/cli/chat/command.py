"""The `acprt chat` command: connects, and goes on turn after turn until the user leaves."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path

import click

from acprt.acp import v1
from acprt.acp.client import Client
from acprt.acp.permissions import cancelled, reject, select_option
from acprt.acp.sessions import Session
from acprt.cli.agent_command import AgentChoice, AgentCommand, agent_options
from acprt.cli.chat.keyboard import Keyboard, history_file, without_echo
from acprt.cli.chat.local_commands import AgentState, LocalCommands
from acprt.cli.chat.screen import Screen
from acprt.cli.failures import failure_of, has_ended
from acprt.cli.permissions import answer_permissions, permission_option, question_of
from acprt.cli.talk import Talk, cli_client
from acprt.errors import RpcError
from acprt.runtime.handlers import Handled

__all__ = ["chat"]


@click.command(cls=AgentCommand)
@agent_options(
    cwd="The folder of the session; here, unless it is given. The agent itself is started here in any case.",
    timeout="For each step before the first turn (start, sign-in, session, mode). Turns are not bounded.",
)
@permission_option
@click.option("--mode", metavar="ID", help="Set the session mode first.")
@click.option("--load", metavar="ID", help="Open an earlier session of this id and show what was said.")
@click.option("--resume", metavar="ID", help="Go on with an earlier session of this id.")
@click.option("--auth", metavar="ID", help="Sign in by this method of the agent first.")
@click.option("--no-history", is_flag=True, help="Neither read nor keep the lines that are typed.")
def chat(
    *,
    agent: AgentChoice,
    permission: str | None,
    mode: str | None,
    load: str | None,
    resume: str | None,
    auth: str | None,
    no_history: bool,
) -> None:
    """Talk to an agent in the terminal.

    Each line is a prompt; Alt-Enter begins a new line in it. What the agent says is shown as Markdown, with its tool
    calls, its plan and its questions. `:help` lists the commands of the chat, `/` begins one of the agent's.

    Ctrl-C cancels the turn that runs, and a second one leaves; at an empty line it leaves at once, as Ctrl-D does.

    It speaks version 1 of ACP, sends text only, and offers the agent no files and no terminal of its own. --permission
    answers what the agent asks; what it does without asking is not prevented.

    \b
    acprt chat -- my-agent --flag
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("chat needs a terminal; in a script, use `acprt prompt`")
    if load is not None and resume is not None:
        raise click.UsageError("--load and --resume exclude each other")
    history = None if no_history else _history_file()
    screen = Screen()
    client = cli_client()
    conversation = Talk(agent)
    chatting = _Chat(client, screen, permission, agent.name)

    async def body() -> None:
        peer = await conversation.initialize(auth)
        if peer.info is not None:
            chatting.state.name = peer.info.title or peer.info.name
        async with await conversation.open_session(load=load, resume=resume) as opened:
            screen.history(opened.replay)
            await conversation.set_mode(opened, mode)
            screen.say(f"{chatting.state.name} in {agent.cwd}  (:help, Ctrl-D leaves)")
            conversation.stage = "session/prompt"
            await chatting.run(opened, history)

    conversation.run(client, body, show_stderr=screen.stderr)


def _history_file() -> Path:
    try:
        return history_file()
    except OSError as error:
        raise click.UsageError(f"the lines of earlier chats: {error}; --no-history goes without them") from None


class _Chat:
    """The turns of one session, and what the agent asks during them."""

    session: Session  # these three once it runs
    keyboard: Keyboard
    local: LocalCommands

    def __init__(self, client: Client, screen: Screen, permission: str | None, agent_name: str) -> None:
        self.screen = screen
        self.state = AgentState(agent_name)
        """What the agent tells of itself, from the first word on."""
        self._one_question = asyncio.Lock()
        self._is_cancelling = False
        self._whole: asyncio.Task[None] | None = None
        answer_permissions(client, permission, self._ask, self._tell)

        @client.on_receive_notification
        async def watch(note: v1.SessionNotification) -> Handled:
            self.state.take(note.update)  # also between turns, when nobody reads the session
            return Handled.no()

    async def run(self, session: Session, history: Path | None) -> None:
        """Read a line, do what it says; until the user leaves. Raises RpcError when the agent ends."""
        self.session = session
        self.local = LocalCommands(session, self.screen, self.state)
        self.keyboard = Keyboard(self.local.words, self.toolbar, history=history)
        self._whole = asyncio.current_task()
        while not self.local.is_over:
            line = await self._line()
            if line is None:
                return
            if line and not await self.local.run(line):
                await self._turn(line)

    async def _line(self) -> str | None:
        """The next line; None when the user leaves. Raises RpcError when the agent ends while it is waited for."""
        cx = self.session.cx
        typing, ending = asyncio.ensure_future(self._typed()), asyncio.ensure_future(cx.incoming_closed())
        try:
            await asyncio.wait([typing, ending], return_when=asyncio.FIRST_COMPLETED)
            if not typing.done():
                await cx.send_request("session/list").block_task()  # its error says how the agent ended
        finally:
            for task in (typing, ending):
                task.cancel()
            await asyncio.wait([typing, ending])  # the terminal is as it was before
        return typing.result()

    async def _typed(self) -> str | None:
        try:
            return (await self.keyboard.line()).strip()
        except (EOFError, KeyboardInterrupt):
            return None

    def toolbar(self) -> str:
        """The line at the bottom while a line is typed."""
        parts = [self.state.name]
        modes = self.session.modes
        if modes is not None:
            current = modes.current_mode_id
            names = [mode.name for mode in modes.available_modes if mode.id == current]
            parts.append(f"mode {names[0] if names else current}")
        if self.state.used is not None and self.state.size:
            parts.append(f"context {100 * self.state.used // self.state.size} %")
        if self.state.title:
            parts.append(self.state.title)
        return "  ·  ".join(parts)

    async def _turn(self, text: str) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        self._is_cancelling = False
        began = time.monotonic()
        turn = self.session.prompt(text)
        try:
            with without_echo(), self.screen.turn():
                async for update in turn:
                    self.screen.update(update)
        except RpcError as error:
            if has_ended(self.session.cx):
                raise
            self.screen.say(
                failure_of(error, "session/prompt", said_by_agent=True).message, "red"
            )  # the session goes on
            return
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        why = "" if turn.stop_reason == "end_turn" else f"{turn.stop_reason}, "
        self.screen.say(f"({why}{time.monotonic() - began:.1f} s)")

    def _interrupt(self) -> None:
        """The first Ctrl-C of a turn cancels it, the next one ends the program."""
        if self._is_cancelling and self._whole is not None:
            self._whole.cancel()
        self._is_cancelling = True
        self.screen.note("cancelling; Ctrl-C again leaves")
        self.session.cancel()

    async def _ask(self, request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        async with self._one_question:
            with self.screen.asking():
                self.screen.say(f"? {question_of(request)}", "bold yellow")
                for number, option in enumerate(request.options, 1):
                    self.screen.say(f"  {number} {option.name}", "")
                try:
                    chosen = await self.keyboard.choice([option.name for option in request.options])
                except (EOFError, KeyboardInterrupt):
                    self._interrupt()
                    return cancelled(request)
        return reject(request) if chosen is None else select_option(request, request.options[chosen].option_id)

    def _tell(self, request: v1.RequestPermissionRequest, answer: str) -> None:
        self.screen.say(f"? {question_of(request)}: {answer}", "yellow")
