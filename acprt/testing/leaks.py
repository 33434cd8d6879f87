"""What a test must not leave behind: descriptors, children, threads, tasks, and what Python complains about."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

from acprt.testing.proc import running_processes
from acprt.trace import sink_from_environment

__all__ = ["assert_no_leaks"]

# A file, a transport or a process that was not closed; a coroutine that was not awaited.
_LEAKS = (ResourceWarning, RuntimeWarning)


class _Held(NamedTuple):
    descriptors: frozenset[str]
    children: frozenset[str]
    threads: frozenset[threading.Thread]
    tasks: frozenset[asyncio.Task[Any]]


@contextmanager
def assert_no_leaks() -> Iterator[None]:
    """Fail with AssertionError when the block leaves open descriptors, running or unreaped child processes, threads
    that are no daemons, or (on a running loop) tasks; and when Python finds something that was never closed or awaited.

    Children are looked for where there is /proc, which is on Linux. Other warnings than those of leaks stay what they
    are.
    """
    gc.collect()
    _open_what_stays()
    before = _held()
    ignored: list[str] = []
    hook = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: ignored.append(_unraisable(unraisable))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
            gc.collect()
    finally:
        sys.unraisablehook = hook
    after = _held()
    found = [str(each.message) for each in caught if issubclass(each.category, _LEAKS)] + ignored
    for each in caught:
        if not issubclass(each.category, _LEAKS):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    found += [f"open descriptor {each}" for each in sorted(after.descriptors - before.descriptors)]
    found += [f"child process {each}" for each in sorted(after.children - before.children)]
    found += [f"thread {each.name}" for each in after.threads - before.threads]
    found += [f"task {each.get_name()}" for each in after.tasks - before.tasks]
    if found:
        raise AssertionError("left behind:\n" + "\n".join(f"  {each}" for each in found))


def _open_what_stays() -> None:
    """What is opened once for the whole process is no leak of the block that happens to need it first.

    That is the file of `ACPRT_TRACE`, and the pipe for signals of uvloop's first loop, where uvloop is there.
    """
    sink_from_environment()
    _uvloop_was_used()


@cache
def _uvloop_was_used() -> None:
    try:
        import uvloop
    except ImportError:
        return
    uvloop.new_event_loop().close()


def _held() -> _Held:
    try:
        tasks = frozenset(task for task in asyncio.all_tasks() if not task.done())
    except RuntimeError:  # no loop runs here
        tasks = frozenset()
    threads = frozenset(each for each in threading.enumerate() if not each.daemon)
    return _Held(_descriptors(), _children(), threads, tasks)


def _descriptors() -> frozenset[str]:
    found = set()
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # the one that listed the folder
            os.fstat(int(name))
            found.add(f"{name} ({_place(name)})")
    return frozenset(found)


def _place(descriptor: str) -> str:
    try:
        return os.readlink(f"/dev/fd/{descriptor}")
    except OSError:  # this system does not tell
        return "open"


def _children() -> frozenset[str]:
    return frozenset(process.label for process in running_processes() if process.parent == os.getpid())


def _unraisable(unraisable: Any) -> str:
    return f"{unraisable.err_msg or 'exception ignored in'} {unraisable.object!r}: {unraisable.exc_value!r}"
