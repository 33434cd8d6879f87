"""A scripted transport that keeps its writes apart and looks at the connection from inside each of them."""

from __future__ import annotations

from typing import Any

import acprt
from tests.runtime.scripted import ScriptedTransport


class WatchingTransport(ScriptedTransport):
    """Looks at the connection from inside `write`."""

    def __init__(self) -> None:
        super().__init__()
        self.chunks: list[bytes] = []
        self.pending_at_write: list[list[Any]] = []
        self.cx: acprt.Connection | None = None

    def write(self, data: bytes) -> None:
        super().write(data)
        self.chunks.append(data)
        if self.cx is not None:
            self.pending_at_write.append([pending.id for pending in self.cx.status().pending])
