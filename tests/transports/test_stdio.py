"""`stdio()` with real processes: a wire that nobody else can write to, honest ends, and everything given back."""

from __future__ import annotations

import asyncio
import os
import subprocess
from contextlib import suppress

from tests.transports.redirections import (
    ENVIRONMENT,
    SECONDS,
)
from tests.transports.stdio_programs import ECHO, program, run_piped

# --- the wire stays clean --------------------------------------------------------------------------------------------


def test_a_program_started_while_serving_gets_no_protocol_byte(loop_name) -> None:
    """A child with the default stdin sees its end at once, with a request waiting in the pipe."""
    argv = program(
        loop_name,
        """
import subprocess
async def main():
    sink, transport = Sink(), stdio()
    transport.open(sink, Limits())
    await sink.some.wait()
    done = subprocess.run(["cat"], stdout=subprocess.PIPE)
    assert done.stdout == b"", done.stdout
    transport.write(b"go on\\n")
    await sink.ended.wait()
    for line in sink.lines: transport.write(line + b"\\n")
    await transport.drain()
    await transport.aclose()
go(main)
""",
    )
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"one\n" * 3)
        child.stdin.flush()
        child.stdin.write(b"two\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"go on\n"
        output, _ = child.communicate(b"three", timeout=SECONDS)
    assert output == b"one\none\none\ntwo\nthree\n"
    assert child.returncode == 0


def test_a_print_is_seen_at_once(loop_name) -> None:
    """PY-77: what is printed while serving is for a person who watches; it must not sit in a buffer until the end."""
    argv = program(
        loop_name,
        """
async def main():
    print("before")
    sink, transport = Sink(), stdio()
    transport.open(sink, Limits())
    print("on my way")
    await sink.ended.wait()
    await transport.aclose()
go(main)
""",
    )
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as child:
        assert child.stderr is not None
        assert child.stderr.readline() == b"before\n"
        assert child.stderr.readline() == b"on my way\n"
        output, _ = child.communicate(timeout=SECONDS)
    assert (child.returncode, output) == (0, b"")


def test_standard_descriptors_are_given_back(loop_name) -> None:
    """After `aclose` the program's own prints and reads work as before, and nothing is left open."""
    argv = program(
        loop_name,
        """
def state():
    files = [(os.fstat(fd)[:3], os.get_inheritable(fd)) for fd in range(3)]
    return files, sys.stdin, sys.stdout, sys.stderr

async def main():
    before = state()
    opened = descriptors()
    for _ in range(2):
        sink, transport = Sink(), stdio()
        transport.open(sink, Limits())
        assert state() != before
        transport.write(b"served\\n")
        await transport.drain()
        await transport.aclose()
        assert state() == before
    assert descriptors() == opened
    print(sys.stdin.readline(), end="", flush=True)
go(main)
""",
    )
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"served\n"
        assert child.stdout.readline() == b"served\n"
        output, _ = child.communicate(b"mine again\n", timeout=SECONDS)
    assert output == b"mine again\n"
    assert child.returncode == 0


def test_stdout_replaced_by_the_program_is_left_alone(loop_name) -> None:
    """`contextlib.redirect_stdout` around or inside the serving keeps its meaning."""
    argv = program(
        loop_name,
        """
import contextlib, io
async def main():
    sink, transport = Sink(), stdio()
    with contextlib.redirect_stdout(io.StringIO()) as around:
        transport.open(sink, Limits())
        print("caught")
        await transport.aclose()
        assert sys.stdout is around
    assert around.getvalue() == "caught\\n"
    transport = stdio()
    transport.open(sink, Limits())
    sys.stdout = inside = io.StringIO()
    await transport.aclose()
    assert sys.stdout is inside
go(main)
""",
    )
    done = run_piped(argv)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_stdio_cannot_be_taken_twice(loop_name) -> None:
    """Two connections on one wire would tear each other's lines; the second is told so, the first goes on."""
    argv = program(
        loop_name,
        """
async def main():
    sink, transport = Sink(), stdio()
    transport.open(sink, Limits())
    second = stdio()
    try:
        second.open(sink, Limits())
    except RuntimeError as error:
        say(str(error))
    await second.aclose()
    await sink.ended.wait()
    transport.write(b"%d\\n" % len(sink.lines))
    await transport.drain()
    await transport.aclose()
    third = stdio()
    third.open(sink, Limits())
    await transport.aclose()
    print("not on the wire")
    try:
        stdio().open(sink, Limits())
    except RuntimeError:
        say("still taken")
    await third.aclose()
go(main)
""",
    )
    done = run_piped(argv, b"a\nb\n")
    assert (done.returncode, done.stdout) == (0, b"2\n")
    assert b"another connection" in done.stderr
    assert b"still taken" in done.stderr


def test_open_that_fails_leaves_everything_as_it_was(loop_name) -> None:
    """The base contract: raises at once and leaves nothing behind; here because no descriptor is left."""
    argv = program(
        loop_name,
        """
import resource
async def main():
    sink, before = Sink(), [os.fstat(fd)[:3] for fd in range(3)]
    opened = descriptors()
    highest = max(opened)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    failures = 0
    for spare in range(12):
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + spare, hard))
        transport = stdio()
        try:
            transport.open(sink, Limits())
        except OSError:
            failures += 1
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await transport.aclose()
        assert [os.fstat(fd)[:3] for fd in range(3)] == before
        assert descriptors() == opened, (spare, descriptors(), opened)
    assert 2 < failures < 12, failures
go(main)
""",
    )
    done = run_piped(argv)
    assert (done.returncode, done.stderr) == (0, b"")


# --- lines and ends --------------------------------------------------------------------------------------------------


def test_unterminated_last_line_and_an_overlong_one(loop_name) -> None:
    """FR-03: the tail at the end is a line; a line past `Limits.line_bytes` costs only itself."""
    done = run_piped([*ECHO, loop_name], b"first\r\n" + b"x" * 3000 + b"\n\nlast")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"first\ntoo long: 3000\n\nlast\n"


def test_much_more_than_a_pipe_holds_both_ways(loop_name) -> None:
    """Both sides full at once: writing pauses reading, nothing is lost or reordered, nobody waits for ever."""
    data = b"".join(b"%d %s\n" % (number, b"x" * 500) for number in range(10_000))
    done = run_piped([*ECHO, loop_name], data)
    assert done.returncode == 0, done.stderr
    assert done.stdout == data


def test_paused_reading_pushes_back(loop_name) -> None:
    """A stalled handler stops the writer of the pipe instead of filling this process's memory."""
    argv = program(
        loop_name,
        """
async def main():
    sink, transport = Sink(), stdio()
    transport.open(sink, Limits())
    transport.pause_reading()
    await asyncio.sleep(0)
    transport.write(b"paused\\n")
    os.read(int(sys.argv[1]), 1)
    for _ in range(10): await asyncio.sleep(0)
    assert sink.lines == []
    transport.resume_reading()
    await sink.ended.wait()
    assert sum(map(len, sink.lines)) == 300_000
    await transport.aclose()
go(main)
""",
    )
    gate_read, gate_write = os.pipe()
    with subprocess.Popen(
        [*argv, str(gate_read)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[gate_read],
        env=ENVIRONMENT,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"paused\n"
        os.set_blocking(child.stdin.fileno(), False)
        written, line = 0, b"x" * 1000 + b"\n"
        data = line * 300
        try:
            while True:
                written += os.write(child.stdin.fileno(), data[written:])
        except BlockingIOError:
            pass
        assert written < len(data)
        os.write(gate_write, b"!")
        os.set_blocking(child.stdin.fileno(), True)
        child.communicate(data[written:], timeout=SECONDS)
    os.close(gate_read)
    os.close(gate_write)
    assert child.returncode == 0


def test_vanished_reader_is_a_lost_connection(loop_name) -> None:
    """TF-02: a parent that stops listening is an error of the connection, told once and not from inside `write`."""
    argv = program(
        loop_name,
        """
async def main():
    sink, transport = Sink(), stdio()
    transport.open(sink, Limits())
    await sink.some.wait()
    sink.lines.clear()
    transport.write(b"hello\\n")
    assert sink.error is None
    transport.write(b"hello\\n")
    await asyncio.wait_for(sink.ended.wait(), 10)
    assert isinstance(sink.error, BrokenPipeError), sink.error
    try:
        await transport.drain()
    except BrokenPipeError:
        say("drain too")
    os.read(int(sys.argv[1]), 1)
    for _ in range(10): await asyncio.sleep(0)
    await transport.aclose()
    assert sink.lines == []
go(main)
""",
    )
    gate_read, gate_write = os.pipe()
    with subprocess.Popen(
        [*argv, str(gate_read)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[gate_read],
        env=ENVIRONMENT,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        child.stdin.write(b"anybody?\n")
        child.stdin.flush()
        assert child.stderr.readline() == b"drain too\n"
        with suppress(BrokenPipeError):
            os.write(child.stdin.fileno(), b"not delivered any more\n")
        os.write(gate_write, b"!")
        assert child.wait(SECONDS) == 0, child.stderr.read()
    os.close(gate_read)
    os.close(gate_write)


def test_close_write_is_seen_by_the_parent_while_reading_goes_on(loop_name) -> None:
    """TF-04: half-close after everything accepted was written; fd 1 stays harmless for good."""
    argv = program(
        loop_name,
        """
async def main():
    sink, transport = Sink(), stdio()
    transport.open(sink, Limits())
    transport.write(b"x" * 1_000_000 + b"\\n")
    transport.close_write()
    transport.write(b"too late")
    await sink.ended.wait()
    say(sink.lines[0].decode())
    await transport.aclose()
    print("to stderr")
go(main)
""",
    )
    with subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.read() == b"x" * 1_000_000 + b"\n"  # to its end, with the child still running
        assert child.poll() is None
        _, errors = child.communicate(b"still heard", timeout=SECONDS)
    assert errors == b"still heard\nto stderr\n"
    assert child.returncode == 0


def test_exit_does_not_wait_for_a_parent_that_keeps_silent(loop_name, tmp_path) -> None:
    """ST-04: with stdin read by a thread (its second opening refused) the program ends when it is done."""
    argv = program(
        loop_name,
        """
opened = os.open
def refuse(path, *arguments, **options):
    if str(path).startswith("/proc/self/fd/"):
        raise PermissionError(13, "refused", path)
    return opened(path, *arguments, **options)
os.open = refuse
async def main():
    sink, transport = Sink(), stdio()
    transport.open(sink, Limits())
    transport.write(b"done\\n")
    await transport.drain()
    await transport.aclose()
go(main)
""",
    )
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT) as child:
        assert child.wait(SECONDS) == 0
        assert child.stdout is not None
        assert child.stdout.read() == b"done\n"


def test_stdio_serves_and_knows_no_child() -> None:
    """DEC-23: a serving side answers what it cannot read; there is no process to tell about."""
    from acprt.transports.stdio import stdio

    transport = stdio()
    assert transport.peer_is_child is False
    assert transport.facts() == {}
    assert transport.child_status() is None
    asyncio.run(transport.aclose())  # never opened: nothing to do
