"""The testing kit, tried on endpoints that behave and on some that do not."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import warnings

import pytest

import acprt
from acprt import acp, testing
from acprt.acp import v1
from acprt.testing import ScriptedPeer, Transcript, assert_no_leaks, run_on_fake_clock, spawned_agent, testy


def echo() -> acprt.Endpoint:
    endpoint = acprt.Endpoint("echo")

    @endpoint.method("echo")
    async def echo(params: dict) -> dict:
        return params

    @endpoint.method("late")
    async def late(params: dict, cx: acprt.Connection) -> str:
        await asyncio.sleep(60)
        cx.send_notification("done")
        return "at last"

    return endpoint


class TestScriptedPeer:
    def test_a_scripted_client_asks_and_expects(self, run):
        async def main() -> None:
            async with ScriptedPeer.as_client_of(echo()) as peer:
                id = peer.request("echo", {"a": 1, "b": 2})
                assert await peer.expect_result(id, {"a": 1}) == {"a": 1, "b": 2}
                await peer.expect_error(peer.request("no such method"), -32601)
                await peer.expect_nothing()

        run(main())

    def test_a_scripted_agent_answers_a_client(self, run):
        async def main() -> None:
            async with ScriptedPeer.as_agent_of(acprt.Endpoint("client")) as peer:
                sent = peer.cx.send_request("greet", {"name": "Ada", "loud": True})
                peer.respond(await peer.expect("greet", {"name": "Ada"}), "hello")
                assert await sent.block_task() == "hello"
                refused = peer.cx.send_request("greet")
                peer.respond_error(await peer.expect("greet"), 7, "no", {"why": 1})
                with pytest.raises(acprt.RpcError, match="no") as caught:
                    await refused.block_task()
                assert (caught.value.code, caught.value.data) == (7, {"why": 1})

        run(main())

    def test_a_served_agent_has_no_connection_to_hand_out(self, run):
        async def body():
            async with ScriptedPeer.as_client_of(acprt.Endpoint("agent")) as peer:
                with pytest.raises(RuntimeError, match="only as_agent_of has cx"):
                    _ = peer.cx

        run(body())

    def test_a_failed_expectation_tells_what_came_and_what_was_before(self, run):
        async def main() -> None:
            async with ScriptedPeer.as_client_of(echo()) as peer:
                peer.request("echo", {"a": 1})
                with pytest.raises(AssertionError) as caught:
                    await peer.expect("something/else")
                text = str(caught.value)
                assert "something/else was expected" in text
                assert '→ {"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1}}' in text
                assert '← {"jsonrpc":"2.0","id":1,"result":{"a":1}}' in text

        run(main())

    @pytest.mark.parametrize(
        ("sent", "expected", "fits"),
        [
            ({"a": 1, "b": 2}, {"a": 1}, True),
            ({"a": {"b": [1, {"c": 2, "d": 3}]}}, {"a": {"b": [1, {"c": 2}]}}, True),
            ({"a": 1}, {"a": ...}, True),
            ({"a": 1}, {"a": True}, False),
            ({"a": 1}, {"b": ...}, False),
            ({"a": [1, 2]}, {"a": [1]}, False),
            ({"a": "1"}, {"a": 1}, False),
        ],
    )
    def test_named_members_must_fit_and_others_may_be_there(self, run, sent, expected, fits):
        async def main() -> None:
            async with ScriptedPeer.as_client_of(echo()) as peer:
                id = peer.request("echo", sent)
                if fits:
                    await peer.expect_result(id, expected)
                else:
                    with pytest.raises(AssertionError):
                        await peer.expect_result(id, expected)

        run(main())

    def test_it_may_say_what_is_wrong_on_purpose(self, run):
        async def main() -> None:
            async with ScriptedPeer.as_client_of(echo()) as peer:
                peer.send('{"jsonrpc":"2.0",')
                await peer.expect_error(None, -32700)
                peer.send_raw(b'{"jsonrpc":"2.0","id":1,"method":"echo",')
                await asyncio.sleep(0)
                peer.send_raw(b'"params":{}}\n')
                await peer.expect_result(1, {})

        run(main())

    def test_closing_is_seen_by_both(self, run):
        async def main() -> None:
            async with ScriptedPeer.as_agent_of(acprt.Endpoint("client")) as peer:
                waiting = peer.cx.send_request("never answered")
                await peer.expect("never answered")
                peer.close()
                with pytest.raises(acprt.RpcError) as caught:
                    await waiting.block_task()
                assert acprt.is_incoming_transport_closed(caught.value)
                await peer.cx.aclose()
                await peer.expect_eof()
                with pytest.raises(AssertionError, match="has closed"):
                    await peer.receive()

        run(main())


class TestFakeClock:
    def test_a_delay_takes_no_time_and_all_that_is_due_happens(self):
        async def main() -> None:
            async with ScriptedPeer.as_client_of(echo()) as peer:
                id = peer.request("late", {})
                await peer.expect_nothing()
                await peer.delay(59.9)
                await peer.expect_nothing()
                await peer.delay(0.2)
                await peer.expect("done")
                await peer.expect_result(id, "at last")

        run_on_fake_clock(asyncio.wait_for(main(), 1000))

    def test_an_agent_with_work_in_hand_is_given_its_time_to_end(self):
        """Its requests are answered after five seconds of drain, which are none."""

        async def main() -> None:
            async with ScriptedPeer.as_client_of(echo()) as peer:
                id = peer.request("late", {})
                peer.close()
                await peer.delay(6)
                await peer.expect_error(id, -32603)
            async with ScriptedPeer.as_client_of(echo()) as peer:
                peer.request("late", {})

        run_on_fake_clock(main())

    def test_what_does_not_come_by_itself_fails_at_once(self):
        async def main() -> None:
            async with ScriptedPeer.as_client_of(echo()) as peer:
                peer.request("late", {})
                with pytest.raises(AssertionError, match="nothing comes without a delay"):
                    await peer.expect("done")
                await peer.delay(60)
                await peer.expect("done")
                await peer.receive()

        run_on_fake_clock(main())

    def test_a_timeout_of_the_runtime_is_on_the_same_clock(self):
        async def main() -> None:
            async with ScriptedPeer.as_agent_of(acprt.Endpoint("client")) as peer:
                waiting = asyncio.ensure_future(peer.cx.send_request("slow").block_task(timeout=30))
                await peer.expect("slow")
                await peer.delay(29)
                assert not waiting.done()
                await peer.delay(2)
                assert isinstance(waiting.exception(), TimeoutError)
                await peer.expect("$/cancel_request", {"requestId": 1})

        run_on_fake_clock(main())

    def test_timers_run_in_order_at_their_own_time(self):
        async def main() -> list[tuple[str, float]]:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, testing.FakeClockLoop)
            seen: list[tuple[str, float]] = []

            async def wait(name: str, seconds: float) -> None:
                await asyncio.sleep(seconds)
                seen.append((name, loop.time()))
                if name == "a":
                    await asyncio.sleep(1)
                    seen.append(("a again", loop.time()))

            async with asyncio.TaskGroup() as tasks:
                for name, seconds in [("c", 3.0), ("a", 1.0), ("b", 2.5)]:
                    tasks.create_task(wait(name, seconds))
                await loop.advance(2)
                assert seen == [("a", 1.0), ("a again", 2.0)]
                await loop.advance(10)
            return seen

        assert run_on_fake_clock(main()) == [("a", 1.0), ("a again", 2.0), ("b", 2.5), ("c", 3.0)]

    def test_work_that_never_waits_is_named(self):
        async def main() -> None:
            async def spin() -> None:
                while True:
                    await asyncio.sleep(0)

            spinning = asyncio.ensure_future(spin())
            loop = asyncio.get_running_loop()
            assert isinstance(loop, testing.FakeClockLoop)
            with pytest.raises(RuntimeError, match="did not come to rest"):
                await loop.settled()
            spinning.cancel()

        run_on_fake_clock(main())

    def test_a_delay_on_a_real_clock_says_what_is_missing(self, run):
        async def main() -> None:
            async with ScriptedPeer.as_client_of(echo()) as peer:
                with pytest.raises(RuntimeError, match="run_on_fake_clock"):
                    await peer.delay(1)

        run(main())


class TestPairs:
    def test_an_acp_pair_has_both_connections_and_the_handshake_behind_it(self, run):
        async def main() -> None:
            async with testing.acp_pair(testy.agent_v1()) as pair:
                assert pair.client.peer.info.name == "testy"
                assert pair.agent.peer.info.name == "test-client"
                async with acp.session(pair.client, cwd=".") as session:
                    assert await session.prompt("echo hi").text() == "hi"

        run(main())

    def test_the_agent_can_be_made_to_speak(self, run):
        async def main() -> None:
            client = acp.Client("mine", version="1")
            heard: asyncio.Queue[v1.SessionNotification] = asyncio.Queue()

            @client.on_receive_notification
            async def update(note: v1.SessionNotification, cx: acprt.Connection) -> None:
                heard.put_nowait(note)

            async with testing.acp_pair(testy.agent_v1(), client) as pair:
                chunk = v1.AgentMessageChunk(content=v1.TextContent(text="out of the blue"))
                pair.agent.send_notification(v1.SessionNotification(session_id="s", update=chunk))
                assert (await heard.get()).update == chunk

        run(main())

    def test_what_breaks_one_side_is_raised(self, run):
        async def main() -> None:
            async with testing.endpoint_pair(acprt.Endpoint("left"), acprt.Endpoint("right")) as pair:
                pair.right.fail(ValueError("broken"))
                await asyncio.Event().wait()

        with pytest.raises(ValueError, match="broken"):
            run(main())


class TestSpawnedAgent:
    def test_it_is_connected_and_ends_without_a_trace(self, run):
        async def main() -> int:
            async with spawned_agent(sys.executable, "-m", "acprt.testing.testy") as agent:
                assert agent.exit_status is None
                async with acp.session(agent.cx, cwd=".") as session:
                    assert await session.prompt("echo hi").text() == "hi"
            return agent.pid

        with pytest.raises(ProcessLookupError):
            os.kill(run(main()), 0)

    @pytest.mark.parametrize(
        ("end", "complaint"),
        [
            ("sys.exit(3)", "exit status 3"),
            ("import warnings; warnings.warn('careless')", "careless"),
            ("print('Traceback (most recent call last):', file=sys.stderr)", "complained on stderr"),
        ],
    )
    def test_an_agent_that_ends_badly_fails_the_test(self, run, end, complaint):
        code = f"import sys\nfor line in sys.stdin: pass\n{end}"

        async def main() -> None:
            async with spawned_agent(sys.executable, "-c", code, client=acprt.Endpoint("client"), handshake=False):
                pass

        with pytest.raises(AssertionError, match=complaint):
            run(main())


class TestNoLeaks:
    def test_a_tidy_block_passes(self, run, tmp_path):
        async def main() -> None:
            async with spawned_agent(sys.executable, "-m", "acprt.testing.testy"):
                pass

        with assert_no_leaks():
            run(main())

    @pytest.mark.parametrize("first", ["a loop of uvloop", "a traced connection"])
    def test_what_stays_open_for_the_whole_process_is_no_leak(self, first, tmp_path):
        code = """
