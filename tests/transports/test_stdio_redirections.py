"""`stdio()` with real processes, redirected in every way: no abort, no hang, nothing lost, nothing changed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.conftest import LOOPS
from tests.transports.redirections import (
    APPENDED_TO,
    ENVIRONMENT,
    SECONDS,
    SILENT_STDIN,
    STDIN,
    STDOUT,
    Outcome,
    errors_of,
    flags,
    open_terminal,
    run_redirected,
    spawn,
)
from tests.transports.stdio_programs import ECHO, program, run_piped

DATA = b'{"id": 1}\n{"id": 2}\n{"id": 3}\n'
NOISE = [
    "noise: before",
    "noise: print",
    "noise: descriptor",
    "noise: logging",
    "noise: kept in a buffer",
    "noise: kept by the C library",
    "noise: child",
]

# Whether `open_closed_descriptors` was called before the loop was made. uvloop cannot live without it: it aborts the
# interpreter when it closes a descriptor of its own with a standard number, whatever else the program does.
WITH_CLOSED_DESCRIPTORS = [*((loop, True) for loop in LOOPS), ("asyncio", False)]


# --- the matrix ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stdout", STDOUT)
@pytest.mark.parametrize("stdin", STDIN)
def test_redirection(loop_name, stdin, stdout, tmp_path) -> None:
    """PY-76, PY-77: no abort, no hang, every line answered, a clean wire, exit 0, flags as found."""
    outcome = run_redirected([*ECHO, loop_name], stdin, stdout, DATA, tmp_path)
    check_echo(outcome, stdin, stdout)


def check_echo(outcome: Outcome, stdin: str, stdout: str) -> None:
    assert outcome.exit_status == 0, outcome
    assert outcome.flags_after == outcome.flags_before, outcome
    if outcome.output is not None:
        echoed = b"" if stdin in SILENT_STDIN else DATA
        assert outcome.output == (APPENDED_TO if stdout == "append-file" else b"") + echoed, outcome
    for noise in NOISE:
        assert noise in outcome.errors
    assert "Traceback" not in outcome.errors


@pytest.mark.parametrize("kind", ["pipe", "tty", "socket"])
def test_flags_are_as_found_while_it_runs_and_after_it_was_killed(loop_name, kind, tmp_path) -> None:
    """Nothing can be put back by a process that was killed, so nothing may be changed before."""
    with Given(kind, tmp_path) as given:
        before = given.flags()
        child = spawn([*ECHO, loop_name], given.stdin, given.stdout, tmp_path)
        try:
            os.write(given.to_child, b"hello\n")
            assert given.read_line() == b"hello\n"
            assert given.flags() == before
        finally:
            child.kill()
        assert child.wait(SECONDS) == -signal.SIGKILL
        assert given.flags() == before


class Given:
    """Both standard descriptors of one kind; for a terminal they are the same one, as in a shell."""

    def __init__(self, kind: str, _directory: Path) -> None:
        if kind == "pipe":
            self.stdin, self.to_child = os.pipe()
            self.from_child, self.stdout = os.pipe()
        elif kind == "tty":
            self.to_child, self.stdin = open_terminal()
            self.from_child, self.stdout = self.to_child, self.stdin
        else:
            ours, theirs = (end.detach() for end in socket.socketpair())
            self.to_child, self.stdin = ours, theirs
            self.from_child, self.stdout = ours, theirs

    def __enter__(self) -> Given:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in {self.stdin, self.stdout, self.to_child, self.from_child}:
            os.close(fd)

    def flags(self) -> list[int]:
        return [flags(fd) for fd in (self.stdin, self.stdout)]

    def read_line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            chunk = os.read(self.from_child, 100)
            assert chunk, "the child has closed its stdout"
            line += chunk
        return line


def test_one_socket_for_both_directions_can_be_half_closed(loop_name, tmp_path) -> None:
    """Closing one of two descriptors of the same socket says nothing: the peer must see the end of the output."""
    argv = program(
        loop_name,
        """
