"""A child that misbehaves as real agents were seen to: `odd_agent.py ODDITY`. It needs the standard library only.

Each function is one oddity, named as in the tests. Nothing here may be helpful.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

UUID = "1f04910c-7378-4228-aa48-2e054c222ed4"
SEPARATORS = "line\u2028paragraph\u2029next\u0085end"
BIG_LINE = 563_186
FLOOD = 2_000_000


def raw(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def send(message: dict[str, Any]) -> None:
    raw(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode())


def receive() -> Any:
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit()
    return json.loads(line)


def answer(result: Any = None) -> None:
    send({"id": receive()["id"], "result": result})


def until_eof() -> None:
    sys.stdin.buffer.read()


def error_without_id() -> None:
    request = receive()
    send({"error": {"code": -32601, "message": "Method not found", "data": receive()["method"]}})
    send({"id": request["id"], "result": "answered"})


def error_with_null_id() -> None:
    request = receive()
    receive()
    send({"id": None, "error": {"code": -32700, "message": "Parse error"}})
    send({"id": request["id"], "result": "answered"})


def id_last() -> None:
    request = receive()
    send({"method": "client/ask", "params": {"n": 1}, "id": 0})
    mine = receive()
    raw(b'{"result":%s,"jsonrpc":"2.0","id":%d}' % (json.dumps(mine["result"]).encode(), request["id"]))


def same_ids() -> None:
    request = receive()
    ids: list[Any] = [request["id"], str(request["id"]), 0, UUID, 0]
    answers = []
    for n, id in enumerate(ids):
        send({"id": id, "method": "client/ask", "params": {"n": n}})
        answers.append(receive())
    send({"id": request["id"], "result": [[reply["id"], reply["result"]] for reply in answers]})
    assert [type(reply["id"]) for reply in answers] == [type(id) for id in ids]


def big_line() -> None:
    request = receive()
    line = b'{"jsonrpc":"2.0","method":"session/update","params":{"text":"%s"}}'
    raw(line % (b"x" * (BIG_LINE - len(line) + 2)))
    send({"id": request["id"], "result": "answered"})


def separators() -> None:
    request = receive()
    send({"method": "session/update", "params": {"text": SEPARATORS}})
    send({"id": request["id"], "result": SEPARATORS})


def update_before_the_answer() -> None:
    request = receive()
    send({"method": "session/update", "params": {"sessionId": "s-1", "n": 1}})
    send({"method": "vendor/notify", "params": {}})
    send({"id": request["id"], "result": {"sessionId": "s-1"}})
    send({"method": "session/update", "params": {"sessionId": "s-1", "n": 2}})
    answer("next")


def vendor_request() -> None:
    request = receive()
    send({"id": 1, "method": "vendor/drainQueue", "params": {"v": 1}})
    send({"id": request["id"], "result": receive()["error"]["code"]})


def odd_errors() -> None:
    for code, data in ((400, None), (1001, {"exitCode": 1}), (-32603, "text"), (2**40, [1, None]), (0, 0)):
        send({"id": receive()["id"], "error": {"code": code, "message": "odd", "data": data}})


def bad_lines() -> None:
    request = receive()
    for line in (
        b"starting up (this is not JSON)",
        b"",
        b"  \r",
        b"null",
        b"42",
        b"[]",
        b"[1,2]",
        b'"text"',
        b"{}",
        b'{"jsonrpc":"2.0","id":{},"result":1}',
        b'{"jsonrpc":"2.0","id":[1],"method":"client/ask"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"client/ask"}',
        b'{"jsonrpc":"2.0","method":7}',
        b'{"jsonrpc":"2.0","id":77,"error":"a string"}',
        b'{"jsonrpc":"2.0","id":77}',
        b'{"a":' * 2_000 + b"1" + b"}" * 2_000,
        b"[" * 100_000,
        b'{"text":"\xff\xfe\xc3"}',
        b'{"jsonrpc":"2.0","method":"session/upd',
        b"\x00\x00\x00",
    ):
        raw(line)
    raw(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":%d,"result":"answered"}\r' % request["id"])
    came_back = 0
    while (message := receive()).get("method") != "how_many_came_back":
        came_back += 1
    send({"id": message["id"], "result": came_back})


def no_version() -> None:
    raw(b'{"id":%d,"result":"answered","emittedAtMs":1796042048350}' % receive()["id"])
    raw(b'{"jsonrpc":"2.0","id":%d,"result":"answered","emittedAtMs":1796042048350}' % receive()["id"])


def never_answers() -> None:
    receive()
    late = receive()
    assert late["method"] == "$/cancel_request"
    answer("next")
    send({"id": late["params"]["requestId"], "result": "late"})
    answer("after")


def stderr_flood() -> None:
    request = receive()
    line = b"progress \r \xff\xfe " + b"." * 80 + b"\n"
    for _ in range(FLOOD // len(line)):
        os.write(2, line)
    os.write(2, b"the end of stderr\n")
    send({"id": request["id"], "result": "answered"})
    receive()
    sys.exit(7)


def ignores_eof() -> None:
    answer(os.getpid())
    until_eof()
    while True:  # it goes on talking, and blocks once nobody reads
        send({"method": "session/update", "params": {"text": "tick" * 1_000}})


def ignores_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answer(os.getpid())
    until_eof()
    while True:
        signal.pause()


def leaves_an_orphan() -> None:
    """The direct child is a wrapper that exits; what it started lives on in its group and holds the pipes."""
    orphan = subprocess.Popen(["sleep", "600"])
    answer(orphan.pid)
    receive()
    os._exit(3)


def leaves_an_orphan_in_another_group() -> None:
    """The same, out of reach of a signal to the group."""
    orphan = subprocess.Popen(["sleep", "600"], start_new_session=True)
    answer(orphan.pid)
    receive()
    os._exit(3)


def wraps_without_passing_signals_on() -> None:
    """SIGTERM to this pid does nothing; the real program reacts to one of its own."""
    real = subprocess.Popen(["sleep", "600"])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answer(real.pid)
    sys.exit(real.wait())


def dies_of_a_signal() -> None:
    receive()
    os.write(2, b"terminate called after throwing\n")
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    until_eof()
