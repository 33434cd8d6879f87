"""An agent for the tests of `acprt replay`: everything that may differ between two runs does. Its argument is JSON:

`stop`, `text` say something else; `refuses`, `silent`, `ends` name a method; `asks` is one more request to the client.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
import uuid
from typing import Any

changes = json.loads(sys.argv[1])
session = f"session-{uuid.uuid4()}"
tool = f"tool-{uuid.uuid4()}"
numbers = itertools.count(1)


def write(message: Any) -> None:
    """One line."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def read() -> Any:
    """One line; the end of input ends the program."""
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    try:
        return json.loads(line)
    except ValueError:
        write({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
        return read()


def update(**members: Any) -> None:
    """A `session/update`."""
    params = {"sessionId": session, "update": members}
    write({"jsonrpc": "2.0", "method": "session/update", "params": params})


def ask(method: str, params: Any) -> Any:
    """The answer to a request, which must have its id."""
    id = f"{uuid.uuid4()}-{next(numbers)}"
    write({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    answer = read()
    assert answer["id"] == id, answer
    return answer


def turn(params: Any) -> Any:
    """A prompt turn: text, a permission, a tool, and a wait for the cancel."""
    assert params["sessionId"] == session, params
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ")
    text = changes.get("text", f"Working on it at {stamp}")
    for piece in (text[:3], text[3:]):
        update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": piece})
    if "asks" in changes:
        assert "error" in ask(changes["asks"], {"sessionId": session})
    call = {"sessionId": session, "toolCall": {"toolCallId": tool}, "options": []}
    outcome = ask("session/request_permission", call)["result"]["outcome"]["outcome"]
    update(sessionUpdate="tool_call_update", toolCallId=tool, status=outcome)
    cancel = read()
    assert (cancel["method"], cancel["params"]) == ("session/cancel", {"sessionId": session}), cancel
    return {"stopReason": changes.get("stop", "cancelled")}


def answer(request: Any) -> Any:
    """One answer."""
    method = request["method"]
    if changes.get("ends") == method:
        sys.exit()
    if changes.get("refuses") == method:
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": "no"}}
    result: Any = {"protocolVersion": 1, "startedAt": time.time()}
    if method == "session/new":
        result = {"sessionId": session}
    elif method == "session/prompt":
        result = turn(request.get("params"))
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


while True:
    said = read()
    if isinstance(said, list):
        write([answer(each) for each in said])
    elif "id" in said and changes.get("silent") != said["method"]:
        write(answer(said))
