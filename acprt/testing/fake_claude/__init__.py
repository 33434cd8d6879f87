"""A scripted stand-in for the Claude Code command: it speaks the stream and knows no model.

`python -m acprt.testing.fake_claude` is the command; its prompts name what to play, as listed in
`acprt.testing.fake_claude.scenarios`. `FakeClaude` is the same thing in this process, for tests that need no child.
"""

from acprt.testing.fake_claude.command import FakeClaude
from acprt.testing.fake_claude.options import Options

__all__ = ["FakeClaude", "Options"]
