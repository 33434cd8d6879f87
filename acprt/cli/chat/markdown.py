"""Where a Markdown text that still grows can be cut: what stands before the cut will not look different any more.

Pure: text in, two texts out.
"""

from __future__ import annotations

import re

__all__ = ["finished_part"]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def finished_part(text: str) -> tuple[str, str]:
    """`text` cut behind its last whole block: at a blank line that stands in no fenced code. Either part may be empty.

    A list may be cut between two of its items; numbers go on, since each item brings its own.
    """
    cut = place = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        place += len(line)
        if not line.endswith("\n"):
            break  # it may grow
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
                cut = place
        elif found:
            fence = found[1]
        elif not line.strip():
            cut = place
    return text[:cut], text[cut:]
