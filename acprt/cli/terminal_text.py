"""Text of an agent, fit for a terminal: it must not be able to move the cursor, set titles or fill the clipboard."""

from __future__ import annotations

from typing import TextIO

__all__ = ["printable", "shown"]

# C0 but tab and line feed, DEL, C1: with them go all escape sequences, since each begins with one of these.
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])


def printable(text: str) -> str:
    """`text` without control characters; tabs and line feeds stay."""
    return text.translate(_CONTROLS)


def shown(text: str, stream: TextIO) -> str:
    """`text` as it may be written to `stream`: unchanged, unless that is a terminal."""
    return printable(text) if stream.isatty() else text
