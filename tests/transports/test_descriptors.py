"""Every kind of descriptor works on every loop, and nothing that is shared with others is changed."""

from __future__ import annotations

import errno
import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from acprt.transports.descriptors import make_private, open_closed_descriptors
from tests.transports.pipe_ends import (
    MIB,
    ROOT,
    Read,
    Written,
    flags,
    own_pipe,
    raw_terminal,
)

# --- every kind of descriptor ----------------------------------------------------------------------------------------


def _pipe_source(data: bytes, _path: Path) -> int:
    read_end, write_end = own_pipe()
    _feed(write_end, data)
    return read_end


def _shared_pipe_source(data: bytes, _path: Path) -> int:
    read_end, write_end = os.pipe()
    _feed(write_end, data)
    return read_end


def _file_source(data: bytes, path: Path) -> int:
    (path / "in").write_bytes(data)
    return os.open(path / "in", os.O_RDONLY)


def _socket_source(data: bytes, _path: Path) -> int:
    ours, theirs = socket.socketpair()
    _feed(theirs.detach(), data)
    return ours.detach()


def _terminal_source(data: bytes, _path: Path) -> int:
    master, slave = raw_terminal()
    # closing the master loses what was not read: so it waits until everything is
    threading.Thread(target=_feed_terminal, args=(master, slave, data), daemon=True).start()
    return make_private(slave, os.O_RDONLY)


def _feed_terminal(master: int, slave: int, data: bytes) -> None:
    os.write(master, data)
    poller = select.poll()
    poller.register(slave, select.POLLIN)
    while poller.poll(0):
        threading.Event().wait(0.005)
    os.close(slave)
    os.close(master)


def _feed(fd: int, data: bytes) -> None:
    def feed() -> None:
        os.set_blocking(fd, True)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.close(fd)

    threading.Thread(target=feed, daemon=True).start()


@pytest.mark.parametrize(
    ("source", "size"),
    [
        (_pipe_source, 3 * MIB),
        (_shared_pipe_source, 3 * MIB),
        (_file_source, 3 * MIB),
        (_file_source, 0),
        (_socket_source, 3 * MIB),
        (_terminal_source, 2000),
    ],
)
def test_every_kind_of_source_gives_all_bytes_and_the_end(run, tmp_path, source, size) -> None:
    """PY-76: what a loop cannot watch is read all the same; a terminal that was hung up (EIO) is at its end."""
    data = os.urandom(size)

    async def main() -> None:
        back = Read(source(data, tmp_path))
        await back.ended.wait()
        assert back.data == data
        assert back.ends == [None]

    run(main())


def test_null_device_is_at_its_end_at_once(run) -> None:
    """PY-76: a loop would abort or wait for ever on it."""

    async def main() -> None:
        back = Read(os.open(os.devnull, os.O_RDONLY))
        await back.ended.wait()
        assert back.ends == [None]

    run(main())


@pytest.mark.parametrize("kind", ["pipe", "shared pipe", "socket", "terminal"])
def test_every_kind_of_target_takes_all_bytes(run, kind) -> None:
    """The same promises for each: all bytes, in order, pause and resume, then the end where there is one."""
    data = os.urandom(100_000 if kind == "terminal" else 3 * MIB)

    async def main() -> None:
        if kind == "socket":
            ours, theirs = socket.socketpair()
            read_end, write_end = theirs.detach(), ours.detach()
        elif kind == "terminal":
            read_end, slave = raw_terminal()
            write_end = make_private(slave, os.O_WRONLY)
            os.close(slave)
        else:
            read_end, write_end = os.pipe() if kind == "shared pipe" else own_pipe()
        out = Written(write_end)
        for start in range(0, len(data), 70_000):
            out.writer.write(data[start : start + 70_000])
        os.set_blocking(read_end, False)
        back = Read(read_end)
        await out.writer.drain()
        out.writer.close()
        await back.ended.wait()
        assert back.data == data
        assert back.ends == [None]  # the far side of a terminal says EIO
        assert out.calls == ["pause", "resume"]

    run(main())


