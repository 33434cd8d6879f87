"""What the user of `acprt chat` sees: finished parts are printed for good, what still changes is drawn below them.

While a turn runs, the lowest lines of the terminal are a live view: the end of the message, running tool calls, the
plan, and how long the turn has taken. What is over moves up into the scrollback, in the order in which it came.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from acprt.acp import v1
from acprt.cli.chat.markdown import finished_part
from acprt.cli.terminal_text import printable
from acprt.cli.tool_calls import ShownCall, ToolCalls

__all__ = ["Screen"]

_FRAMES_PER_SECOND = 10
_LINES_BESIDE_MESSAGE = 8  # of the live view that are kept for tool calls, plan and status
_LIVE_CHARACTERS = 8_000  # of an unfinished block that are drawn ten times a second
_LIVE_CALLS = 4  # running tool calls that are drawn; more are counted
_THOUGHT_CHARACTERS = 200  # the end of a thought, of which one line is drawn
_CONTENT_LINES = 12  # of what a tool call brought
_MARKS = {"completed": ("✓", "green"), "failed": ("✗", "red")}
_PLAN_MARKS = {"completed": "●", "in_progress": "◐"}


class Screen:
    """The terminal, between and during turns. One turn at a time."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        self._live: Live | None = None
        self._message = ""  # what is not printed of the agent's message
        self._message_id: str | None = None
        self._thought = ""
        self._calls = ToolCalls()
        self._plan: Sequence[v1.PlanEntry] = ()
        self._plan_is_news = False
        self._started = 0.0
        self._note = ""
        self._said = False  # whether this turn printed anything: blocks are set apart by an empty line

    # -- between turns ------------------------------------------------------------------------------------------

    def say(self, text: str, style: str = "dim") -> None:
        """A line of the program's own."""
        self.console.print(Text(printable(text), style))

    def stderr(self, line: str) -> None:
        """A line of the agent's stderr; it may come on another thread."""
        self.console.print(Text(f"[stderr] {printable(line)}", "dim"))

    def history(self, updates: Iterable[object]) -> None:
        """What was said in a session that is opened again."""
        for update in updates:
            self.update(update)
        self._finish_message()
        self._said = False

    # -- a turn -------------------------------------------------------------------------------------------------

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn runs in the block; what is unfinished at its end is printed as it is."""
        self._started = time.monotonic()
        self._note = "Ctrl-C cancels"
        self._calls = ToolCalls()
        self._said = False
        self._draw()
        try:
            yield
        finally:
            self._finish_message()
            for call in self._calls.running:
                self._print_call(call)
            if self._plan_is_news:
                self._apart(_plan_table(self._plan))
                self._plan_is_news = False
            self._erase()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """The block has the terminal to itself, for a question in the middle of a turn."""
        was_live = self._live is not None
        self._finish_message()
        self._erase()
        try:
            yield
        finally:
            if was_live:
                self._draw()

    def note(self, text: str) -> None:
        """What stands beside the elapsed time from now on."""
        self._note = text

    def update(self, update: object) -> None:
        """Show one update; what this program does not know is left out."""
        match update:
            case v1.AgentMessageChunk(content=v1.TextContent(text=text), message_id=message_id):
                if message_id != self._message_id:
                    self._finish_message()
                    self._message_id = message_id
                self._take_text(printable(text))
            case v1.AgentMessageChunk(content=content):
                self._finish_message()
                self._apart(Text(_named(content), "dim"))
            case v1.AgentThoughtChunk(content=v1.TextContent(text=text)):
                self._thought = (self._thought + printable(text))[-_THOUGHT_CHARACTERS:]
            case v1.UserMessageChunk(content=v1.TextContent(text=text)):
                self._finish_message()
                self._apart(Text(f"> {printable(text)}", "cyan"))
            case v1.ToolCall() | v1.ToolCallUpdate():
                self._take_call(update)
            case v1.Plan(entries=entries):
                self._plan = entries
                self._plan_is_news = True

    # -- private ------------------------------------------------------------------------------------------------

    def _take_text(self, text: str) -> None:
        self._thought = ""
        self._message += text
        done, self._message = finished_part(self._message)
        if done.strip():
            self._apart(Markdown(done))

    def _take_call(self, update: v1.ToolCall | v1.ToolCallUpdate) -> None:
        self._finish_message()  # it was said before the tool was called
        call, is_news = self._calls.apply(update)
        if is_news and call.has_ended:
            self._print_call(call)

    def _finish_message(self) -> None:
        message, self._message = self._message, ""
        self._thought = ""
        if message.strip():
            self._apart(Markdown(message))

    def _print_call(self, call: ShownCall) -> None:
        mark, colour = _MARKS.get(call.status, ("…", "yellow"))
        self._apart(Text.assemble((f"{mark} ", colour), printable(call.title), (f"  {call.kind}", "dim")))
        for content in call.content:
            shown = _content_of(content)
            if shown is not None:
                self.console.print(shown)

    def _apart(self, what: RenderableType) -> None:
        if self._said:
            self.console.print()
        self._said = True
        self.console.print(what)

    def _draw(self) -> None:
        self._live = Live(
            console=self.console,
            get_renderable=self._view,
            refresh_per_second=_FRAMES_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def _erase(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _view(self) -> RenderableType:
        parts: list[RenderableType] = []
        if self._message.strip():
            parts.append(_Tail(self._message, max(3, self.console.height - _LINES_BESIDE_MESSAGE)))
        elif self._thought.strip():
            parts.append(Text(self._thought.strip().splitlines()[-1], "dim italic", no_wrap=True))
        running = self._calls.running
        parts += [Spinner("dots", Text(printable(call.title), no_wrap=True)) for call in running[:_LIVE_CALLS]]
        if len(running) > _LIVE_CALLS:
            parts.append(Text(f"  and {len(running) - _LIVE_CALLS} more", "dim"))
        if self._plan and any(entry.status != "completed" for entry in self._plan):
            done = sum(entry.status == "completed" for entry in self._plan)
            current = next((entry.content for entry in self._plan if entry.status == "in_progress"), "")
            parts.append(Text(f"plan {done}/{len(self._plan)}  {printable(current)}", "blue", no_wrap=True))
        elapsed = time.monotonic() - self._started
        parts.append(Spinner("line", Text(f"{elapsed:.0f} s  {self._note}", "dim"), style="dim"))
        return Group(*parts)


class _Tail:
    """The last lines of a Markdown text: a live view must not be higher than the terminal."""

    def __init__(self, text: str, lines: int) -> None:
        self._markdown = Markdown(text[-_LIVE_CHARACTERS:])
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rendered whole, since only then it is known how many lines a paragraph takes."""
        for line in console.render_lines(self._markdown, options, pad=False)[-self._lines :]:
            yield from line
            yield Segment.line()


