"""The contract with users: every snippet runs as written, and every name that it promises is there.

The snippets are copied word for word; change them only together with the contract.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import acprt
from tests.programs import python_wrapper

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 45

MESSAGES = """
import acprt, msgspec

class HelloReply(msgspec.Struct, rename="camel"):
    greeting: str

class Hello(acprt.Request[HelloReply], method="hello/say"):      # camelCase on the wire, snake_case in Python
    first_name: str

class Progress(acprt.Notification, method="hello/progress"):
    percent: int
"""

ENDPOINTS = """
server = acprt.Endpoint("greeter")

@server.method                                    # a task of its own; the return value is the answer
async def hello(request: Hello, cx: acprt.Connection) -> HelloReply:
    cx.send_notification(Progress(percent=50))    # leaves before the answer
    return HelloReply(greeting=f"Hello, {request.first_name}!")

@server.on_receive_notification                   # runs in the dispatch loop, in order
async def progress(note: Progress, cx: acprt.Connection) -> None: ...

@server.on_close                                  # clean EOF, in registration order
async def bye(cx: acprt.Connection) -> None: ...

acprt.run(server)                                 # this process's stdio, until EOF; uvloop when available
"""

CONNECTING = """
client = acprt.Endpoint("caller")

async with client.connect(acprt.AgentProcess("python", "greeter.py")) as cx:      # foreground mode
    reply = await cx.send_request(Hello(first_name="Ada")).block_task()

await server.serve(acprt.stdio())                                                 # reactive mode: until EOF, then drain

async with client.connect(server) as cx:                                          # in-process: an endpoint is a transport
    ...
"""  # noqa: E501  # word for word

SENT = """
sent = cx.send_request(Hello(first_name="Ada"))
sent.id; sent.method

reply = await sent.block_task()                  # 1 outside the dispatch loop; block_task(timeout=5.0) cancels on expiry
sent.on_receiving_result(callback)               # 2 ordered callback: async (result) -> None, result is acprt.Ok(value) | acprt.Err(error)
sent.on_receiving_ok_result(responder, callback) #   errors go to responder; callback: async (value, responder) -> None
sent.forward_response_to(responder)              # 3 proxy: result, error and cancellation are forwarded
sent.detach()                                    # 4 do not care, let it run

sent.cancel()                                    # at most one cancel per request, whoever asks
sent.map(fn)                                     # -> SentRequest; errors bypass fn
sent.forward_cancellation_from(responder.cancellation)
with sent: ...                                   # leaves: cancelled unless consumed
"""  # noqa: E501  # word for word

PROXY = """
import ast, asyncio

client = acprt.Endpoint("caller")
proxy = acprt.Endpoint("proxy")

@proxy.on_receive_request("work")
async def work(params, responder, cx):
    cx.spawn(talk(responder))  # not here: this is inside a dispatch loop

