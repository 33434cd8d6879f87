"""`python -m acprt.testing.fake_claude`: the fake as a command, on this process's stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from acprt.testing.fake_claude.command import FakeClaude
from acprt.testing.fake_claude.options import RELEASE, Options
from acprt.transports.stdio import stdio


async def _main(options: Options) -> int:
    command = FakeClaude(stdio(), options)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, command.terminate)
    loop.add_signal_handler(signal.SIGINT, command.exit, 0)
    return await command.run()


def main() -> int:
    """Run it. The exit code."""
    if "--version" in sys.argv[1:]:
        sys.stdout.write(f"{RELEASE} (Claude Code)\n")
        return 0
    options = Options.parse(sys.argv[1:], dict(os.environ))
    if options.usage_error is not None:
        sys.stderr.write(f"{options.usage_error}\n")
        return 1
    return asyncio.run(_main(options))


if __name__ == "__main__":
    sys.exit(main())