def _plan_table(entries: Sequence[v1.PlanEntry]) -> Table:
    table = Table.grid(padding=(0, 1))
    for entry in entries:
        style = "dim" if entry.status == "completed" else "bold" if entry.status == "in_progress" else ""
        table.add_row(_PLAN_MARKS.get(entry.status, "○"), Text(printable(entry.content), style))
    return table


def _named(content: object) -> str:
    """What stands for content that a terminal cannot show."""
    match content:
        case v1.ResourceLink(name=name, uri=uri):
            return printable(f"[{name}: {uri}]")
        case _:
            return f"[{getattr(content, 'type', 'content')}]"


def _content_of(content: object) -> RenderableType | None:
    match content:
        case v1.Content(content=v1.TextContent(text=text)):
            return _cut(Text(printable(text).rstrip(), "dim"))
        case v1.Diff(path=path, old_text=old, new_text=new):
            return _cut(_diff(path, old or "", new))
        case _:
            return None


def _diff(path: str, old: str, new: str) -> Text:
    text = Text()
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), printable(path), printable(path), lineterm="", n=1)
    for line in lines:
        style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
        text.append(f"{printable(line)}\n", style)
    text.rstrip()
    return text


def _cut(text: Text) -> RenderableType:
    lines = text.split("\n")
    shown = Text("\n").join(lines[:_CONTENT_LINES])
    if len(lines) > _CONTENT_LINES:
        shown.append(f"\n… {len(lines) - _CONTENT_LINES} lines more", "dim")
    table = Table.grid(padding=(0, 0, 0, 2))
    table.add_row(shown)
    return table
