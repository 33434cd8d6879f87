"""What `acprt chat` does by itself: lines that begin with a colon. Lines with a slash are for the agent's commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from acprt.acp import v1
from acprt.acp.sessions import Session
from acprt.cli.chat.screen import Screen
from acprt.errors import RpcError

__all__ = ["AgentState", "LocalCommands"]

_BOOLEANS = ("false", "true")


@dataclass
class AgentState:
    """What the agent told between turns and during them, for the line editor."""

    name: str
    commands: dict[str, str] = field(default_factory=dict)
    """What the agent's slash commands do, by name."""
    used: int | None = None
    size: int | None = None
    """Tokens in the context, and how many it holds."""
    title: str | None = None

    def take(self, update: object) -> None:
        """Remember what `update` tells."""
        match update:
            case v1.AvailableCommandsUpdate(available_commands=commands):
                self.commands = {f"/{command.name}": command.description for command in commands}
            case v1.UsageUpdate(used=used, size=size):
                self.used, self.size = used, size
            case v1.SessionInfoUpdate(title=str(title)):
                self.title = title


class LocalCommands:
    """The commands, and what each does to a session."""

    def __init__(self, session: Session, screen: Screen, state: AgentState) -> None:
        self._session = session
        self._screen = screen
        self._state = state
        self._commands: dict[str, tuple[str, Callable[[str], Awaitable[None]]]] = {
            ":help": ("list the commands and keys", self._help),
            ":mode": ("show the session modes, or set one by its id", self._mode),
            ":option": ("show the options, or set one: `:option ID VALUE`", self._option),
            ":status": ("show the connection and the session", self._status),
            ":quit": ("leave", self._quit),
        }
        self.is_over = False
        """Whether the user wants to leave."""

    def words(self) -> dict[str, str]:
        """What a line may begin with now: these commands and the agent's."""
        return {name: meaning for name, (meaning, _) in self._commands.items()} | self._state.commands

    async def run(self, line: str) -> bool:
        """Do what `line` asks for; False when it is no command of ours but a prompt."""
        if not line.startswith(":"):
            return False
        name, _, rest = line.partition(" ")
        known = self._commands.get(name)
        if known is None:
            self._screen.say(f"there is no {name}; :help lists what there is")
            return True
        try:
            await known[1](rest.strip())
        except RpcError as error:
            self._screen.say(f"the agent refused: {error}", "red")
        return True

    async def _help(self, _rest: str) -> None:
        for name, meaning in self.words().items():
            self._screen.say(f"{name:<12} {meaning}")
        self._screen.say("Alt-Enter begins a new line. Ctrl-C cancels a turn, and leaves at an empty line.")

    async def _mode(self, rest: str) -> None:
        modes = self._session.modes
        if modes is None:
            self._screen.say("this agent has no modes")
            return
        if rest:
            await self._session.set_mode(rest)
            modes = self._session.modes or modes
        for mode in modes.available_modes:
            mark = "*" if mode.id == modes.current_mode_id else " "
            self._screen.say(f"{mark} {mode.id:<16} {mode.name}  {mode.description or ''}")

    async def _option(self, rest: str) -> None:
        option_id, _, value = rest.partition(" ")
        if value:
            await self._set_option(option_id, value)
        if not self._session.config_options:
            self._screen.say("this agent has no options")
        for option in self._session.config_options or ():
            is_boolean = isinstance(option, v1.SessionConfigBoolean)
            current = _BOOLEANS[option.current_value is True] if is_boolean else option.current_value
            self._screen.say(f"{option.id:<16} {current}  ({option.name}{_choices(option)})")

    async def _set_option(self, option_id: str, value: str) -> None:
        is_boolean = any(
            isinstance(option, v1.SessionConfigBoolean) and option.id == option_id
            for option in self._session.config_options or ()
        )
        if is_boolean and value not in _BOOLEANS:
            self._screen.say(f"{option_id} is true or false, not {value}", "red")
        else:
            await self._session.set_config_option(option_id, value == "true" if is_boolean else value)

    async def _status(self, _rest: str) -> None:
        self._screen.say(f"session {self._session.id}" + (f": {self._state.title}" if self._state.title else ""))
        self._screen.say(str(self._session.cx.status()))

    async def _quit(self, _rest: str) -> None:
        self.is_over = True


def _choices(option: v1.SessionConfigOption) -> str:
    if isinstance(option, v1.SessionConfigBoolean):
        return ": true or false"
    values: list[str] = []
    for entry in option.options:
        match entry:
            case v1.SessionConfigSelectOption(value=value):
                values.append(value)
            case v1.SessionConfigSelectGroup(options=grouped):
                values += [each.value for each in grouped]
    return f": {', '.join(values)}" if values else ""
