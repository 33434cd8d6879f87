"""Live connections, and the dump of them on a signal."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading

import pytest

import acprt
from acprt.testing import endpoint_pair
from tests.programs import python_code


def echo() -> acprt.Endpoint:
    endpoint = acprt.Endpoint("the-agent")

    @endpoint.method("wait")
    async def wait(params: object) -> None:
        await asyncio.Event().wait()

    return endpoint


def mine() -> list[str]:
    """Names of live connections of this test; others of the process may wait for garbage collection."""
    return [cx.name for cx in acprt.live_connections() if cx.name in ("the-agent", "the-client")]


class TestLiveConnections:
    def test_both_ends_are_there_while_open_and_gone_after(self, run):
        async def main() -> None:
            assert mine() == []
            async with endpoint_pair(acprt.Endpoint("the-client"), echo()):
                assert mine() == ["the-agent", "the-client"]
            assert mine() == []

        run(main())

    def test_they_are_not_kept_alive(self, run):
        async def main() -> None:
            async with acprt.Endpoint("the-client").connect(echo()):
                pass

        run(main())
        gc.collect()
        assert mine() == []


class TestDumpOnSignal:
    def test_it_tells_what_each_connection_waits_for(self, run):
        written: list[str] = []
        stop = acprt.dump_on_signal(signal.SIGUSR2, write=written.append)

        async def main() -> None:
            async with acprt.Endpoint("the-client").connect(echo()) as cx:
                sent = cx.send_request("wait", {})
                while not any(other.status().in_flight for other in acprt.live_connections()):
                    await asyncio.sleep(0)
                os.kill(os.getpid(), signal.SIGUSR2)
                while not written:
                    await asyncio.sleep(0)
                sent.detach()

        try:
            run(main())
        finally:
            stop()
        (text,) = written
        assert f"2 live connections in pid {os.getpid()}" in text
        assert "the-client: open" in text
        assert "pending  wait (id 1)" in text
        assert "serving  wait (id 1)" in text

    def test_stopping_gives_the_signal_back(self):
        before = signal.getsignal(signal.SIGUSR2)
        stop = acprt.dump_on_signal(signal.SIGUSR2)
        assert signal.getsignal(signal.SIGUSR2) is not before
        stop()
        stop()
        assert signal.getsignal(signal.SIGUSR2) is before

    def test_it_belongs_to_the_main_thread(self):
        errors: list[Exception] = []

        def other() -> None:
            try:
                acprt.dump_on_signal(signal.SIGUSR2)
            except ValueError as error:
                errors.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert len(errors) == 1

    def test_an_agent_whose_handler_blocks_the_loop_tells_where(self):
        """On stderr, by default; stdout stays the protocol's."""
        agent = python_code(
            "import sys, time, acprt\n"
            "agent = acprt.Endpoint('stuck')\n"
            "@agent.on_receive_request('block')\n"
            "async def block(params, responder, cx):\n"
            "    print('blocking', file=sys.stderr, flush=True)\n"
            "    time.sleep(30)\n"
            "acprt.dump_on_signal()\n"
            "acprt.run(agent)\n"
        )
        with subprocess.Popen(agent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stderr is not None
            try:
                child.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"block"}\n')
                child.stdin.flush()
                assert child.stderr.readline() == b"blocking\n"
                child.send_signal(signal.SIGUSR1)
                told = ""
                while "in block" not in told:  # where the main thread is comes last
                    line = child.stderr.readline()
                    assert line, told
                    told += line.decode()
            finally:
                child.kill()
            assert child.stdout.read() == b""
        assert "stuck: open" in told
        assert "running  " in told

    @pytest.mark.skipif(sys.platform == "win32", reason="signals")
    def test_two_loops_in_two_threads_are_both_told(self, run):
        written: list[str] = []
        opened, told, leave = threading.Event(), threading.Event(), threading.Event()

        def write(text: str) -> None:
            written.append(text)
            told.set()

        stop = acprt.dump_on_signal(signal.SIGUSR2, write=write)

        def other() -> None:
            async def main() -> None:
                async with acprt.Endpoint("the-client").connect(echo()):
                    opened.set()
                    await asyncio.to_thread(leave.wait)

            asyncio.run(main())

        thread = threading.Thread(target=other)
        thread.start()
        try:
            assert opened.wait(10)
            os.kill(os.getpid(), signal.SIGUSR2)
            assert told.wait(10)
        finally:
            leave.set()
            thread.join()
            stop()
        assert "the-client: open" in written[0]
