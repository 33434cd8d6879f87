"""How the fake behaves: the real command's options that it heeds, and the misbehaviour that a test asks it for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

__all__ = ["RELEASE", "Options"]

RELEASE = "2.1.332"
"""The release of the real command that the fake follows."""


class Options(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What it was told on its command line, and in `FAKE_CLAUDE`, words such as `no_lifecycle linger=1.5`."""

    asks_host: bool = False
    partial_messages: bool = False
    replay: bool = False
    session_states: bool = False
    session_id: str = "5e551000-0000-4000-8000-000000000001"
    permission_mode: str = "default"
    resume: str | None = None
    usage_error: str | None = None
    """What the real command would say to these arguments, on stderr, before it exits 1."""

    no_lifecycle: bool = False
    """As an older command: prompts are not acknowledged, results name none."""
    no_level: bool = False
    """As an older command: there is no `background_tasks_changed`."""
    mute_initialize: bool = False
    die_in_initialize: bool = False
    ignore_term: bool = False
    """SIGTERM does nothing, and neither does EOF."""
    linger: float = 0.0
    """Seconds between EOF and the exit; `farewell` is written just before it."""
    farewell: str | None = None
    """Path of a file that is written at the very end."""

    @classmethod
    def parse(cls, argv: Sequence[str], environment: dict[str, str]) -> Options:
        """The options of a command line and of an environment."""
        options = cls(session_states=environment.get("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") == "1")
        given: dict[str, str | None] = {}
        words = iter(argv)
        for word in words:
            name, equals, value = word.partition("=")
            takes_word = name in ("--output-format", "--input-format", "--permission-prompt-tool")
            given[name] = value if equals else next(words, None) if takes_word else None
        if given.get("--output-format") != "stream-json" or given.get("--input-format") != "stream-json":
            options.usage_error = "this fake speaks stream-json only: it needs --input-format and --output-format"
        elif "--verbose" not in given:
            options.usage_error = "Error: --output-format=stream-json requires --verbose"
        options.asks_host = given.get("--permission-prompt-tool") == "stdio"
        options.partial_messages = "--include-partial-messages" in given
        options.replay = "--replay-user-messages" in given
        options.session_id = given.get("--session-id") or options.session_id
        mode = given.get("--permission-mode")
        options.permission_mode = options.permission_mode if mode in (None, "manual") else str(mode)
        options.resume = given.get("--resume")
        wishes: dict[str, object] = {}
        for word in environment.get("FAKE_CLAUDE", "").split():
            name, equals, value = word.partition("=")
            wishes[name] = value if equals else True
        try:
            return msgspec.convert(msgspec.structs.asdict(options) | wishes, cls, strict=False)
        except msgspec.ValidationError as error:
            options.usage_error = f"FAKE_CLAUDE: {error}; its words are the fields of {__name__}.Options"
            return options
