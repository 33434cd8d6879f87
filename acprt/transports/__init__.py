"""Where bytes come from: this process's stdio, a child process, asyncio streams, memory."""