def test_new_file_is_written_directly(run, tmp_path) -> None:
    """A loop refuses files, or aborts; writing to one is done when `write` returns."""

    async def main() -> None:
        path = tmp_path / "out"
        out = Written(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        out.writer.write(b"x" * MIB)
        out.writer.write(b"end")
        assert out.writer.buffered == 0
        assert path.read_bytes() == b"x" * MIB + b"end"
        await out.writer.drain()
        out.writer.close()
        assert out.calls == []

    run(main())


def test_file_in_append_mode_is_appended_to(run, tmp_path) -> None:
    """The description says where writing goes: what was there stays there."""

    async def main() -> None:
        path = tmp_path / "log"
        path.write_bytes(b"before\n")
        inherited = os.open(path, os.O_WRONLY | os.O_APPEND)
        out = Written(make_private(inherited, os.O_WRONLY))
        out.writer.write(b"one\n")
        os.write(inherited, b"somebody else\n")
        out.writer.write(b"two\n")
        out.writer.close()
        os.close(inherited)
        assert path.read_bytes() == b"before\none\nsomebody else\ntwo\n"

    run(main())


def test_full_device_is_an_error_like_any_other(run) -> None:
    """A disk that is full ends the connection with its reason."""

    async def main() -> None:
        out = Written(os.open("/dev/full", os.O_WRONLY))
        out.writer.write(b"x")
        await out.failed.wait()
        assert [error.errno for error in out.errors] == [errno.ENOSPC]

    run(main())


# --- descriptors of others -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pipe", "terminal", "socket"])
def test_flags_of_an_inherited_description_stay_as_found(run, kind) -> None:
    """PY-76: O_NONBLOCK is the parent's too, before, during and after."""

    async def main() -> None:
        if kind == "pipe":
            read_end, write_end = os.pipe()
        elif kind == "terminal":
            read_end, write_end = raw_terminal()
        else:
            ours, theirs = socket.socketpair()
            read_end, write_end = ours.detach(), theirs.detach()
        before = flags(read_end), flags(write_end)
        if kind == "terminal":
            back = Read(make_private(write_end, os.O_RDONLY))  # the slave is both
            out = Written(make_private(write_end, os.O_WRONLY))
            os.write(read_end, b"hello")
        else:
            back = Read(make_private(read_end, os.O_RDONLY))
            out = Written(make_private(write_end, os.O_WRONLY))
            out.writer.write(b"hello")
        await back.some.wait()
        out.writer.write(b"x" * MIB)
        await out.paused.wait()
        assert (flags(read_end), flags(write_end)) == before
        out.writer.abort()
        back.reader.close()
        assert (flags(read_end), flags(write_end)) == before
        os.close(read_end)
        os.close(write_end)

    run(main())


def test_default_socket_timeout_does_not_touch_an_inherited_socket(run, monkeypatch) -> None:
    """`socket.setdefaulttimeout` makes each new socket object non-blocking, and with it the description."""
    socket.setdefaulttimeout(5.0)

    async def main() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(True)
        back = Read(make_private(ours.fileno(), os.O_RDONLY))
        assert os.get_blocking(ours.fileno())
        theirs.close()
        await back.ended.wait()
        ours.close()

    try:
        run(main())
        assert socket.getdefaulttimeout() == 5.0
    finally:
        socket.setdefaulttimeout(None)


def test_refused_second_opening_falls_back_to_a_thread(run, monkeypatch) -> None:
    """PY-76: without /proc, or with somebody else's terminal, it works too, and no flag is changed."""
    opened = os.open

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path).startswith("/proc/self/fd/"):
            raise PermissionError(errno.EACCES, "refused", path)
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)

    async def main() -> None:
        read_end, write_end = os.pipe()
        before = flags(read_end), flags(write_end)
        back = Read(make_private(read_end, os.O_RDONLY))
        out = Written(make_private(write_end, os.O_WRONLY))
        os.close(write_end)
        data = os.urandom(MIB)
        out.writer.write(data[:-3])
        out.writer.write(data[-3:])
        out.writer.close()
        await back.ended.wait()
        assert back.data == data
        assert (flags(read_end), before[1]) == before
        os.close(read_end)

    run(main())


def test_named_pipe_whose_last_writer_went_still_ends(run, tmp_path) -> None:
    """Opened again it would never report its end to a loop: `agent < fifo` must not hang."""

    async def main() -> None:
        os.mkfifo(tmp_path / "fifo")
        read_end = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        write_end = os.open(tmp_path / "fifo", os.O_WRONLY)
        os.set_blocking(read_end, True)
        os.write(write_end, b"last words")
        os.close(write_end)
        back = Read(make_private(read_end, os.O_RDONLY))
        await back.ended.wait()
        assert back.data == b"last words"
        os.close(read_end)

    run(main())


def test_pipe_without_a_reader_is_an_error_not_a_refusal(run) -> None:
    """A parent that has gone before the start is a broken pipe, like one that goes later."""

    async def main() -> None:
        read_end, write_end = os.pipe()
        os.close(read_end)
        out = Written(make_private(write_end, os.O_WRONLY))
        out.writer.write(b"x")
        await out.failed.wait()
        assert [type(error) for error in out.errors] == [BrokenPipeError]
        os.close(write_end)

    run(main())


def test_private_descriptor_is_not_inherited_and_not_a_standard_one() -> None:
    """A child must not keep the wire open, and a closed standard number must not be filled by accident."""
    program = (
        "import os\n"
        "from acprt.transports.descriptors import duplicate, make_private\n"
        "r, w = os.pipe()\n"
        "for fd in (0, 1): os.close(fd)\n"
        "made = [make_private(r, os.O_RDONLY), make_private(w, os.O_WRONLY), duplicate(w)]\n"
        "assert all(fd > 2 and not os.get_inheritable(fd) for fd in made), made\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("closed", [(0,), (1, 2), (0, 1, 2)])
def test_closed_standard_descriptors_are_opened_on_the_null_device(closed, tmp_path) -> None:
    """Otherwise the next thing that is opened, a loop's own descriptor, gets the number; open ones are left alone."""
    report = tmp_path / "report"
    program = (
        "import os, sys\n"
        "from acprt.transports.descriptors import open_closed_descriptors\n"
        f"closed, report = {closed!r}, os.open({str(report)!r}, os.O_WRONLY | os.O_CREAT)\n"
        "report = os.dup2(report, 9)\n"
        "before = [None if fd in closed else os.fstat(fd) for fd in range(3)]\n"
        "for fd in closed: os.close(fd)\n"
        "open_closed_descriptors()\n"
        "for fd in range(3):\n"
        "    now = os.fstat(fd)\n"
        "    wanted = os.stat(os.devnull) if before[fd] is None else before[fd]\n"
        "    assert os.path.samestat(now, wanted) and os.get_inheritable(fd), fd\n"
        "os.write(report, b'right')\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, capture_output=True, timeout=30)
    assert report.read_bytes() == b"right"
    open_closed_descriptors()
