"""What the user of `acprt chat` types: a line with history and completion, or the choice of an option.

It must never be asked while the live view of the screen is drawn: both need the terminal.
"""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

__all__ = ["Keyboard", "history_file", "without_echo"]

Words = Callable[[], Mapping[str, str]]
"""The commands that a line may begin with now, and what each does."""


class Keyboard:
    """The line editor. `commands` and `toolbar` are asked again for each line."""

    def __init__(self, commands: Words, toolbar: Callable[[], str], *, history: Path | None) -> None:
        kept: History = InMemoryHistory() if history is None else FileHistory(str(history))
        self._lines: PromptSession[str] = PromptSession(
            history=kept,
            completer=_Commands(commands),
            complete_while_typing=True,
            key_bindings=_keys(),
            bottom_toolbar=toolbar,
        )
        self._choices: PromptSession[str] = PromptSession()

    async def line(self) -> str:
        """The next line, which may hold line feeds. EOFError and KeyboardInterrupt as the keys say."""
        return await self._lines.prompt_async("> ", handle_sigint=False)

    async def choice(self, options: Sequence[str]) -> int | None:
        """The index of the option that was chosen by its number; None when the user refused."""
        while True:
            line = await self._choices.prompt_async(f"  1–{len(options)}, or Enter to refuse: ", handle_sigint=False)
            words = line.strip()
            if not words:
                return None
            if words.isascii() and words.isdigit() and 1 <= int(words) <= len(options):
                return int(words) - 1


@contextmanager
def without_echo() -> Iterator[None]:
    """While the block runs, keys are not written over what is drawn; they are read by the next line."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    quiet = [*before]
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)


def history_file() -> Path:
    """The lines of earlier chats, in the user's state folder; made if it is not there. Raises OSError.

    It is for its user only: prompts hold what people do not tell everybody.
    """
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    path = Path(state) / "acprt" / "chat_history"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    return path


class _Commands(Completer):
    def __init__(self, commands: Words) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Commands, for the first word of a line that begins like one."""
        text = document.text_before_cursor
        if text[:1] not in ("/", ":") or " " in text:
            return
        for name, meaning in self._commands().items():
            if name.startswith(text):
                yield Completion(name, start_position=-len(text), display_meta=meaning)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("c-c")
    def interrupt(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
