"""The slow path for text that msgspec refuses although peers send it.

One leading byte-order mark is dropped, and escapes of lone surrogates become U+FFFD (JavaScript cuts strings in the
middle of a pair). Nothing else is mended: what is still unreadable is a parse error. Mended text has nothing left to
mend, so nobody has to ask twice.
"""

from __future__ import annotations

import re

__all__ = ["repair"]

_BOM = b"\xef\xbb\xbf"
# An escape of a surrogate, or of a pair of them. It begins with plain bytes, which is what makes the search fast: a
# long line may hold a million other escapes. `re` compiles it when first needed, not at each start.
_SURROGATES = rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})?|[c-fC-F][0-9a-fA-F]{2})"
_REPLACEMENT = rb"\ufffd"
_BACKSLASH = 0x5C


def repair(line: bytes) -> bytes | None:
    """`line` with what can be mended mended, or None when there was nothing to mend, or not enough."""
    mended = line[len(_BOM) :] if line.startswith(_BOM) else line
    if mended.startswith(_BOM):
        return None  # one is a habit of editors, more are garbage
    if rb"\u" in mended:
        mended = _replace_lone_surrogates(mended)
    return None if mended == line else mended


def _replace_lone_surrogates(text: bytes) -> bytes:
    def replacement(found: re.Match[bytes]) -> bytes:
        before = found.start()
        while before and text[before - 1] == _BACKSLASH:
            before -= 1
        is_plain_text = (found.start() - before) % 2 == 1  # its backslash belongs to the one before it
        if found[1]:  # two: a pair, unless the first is none
            return found[0][: -len(found[1])] + _REPLACEMENT if is_plain_text else found[0]
        return found[0] if is_plain_text else _REPLACEMENT

    return re.sub(_SURROGATES, replacement, text)