async def main():
    sink, transport = Sink(), stdio()
    transport.open(sink, Limits())
    transport.write(b"last\\n")
    transport.close_write()
    transport.close_write()
    await sink.ended.wait()
    assert sink.lines == [b"still heard"], sink.lines
    await transport.aclose()
go(main)
""",
    )
    with Given("socket", tmp_path) as given:
        child = spawn(argv, given.stdin, given.stdout, tmp_path)
        ours = socket.socket(fileno=os.dup(given.to_child))
        ours.settimeout(SECONDS)
        with ours:
            assert ours.recv(100) == b"last\n"
            assert ours.recv(100) == b""
            ours.sendall(b"still heard\n")
            ours.shutdown(socket.SHUT_WR)
            assert child.wait(SECONDS) == 0, errors_of(tmp_path)


@pytest.mark.parametrize(("loop_name", "prepared"), WITH_CLOSED_DESCRIPTORS)
def test_all_standard_descriptors_closed(loop_name, prepared, tmp_path) -> None:
    """A daemon may have none: the end comes at once, output is swallowed, the loop's own descriptors stay whole."""
    report = tmp_path / "report"
    argv = program(
        loop_name,
        f"""
async def main():
    sink, transport = Sink(), stdio()
    transport.open(sink, Limits())
    transport.write(b"swallowed\\n")
    print("this too")
    if {prepared}: os.write(1, b"and this")  # otherwise this would be a descriptor of the loop
    await asyncio.wait_for(sink.ended.wait(), 10)
    await transport.drain()
    await transport.aclose()
    await asyncio.wait_for(asyncio.to_thread(len, ()), 10)  # the loop can still be woken
    assert sink.error is None and sink.lines == []
    with open({str(report)!r}, "w") as file: file.write("right")
if {prepared}:
    open_closed_descriptors()
go(main)
""",
    )
    subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *argv],
        timeout=SECONDS,
        env=ENVIRONMENT,
        check=True,
    )
    assert report.read_text() == "right"


def test_closed_stdout_swallows(loop_name, tmp_path) -> None:
    """`agent >&-` has nobody to talk to; that is no reason to fail, or to write into some other descriptor."""
    argv = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *ECHO, loop_name]
    done = run_piped(argv, DATA)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(("loop_name", "prepared"), WITH_CLOSED_DESCRIPTORS)
def test_closed_stderr_is_no_way_to_the_wire(loop_name, prepared) -> None:
    """With nowhere to print to, prints vanish; they go neither to the peer nor into the loop."""
    argv = program(
        loop_name,
        f"""
async def main():
    sink, transport = Sink(), stdio()
    transport.open(sink, Limits())
    print("lost")
    os.write(1, b"lost")
    await sink.ended.wait()
    transport.write(b"%d\\n" % len(sink.lines))
    await transport.drain()
    await transport.aclose()
if {prepared}:
    open_closed_descriptors()
go(main)
""",
    )
    done = run_piped(["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *argv], b"a\nb\n")
    assert (done.returncode, done.stdout) == (0, b"2\n")


def test_standard_descriptors_closed_by_the_program_itself(loop_name, tmp_path) -> None:
    """What is closed at `open` is the null device from then on, and what the program has put there is not the wire."""
    argv = program(
        loop_name,
        f"""
async def main():
    os.close(0)
    os.close(1)
    sink, transport = Sink(), stdio()
    transport.open(sink, Limits())
    await sink.ended.wait()
    transport.write(b"swallowed")
    await transport.aclose()
    null = os.stat(os.devnull)
    assert all(os.path.samestat(os.fstat(fd), null) for fd in (0, 1))
    os.close(1)
    assert os.open({str(tmp_path / "own")!r}, os.O_WRONLY | os.O_CREAT) == 1
    transport = stdio()
    transport.open(sink, Limits())
    transport.write(b"swallowed")
    os.write(1, b"its own business")
    await transport.aclose()
    say("right")
go(main)
""",
    )
    done = run_piped(argv, b"a\nb\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"right\n")
    assert (tmp_path / "own").read_bytes() == b"its own business"
