"""JSON on stdout: a line for programs, indented for a person who looks at it."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

__all__ = ["print_json", "print_pretty"]


def print_json(value: Any) -> None:
    """One line, at once: the reader may be waiting for it."""
    click.echo(msgspec.json.encode(value))
    sys.stdout.flush()


def print_pretty(value: Any) -> None:
    """Indented and coloured in a terminal, one line elsewhere."""
    if not sys.stdout.isatty():
        print_json(value)
        return
    from rich.console import Console

    Console().print_json(msgspec.json.encode(value).decode())
