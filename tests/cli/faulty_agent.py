"""An agent with one fault, which its argument names; without one it has none that `acprt check` knows of.

It imports nothing of acprt. A prompt with "slow" in it runs until it is cancelled.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
OUTPUT = sys.stdout.buffer

sessions: dict[str, str | None] = {}
"""Session id -> its mode; those that are open."""

kept: list[str] = []
"""Those that were ever opened, in the order of the list."""

running: dict[str, Any] = {}
"""Session id -> id of the prompt that runs in it."""


seen: list[Any] = []
"""What must not happen twice, by the fault."""

cancelled: dict[str, bool] = {}
"""Sessions whose next prompt ends as cancelled, by a fault."""


class Refused(Exception):
    """code, message"""


def write(message: Any) -> None:
    OUTPUT.write(json.dumps(message).encode() + b"\n")
    OUTPUT.flush()


def send(**members: Any) -> None:
    write({"jsonrpc": "1.0" if FAULT == "output.version" else "2.0", **members})


def answer(id: Any, result: Any) -> None:
    send(id=id, result=result)


def fail(id: Any, code: int, message: str) -> None:
    if FAULT == "requests.ids" and isinstance(id, int):
        id = float(id)
    if FAULT == "requests.again" and id == "again":
        seen.append(id)
        if len(seen) > 1:
            return
    error: dict[str, Any] = {"code": code, "message": message}
    if FAULT == "output.responses" and code == -32601:
        error = {"code": str(code)}
    send(id=id, error=error)
    if FAULT == "requests.many" and isinstance(id, int) and id % 10 == 0:
        send(id=id, error=error)


def update(session_id: str, text: str = "hello") -> None:
    content: Any = {"type": "text", "text": text}
    if FAULT == "output.schema":
        content = text
    chunk = {"sessionUpdate": "agent_message_chunk", "content": content}
    send(method="session/update", params={"sessionId": session_id, "update": chunk})


def initialize(params: Any) -> Any:
    version = params["protocolVersion"]
    if FAULT == "handshake.future":
        return {"protocolVersion": version}
    if FAULT == "handshake.answer":
        raise Refused(-32603, "not today")
    if FAULT == "handshake.crash":
        print("cannot read the config", file=sys.stderr)
        sys.exit(3)
    sessions_offered: dict[str, Any] = {name: {} for name in ("list", "resume", "close", "delete", "fork")}
    result: dict[str, Any] = {
        "protocolVersion": 1,
        "agentInfo": {"name": "faulty", "version": "1"},
        "agentCapabilities": {"loadSession": True, "sessionCapabilities": sessions_offered},
    }
    if FAULT == "handshake.shape":
        result["_meta"] = 5
    if FAULT == "escapes":
        result["agentInfo"]["name"] = "\x1b[2J[red]faulty"
    if FAULT == "handshake.name":
        del result["agentInfo"]
    return result


def new_session(params: Any) -> Any:
    if FAULT == "sessions.new":
        raise Refused(-32603, "no sessions today")
    if FAULT == "login":
        raise Refused(-32000, "Authentication required")
    if FAULT not in ("requests.params", "requests.params_code") and not isinstance(params.get("cwd"), str):
        raise Refused(-32602, "cwd")
    if FAULT == "requests.params_code" and not isinstance(params.get("cwd"), str):
        raise Refused(-32603, "cwd")
    if FAULT not in ("sessions.relative", "requests.params") and not str(params.get("cwd")).startswith("/"):
        raise Refused(-32602, "cwd is not absolute")
    if FAULT == "sessions.meta" and "_meta" in params:
        raise Refused(-32602, "_meta")
    session_id = "one" if FAULT == "sessions.distinct" else f"session-{len(kept) + 1}"
    sessions[session_id] = "ask"
    kept.append(session_id)
    if FAULT == "output.sessions":
        update(session_id)
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]}
    option = {
        "id": "model",
        "name": "Model",
        "type": "select",
        "currentValue": "a",
        "options": [{"value": "a", "name": "A"}],
    }
    return {"sessionId": session_id, "modes": modes, "configOptions": [option]}


def session_of(params: Any) -> str:
    session_id: str = params.get("sessionId")
    if session_id not in sessions and FAULT != "sessions.unknown":
        raise Refused(-32002, "no such session")
    return session_id


def call(method: str, params: Any) -> Any:
    if method == FAULT:
        raise Refused(-32603, f"{method} is broken")
    if method == "initialize":
        return initialize(params)
    if method == "session/new":
        return new_session(params)
    if method == "session/list":
        cwd = "." if FAULT == "sessions.list" else "/"
        return {"sessions": [{"sessionId": each, "cwd": cwd} for each in kept]}
    if method in ("session/load", "session/resume"):
        sessions.setdefault(params["sessionId"], "ask")
        return {}
    if method in ("session/close", "session/delete"):
        if FAULT != "sessions.close":
            sessions.pop(params["sessionId"], None)
        return {}
    if method == "session/fork":
        session_id = session_of(params)
        return {"sessionId": session_id} if FAULT == "sessions.fork" else new_session(params)
    if method == "session/set_mode":
        if params["modeId"] != "ask" and FAULT != "sessions.modes":
            raise Refused(-32602, "no such mode")
        return {}
    if method == "session/set_config_option":
        return {} if FAULT == "sessions.options" else {"configOptions": new_session({"cwd": "/"})["configOptions"]}
    raise Refused(-32600 if FAULT == "requests.unknown" else -32601, "Method not found")


def prompt(id: Any, params: Any) -> None:
    if not isinstance(params.get("prompt"), list) and FAULT != "requests.params":
        raise Refused(-32602, "prompt")
    if FAULT == "turns.link" and len(params["prompt"]) > 1:
        raise Refused(-32602, "no links")
    session_id = session_of(params)
    if FAULT == "turns.together" and session_id == "session-2":
        raise Refused(-32603, "one at a time")
    text = params["prompt"][0]["text"] if isinstance(params.get("prompt"), list) else ""
    if FAULT != "turns.text":
        update(session_id)
    if FAULT == "output.extensions":
        send(method="faulty/news", params={})
    if "slow" in text:
        running[session_id] = id
        return
    if FAULT == "turns.second" and session_id in seen:
        raise Refused(-32603, "once is enough")
    seen.append(session_id)
    reason = "cancelled" if cancelled.pop(session_id, None) else "end_turn"
    answer(id, {"stopReason": "done" if FAULT == "turns.end" else reason})


def cancel(params: Any) -> None:
    session_id = params.get("sessionId")
    if FAULT == "cancels.unknown" and session_id not in sessions:
        sys.exit(1)
    if FAULT == "cancels.other" and running:
        session_id = next(iter(running))
    if session_id in running:
        if FAULT == "cancels.during":
            fail(running.pop(session_id), -32603, "aborted")
            return
        if FAULT == "cancels.next":
            cancelled[session_id] = True
        id = running.pop(session_id)
        answer(id, {"stopReason": "cancelled"})
        if FAULT == "cancels.twice":
            answer(id, {"stopReason": "cancelled"})
    elif FAULT == "cancels.before" or (FAULT == "cancels.after" and session_id in seen):
        cancelled[session_id] = True


def cancel_request(params: Any) -> None:
    for session_id, id in list(running.items()):
        if id == params.get("requestId"):
            del running[session_id]
            fail(id, -32603 if FAULT == "cancels.request" else -32800, "Request cancelled")
            return
    if FAULT == "cancels.unknown_request":
        sys.exit(1)


def notified(method: str, params: Any) -> None:
    if method == "session/cancel":
        cancel(params)
    elif method == "$/cancel_request":
        cancel_request(params)
    elif (
        (FAULT == "requests.notification" and method.startswith("acprt/"))
        or (FAULT == "requests.protocol_notification" and method.startswith("$/"))
        or (FAULT == "requests.extension" and method.startswith("_"))
    ):
        write({"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}})


def handle(line: bytes) -> None:
    if not line.strip():
        if FAULT == "lines.blank":
            fail(None, -32700, "Parse error")
        return
    if FAULT == "lines.crlf" and line.endswith(b"\r\n"):
        return
    if FAULT == "lines.large" and len(line) > 2**20:
        sys.exit(1)
    try:
        message = json.loads(line)
    except UnicodeDecodeError:
        if FAULT == "lines.not_utf8":
            raise
        return
    except ValueError:
        if FAULT == "lines.malformed":
            write({"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}})
            return
        fail(None, -32700, "Parse error")
        if FAULT == "lines.stderr":
            print(line, file=sys.stderr)
        return
    if not isinstance(message, dict):
        if FAULT == "lines.number" and isinstance(message, int):
            sys.exit(1)
        if FAULT == "lines.batch" and isinstance(message, list):
            sys.exit(1)
        fail(None, -32600, "Invalid request")
        return
    if FAULT == "lines.version" and "jsonrpc" not in message:
        sys.exit(1)
    if FAULT == "lines.deep" and b"[" * 100 in line:
        sys.exit(1)
    method, params = str(message.get("method")), message.get("params") or {}
    if "id" not in message:
        notified(method, params)
        return
    try:
        if FAULT == "ends.answer" and method != "initialize":
            threading.Timer(1.0, answer, [message["id"], {}]).start()
        elif method == "session/prompt":
            prompt(message["id"], params)
        else:
            answer(message["id"], call(method, params))
    except Refused as refused:
        fail(message["id"], *refused.args)


def main() -> None:
    if FAULT == "output.purity":
        print("welcome to the faulty agent", flush=True)
    if FAULT == "ends.sigterm":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        handle(line)
    if FAULT == "ends.eof" or (FAULT == "ends.eof_turn" and running):
        threading.Event().wait()
    if FAULT == "ends.answer":
        os._exit(0)  # whatever was asked
    if FAULT == "ends.eof_status":
        sys.exit(1)


if __name__ == "__main__":
    main()
