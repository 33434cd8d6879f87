"""What the command says while it waits: one line on stderr with the time that passed, and nothing where nobody looks.

It must never write to stdout, which is for the answer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["waiting"]


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show `what` with a spinner and the elapsed time while the block runs. Quiet when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # 50 ms that a script need not pay
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(what.replace("[", "\\["), total=None)
        yield
