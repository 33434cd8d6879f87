"""The `acprt` command: one room for each subcommand, loaded when it is used.

Nothing below imports this room, and what it needs (click, rich, prompt_toolkit) comes with the extra `acprt[cli]`.
"""

import sys

__all__ = ["VERSION"]

VERSION: str = sys.modules["acprt"].__version__  # of the face, which rooms do not import
