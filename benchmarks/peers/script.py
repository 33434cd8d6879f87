"""The texts of every benchmark message and what an agent does for each, shared by all peers.

Every peer sends the same lines (165-byte prompts, 215-byte updates, 64-byte replies, newline included) and its agent
obeys the same commands, so that only the runtime between them differs. Must import the standard library alone: the
incumbent's environment has nothing else of ours.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = [
    "ANSWER",
    "CALL",
    "CALL_ID",
    "CALL_TEXT",
    "CALL_TITLE",
    "ECHO",
    "NAP",
    "OPTIONS",
    "PARK",
    "PARKED",
    "PROMPT_TEXT",
    "SESSION_ID",
    "UPDATES",
    "UPDATE_MASK",
    "UPDATE_TEXTS",
    "OnUpdate",
    "command_of",
    "echo_text",
    "nap_text",
    "park_text",
    "updates_text",
]

OnUpdate = Callable[[str], None]
"""What a client's typed update handler calls with the text of each agent message chunk."""

SESSION_ID = "sess_0123456789ab"

PROMPT_TEXT = "Add a test for the parser, ok?"
"""Makes the prompt request a line of 165 bytes with an id of five digits."""

UPDATE_MASK = 1023
"""Update i carries text `i & UPDATE_MASK`: order is checked by one string comparison that costs all peers the same."""

UPDATE_TEXTS = [f"{i:05d} the quick brown fox jumps over it...." for i in range(UPDATE_MASK + 1)]
"""Make the update notification a line of 215 bytes."""

ANSWER, ECHO, UPDATES, PARK, NAP, CALL = "answer", "echo", "updates", "park", "nap", "call"

CALL_TEXT = f"{CALL} 1 ".ljust(len(PROMPT_TEXT), ".")
"""The prompt text that makes the agent ask its client for a permission before it answers."""

CALL_ID, CALL_TITLE = "call_01234567", "Write to the parser"

OPTIONS = [("allow", "Allow", "allow_once"), ("reject", "Reject", "reject_once")]
"""Id, name and kind of what the client may choose from; it always takes the first."""

PARKED = "all prompts are parked"
"""The update an agent sends once it got as many prompts to hold as it was told to."""


def command_of(text: str) -> tuple[str, int]:
    """What the agent does with a prompt: its command and the number that belongs to it.

    `answer`: reply at once. `updates n`: send n numbered updates, then reply. `echo`: send the whole text back in one
    update, then reply. `park n`: hold it until it is cancelled; with every nth such prompt, say so in an update.
    `nap n`: reply after n milliseconds. `call n`: ask the client for permission, and reply when it has answered.
    """
    if text == PROMPT_TEXT:
        return ANSWER, 0
    if text.startswith(ECHO):
        return ECHO, 0
    if text.startswith((UPDATES, PARK, NAP, CALL)):
        command, number = text.split()[:2]
        return command, int(number)
    return ANSWER, 0


def echo_text(size: int) -> str:
    """A prompt text of exactly `size` bytes that the agent sends back."""
    return f"{ECHO} ".ljust(size, "x")


def updates_text(count: int) -> str:
    """The prompt text that asks for `count` updates before the reply."""
    return f"{UPDATES} {count}"


def park_text(count: int) -> str:
    """The prompt text of a request that is held, one of `count`; as long as an ordinary prompt."""
    return f"{PARK} {count} ".ljust(len(PROMPT_TEXT), ".")


def nap_text(milliseconds: int) -> str:
    """The prompt text that is answered after so long; as long as an ordinary prompt."""
    return f"{NAP} {milliseconds} ".ljust(len(PROMPT_TEXT), ".")