async def talk(responder):
    called = asyncio.Event()

    async def callback(*values):
        called.set()

    names = {"acprt": acprt, "Hello": Hello, "responder": responder, "callback": callback, "fn": str}
    async with client.connect(acprt.AgentProcess("python", "greeter.py")) as names["cx"]:
        for code in LINES:
            compiled = compile(code, "snippet", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            coroutine = eval(compiled, names)
            if coroutine is not None:
                await coroutine
        print(names["sent"].id, names["sent"].method)
        await names["cx"].send_request(Hello(first_name="Bob")).block_task(timeout=30.0)  # the answer before has come
        assert called.is_set() == CALLED
    if not FORWARDED:
        responder.respond("answered")

async with acprt.Endpoint("asker").connect(proxy) as cx:
    answer = await cx.send_request("work").block_task(timeout=30.0)
    print("answered" if answer in ("answered", {"greeting": "Hello, Ada!"}) else answer)
"""

RUNNER = """
import ast, asyncio, json, sys

def run_as_written(code, names):
    compiled = compile(code, "snippet", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    coroutine = eval(compiled, names)
    if coroutine is not None:
        asyncio.run(coroutine)

names = {"__name__": "snippets"}
with open(sys.argv[1]) as file:
    snippets, then = json.load(file)
for code in snippets:
    run_as_written(code, names)
run_as_written(then, names)
"""


@pytest.fixture
def workplace(tmp_path, monkeypatch) -> Path:
    """An empty directory where `python` is this interpreter and acprt can be imported."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(python_wrapper())
    python.chmod(0o755)
    monkeypatch.setenv("PATH", f"{python.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "greeter.py").write_text(MESSAGES + ENDPOINTS)
    (tmp_path / "runner.py").write_text(RUNNER)
    return tmp_path


def run_snippets(*snippets: str, then: str = "") -> str:
    """Run snippets one after another in one namespace, each on a loop of its own, then a check; what that prints."""
    Path("snippets.json").write_text(json.dumps([snippets, then]))
    done = subprocess.run(
        ["python", "runner.py", "snippets.json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for python here")
@pytest.mark.usefixtures("workplace")
class TestSnippets:
    def test_messages(self):
        """Classes, and the two functions that read them back."""
        then = """
assert acprt.method_of(Hello) == acprt.method_of(Hello(first_name="Ada")) == "hello/say"
assert acprt.reply_type_of(Hello) is HelloReply
print(msgspec.json.encode(Hello(first_name="Ada")).decode())
"""
        assert run_snippets(MESSAGES, then=then) == '{"firstName":"Ada"}\n'

    def test_payload_member_may_be_called_method(self):
        """`method=` is a class keyword."""
        then = """
class Odd(acprt.Request[str], method="odd"):
    method: str
print(acprt.method_of(Odd(method="member")), msgspec.json.encode(Odd(method="member")).decode())
"""
        assert run_snippets(MESSAGES, then=then) == 'odd {"method":"member"}\n'

    def test_endpoints(self, workplace):
        """The whole greeter, fed by a pipe."""
        lines = [
            b'{"jsonrpc":"2.0","id":1,"method":"hello/say","params":{"firstName":"Ada"}}',
            b'{"jsonrpc":"2.0","method":"hello/progress","params":{"percent":1}}',
        ]
        done = subprocess.run(
            ["python", "greeter.py"],
            input=b"\n".join(lines),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert [msgspec.json.decode(line) for line in done.stdout.splitlines()] == [
            {"jsonrpc": "2.0", "method": "hello/progress", "params": {"percent": 50}},
            {"jsonrpc": "2.0", "id": 1, "result": {"greeting": "Hello, Ada!"}},
        ]

    def test_connecting(self):
        """A spawned greeter, this process's stdio (empty here), an endpoint in process."""
        then = "print(reply.greeting)"
        assert run_snippets(MESSAGES, ENDPOINTS, CONNECTING, then=then) == "Hello, Ada!\n"

    def test_open_and_close(self):
        """`connect()` also works without `async with`."""
        then = """
client = acprt.Endpoint("caller")
cx = await client.open(acprt.AgentProcess.parse("FOO=1 python greeter.py"))
reply = await cx.send_request("hello/say", {"firstName": "Bob"}, reply_type=HelloReply).block_task(timeout=30.0)
untyped = await cx.send_request("hello/say", {"firstName": "Eve"}).block_task(timeout=30.0)
await cx.aclose()
await cx.aclose()
print(reply.greeting, untyped["greeting"])
"""
        assert run_snippets(MESSAGES, then=then) == "Hello, Bob! Hello, Eve!\n"

    @pytest.mark.parametrize("line", [line for line in SENT.splitlines()[4:] if line], ids=lambda line: line[:24])
    def test_sent_request(self, line):
        """Each way by itself, on a request of its own, against the spawned greeter."""
        begin = SENT.split("\n\n")[0]
        then = PROXY.replace("LINES", repr([begin, line])).replace("CALLED", str("callback" in line))
        then = then.replace("FORWARDED", str("forward_response_to" in line))
        assert run_snippets(MESSAGES, then=then) == "1 hello/say\nanswered\n"


class TestNames:
    """What the text of the contract names is there, under that name."""

    @pytest.mark.parametrize(
        "name",
        [
            "AgentProcess",
            "AlreadyConsumed",
            "Connection",
            "Dialect",
            "Dispatch",
            "DispatchLoopBlocked",
            "Endpoint",
            "Err",
            "ErrorCode",
            "Handled",
            "Limits",
            "Notification",
            "Ok",
            "Request",
            "RpcError",
            "SentRequest",
            "is_incoming_transport_closed",
            "memory_pair",
            "method_of",
            "reply_type_of",
            "run",
            "stdio",
            "streams",
        ],
    )
    def test_face(self, name):
        """Importable from `acprt`, documented, and listed in `__all__`."""
        assert name in acprt.__all__
        assert inspect.getdoc(getattr(acprt, name))

    def test_nothing_else_is_offered(self):
        """`__all__` is the face: without repetition, all of it there."""
        assert len(acprt.__all__) == len(set(acprt.__all__))
        assert all(hasattr(acprt, name) for name in acprt.__all__)

    @pytest.mark.parametrize(
        ("owner", "names"),
        [
            (
                acprt.Connection,
                "send_request send_notification spawn add_dynamic_handler drain after_response incoming_closed "
                "is_incoming_closed aclose status",
            ),
            (
                acprt.SentRequest,
                "id method block_task on_receiving_result on_receiving_ok_result forward_response_to detach cancel map "
                "forward_cancellation_from",
            ),
            (
                acprt.Responder,
                "respond respond_with_error respond_with_result respond_with_internal_error id method cancellation",
            ),
            (acprt.RequestCancellation, "is_cancelled cancelled run_until_cancelled"),
            (acprt.HandlerGuard, "close detach"),
            (
                acprt.Endpoint,
                "method on_receive_request on_receive_notification on_receive_dispatch on_close with_spawned include "
                "connect serve open",
            ),
            (
                acprt.RpcError,
                "parse_error invalid_request method_not_found invalid_params internal_error request_cancelled "
                "auth_required resource_not_found",
            ),
            (acprt.Ok, "unwrap"),
            (acprt.Err, "unwrap"),
            (acprt.AgentProcess, "parse"),
        ],
        ids=lambda value: getattr(value, "__name__", ""),
    )
    def test_members(self, owner, names):
        """Each with a docstring."""
        for name in names.split():
            assert inspect.getdoc(getattr(owner, name)), f"{owner.__name__}.{name}"

    @pytest.mark.parametrize(
        ("function", "parameters"),
        [
            (acprt.AgentProcess.__init__, "argv env inherit_env cwd on_stderr die_with_parent limits"),
            (acprt.run, "limits exit_with_parent"),
            (acprt.Endpoint.__init__, "limits dialect"),
            (acprt.SentRequest.block_task, "timeout"),
            (acprt.Connection.send_request, "reply_type"),
            (acprt.RpcError.__init__, "code message data"),
        ],
        ids=lambda value: getattr(value, "__qualname__", ""),
    )
    def test_options(self, function, parameters):
        """Explicit parameters, never `**kwargs` (DEC-6)."""
        signature = inspect.signature(function)
        assert set(parameters.split()) <= signature.parameters.keys()
        assert not [p for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD]

    def test_limits(self):
        """Every field has a default and says its reason; the ones named in the contract are there."""
        named = (
            "line_bytes inbox_bytes inbox_frames outbox_high_bytes outbox_max_bytes drain_seconds exit_grace_seconds "
            "term_grace_seconds stderr_tail_bytes slow_handler_seconds"
        )
        assert set(named.split()) <= set(acprt.Limits.__struct_fields__)
        acprt.Limits()

    def test_status(self):
        """The members of `cx.status()`."""
        fields = set(acprt.ConnectionStatus.__struct_fields__)
        assert {"pending", "in_flight", "inbox", "outbox", "child", "counters"} <= fields


class TestStatements:
    """Sentences of the contract that no other test file states."""

    @pytest.mark.parametrize(
        ("error", "code", "message", "data"),
        [
            (acprt.RpcError.parse_error(), -32700, "Parse error", None),
            (acprt.RpcError.invalid_request(), -32600, "Invalid request", None),
            (acprt.RpcError.method_not_found("m"), -32601, "Method not found", "m"),
            (acprt.RpcError.invalid_params(), -32602, "Invalid params", None),
            (acprt.RpcError.internal_error(), -32603, "Internal error", None),
            (acprt.RpcError.request_cancelled(), -32800, "Request cancelled", None),
            (acprt.RpcError.auth_required(), -32000, "Authentication required", None),
            (acprt.RpcError.resource_not_found("u"), -32002, "Resource not found", {"uri": "u"}),
        ],
        ids=lambda value: "",
    )
    def test_constructors(self, error, code, message, data):
        """Codes and messages as they are on the wire."""
        assert (error.code, error.message, error.data) == (code, message, data)
        assert error.code in list(acprt.ErrorCode)

    def test_local_errors_are_ordinary_exceptions(self):
        """Never sent to a peer, so they have no code."""
        for error in (acprt.DispatchLoopBlocked, acprt.AlreadyConsumed):
            assert issubclass(error, RuntimeError)
            assert not issubclass(error, acprt.RpcError)

    def test_match_works(self):
        """`case acprt.Ok(value)`, `case acprt.Err(error)`; both have `.unwrap()`."""

        def outcome(result: acprt.Result[Any]) -> Any:
            match result:
                case acprt.Ok(value):
                    return value
                case acprt.Err(error):
                    return error.code

        assert outcome(acprt.Ok(1)) == acprt.Ok(1).unwrap() == 1
        assert outcome(acprt.Err(acprt.RpcError(-5, "x"))) == -5
        with pytest.raises(acprt.RpcError, match="x"):
            acprt.Err(acprt.RpcError(-5, "x")).unwrap()