import asyncio, sys
import acprt
from acprt.testing import assert_no_leaks

async def main():
    async with acprt.Endpoint("client").connect(acprt.Endpoint("server")):
        pass

with assert_no_leaks():
    if sys.argv[1] == "a loop of uvloop":
        import uvloop
        uvloop.run(main())
    else:
        asyncio.run(main())
"""
        env = dict(os.environ)
        if first == "a loop of uvloop":
            pytest.importorskip("uvloop")
        else:
            env["ACPRT_TRACE"] = str(tmp_path / "trace.jsonl")
        done = subprocess.run([sys.executable, "-c", code, first], env=env, capture_output=True, text=True, timeout=45)

        assert (done.returncode, done.stderr) == (0, "")

    def test_an_open_descriptor_is_named(self, tmp_path):
        path = tmp_path / "open.txt"
        with pytest.raises(AssertionError, match=r"open descriptor .*open\.txt"), assert_no_leaks():
            fd = os.open(path, os.O_CREAT | os.O_WRONLY)
        os.close(fd)

    def test_a_forgotten_file_is_named(self, tmp_path):
        with pytest.raises(AssertionError, match="unclosed file"), assert_no_leaks():
            open(tmp_path / "f", "w")  # noqa: SIM115

    def test_a_forgotten_coroutine_is_named(self):
        async def forgotten() -> None: ...

        with pytest.raises(AssertionError, match="never awaited"), assert_no_leaks():
            forgotten()  # type: ignore[unused-coroutine]  # that it is, is the point

    @pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="children are found by /proc")
    def test_a_child_is_named(self):
        with pytest.raises(AssertionError, match="child process"), assert_no_leaks():
            child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        child.communicate()

    def test_a_task_is_named(self, run):
        async def main() -> None:
            with pytest.raises(AssertionError, match="task left over"), assert_no_leaks():
                task = asyncio.get_running_loop().create_task(asyncio.Event().wait(), name="left over")
            task.cancel()
            await asyncio.wait([task])

        run(main())

    def test_another_warning_stays_a_warning(self):
        with pytest.warns(UserWarning, match="mind the gap"), assert_no_leaks():
            warnings.warn("mind the gap", UserWarning, stacklevel=1)
        gc.collect()


class TestTranscript:
    def transcript(self, run, texts: list[str]) -> Transcript:
        endpoint, transcript = acprt.Endpoint("client"), Transcript()
        endpoint.trace(transcript)

        async def main() -> None:
            async with endpoint.connect(echo()) as cx:
                for text in texts:
                    await cx.send_request("echo", {"text": text}).block_task()

        run(main())
        return transcript

    def test_what_changes_from_run_to_run_has_a_name(self, run, tmp_path):
        one, other = "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "0b1d2c3e-0000-4000-8000-000000000001"
        text = f"{one} {other} {one} at 2024-05-01T10:00:00.5Z in {tmp_path}/x"
        shown = self.transcript(run, [text]).text({str(tmp_path): "<folder>"})
        named = "<uuid-1> <uuid-2> <uuid-1> at <time> in <folder>/x"
        assert shown == (
            f'→ {{"jsonrpc":"2.0","id":1,"method":"echo","params":{{"text":"{named}"}}}}\n'
            f'← {{"jsonrpc":"2.0","id":1,"result":{{"text":"{named}"}}}}\n'
        )

    def test_a_golden_file_is_written_when_asked_for_and_compared_after(self, run, tmp_path, monkeypatch):
        golden = tmp_path / "golden" / "t.txt"
        with pytest.raises(AssertionError, match="ACPRT_UPDATE_GOLDEN"):
            self.transcript(run, ["a"]).assert_golden(golden)
        monkeypatch.setenv("ACPRT_UPDATE_GOLDEN", "1")
        self.transcript(run, ["a"]).assert_golden(golden)
        monkeypatch.delenv("ACPRT_UPDATE_GOLDEN")
        self.transcript(run, ["a"]).assert_golden(golden)
        with pytest.raises(AssertionError) as caught:
            self.transcript(run, ["b"]).assert_golden(golden)
        assert '-→ {"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"a"}}' in str(caught.value)
        assert '+→ {"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"b"}}' in str(caught.value)


def test_the_face_has_every_name_and_loads_none_of_them() -> None:
    code = (
        "import sys, acprt.testing as t\n"
        "assert not [m for m in sys.modules if m.startswith(('acprt.testing.', 'acprt.acp'))]\n"
        "print(sorted(n for n in t.__all__ if getattr(t, n) is not None) == sorted(t.__all__))\n"
        "try: t.nothing\nexcept AttributeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.splitlines() == ["True", "module 'acprt.testing' has no attribute 'nothing'"]
