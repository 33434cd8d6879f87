"""`python -m acprt`: the `acprt` command, and what it says where the extra that it needs is not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["main"]


def main() -> None:
    """Run the command; exits with a code of `acprt.cli.exit_codes`."""
    try:
        command = _command()
        command()
    except KeyboardInterrupt:
        sys.exit(130)  # as `ExitCode.INTERRUPTED`, which may not be loaded yet


def _command() -> Callable[[], None]:
    try:
        from acprt.cli.main import main as command
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] == "acprt":
            raise
        sys.exit(f"acprt: the command needs {error.name}, which comes with: pip install 'acprt[cli]'")
    return command


if __name__ == "__main__":
    main()
