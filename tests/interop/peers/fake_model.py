"""A language model that only follows a script, for real agents: loopback only, standard library only.

It speaks the four wire formats that the agents ask for (OpenAI Chat Completions and Responses, Anthropic Messages,
Gemini). A marker in the newest user message chooses the scene: `FAKE:TEXT` (short chunks), `FAKE:TOOL` (a shell
command, then text), `FAKE:WRITE(path)` (a file, then text), `FAKE:SLOW` (chunks for as long as a turn may be wanted),
`FAKE:BIG(n)` (one chunk of n characters), `FAKE:UNICODE`, `FAKE:ERROR` (the request fails). It prints its port on
stdout, and ends with its stdin, so that it never outlives the tests.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

MARKER = re.compile(r"FAKE:([A-Z]+)(?:\(([^)]*)\))?")
WORDS = ("Hello ", "from ", "the ", "fake ", "model.")
"""What `FAKE:TEXT`, and a message without a marker, is answered, each in a chunk of its own."""
ODD_TEXT = "line\u2028sep\u0085nel\x00nul \U0001f600 \\ud800 \u00e9 \ufeffbom\ttab\r\nend"
"""What `FAKE:UNICODE` is answered."""
TOUCHED = "the_model_was_here.txt"
"""The file that `FAKE:TOOL` makes by a shell command, and `FAKE:WRITE` by the agent's own tool."""
SLOW_CHUNKS = 150
"""`FAKE:SLOW` says as many, one each tenth of a second; whoever asks is expected to cancel."""
SHELL_TOOLS = ("bash", "run_shell_command", "exec_command", "shell_command", "shell")
WRITE_TOOLS = ("write", "write_file", "create_file", "apply_patch")


class Text(NamedTuple):
    text: str
    delay: float = 0.0


class Call(NamedTuple):
    name: str
    arguments: dict[str, Any]


class Tool(NamedTuple):
    name: str
    schema: dict[str, Any]


Act = Text | Call


def text_in(content: Any) -> str:
    """The text of a message, however it is wrapped."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_in(part) for part in content)
    if isinstance(content, dict):
        return text_in(content.get("text") or content.get("content") or content.get("parts") or "")
    return ""


def is_tool_result(message: dict[str, Any]) -> bool:
    kinds = ("tool_result", "function_call_output", "custom_tool_call_output")
    if message.get("role") in ("tool", "function") or message.get("type") in kinds:
        return True
    parts = message.get("content") or message.get("parts")
    return isinstance(parts, list) and any(
        isinstance(part, dict) and (part.get("type") in kinds or "functionResponse" in part) for part in parts
    )


def scene_of(messages: list[Any]) -> tuple[str, str, bool]:
    """The newest marker, its argument, and whether the result of a tool came after it."""
    scene, argument, answered = "TEXT", "", False
    for message in messages:
        if not isinstance(message, dict):
            continue
        if is_tool_result(message):
            answered = True
        elif message.get("role", "user") == "user" and (found := MARKER.findall(text_in(message))):
            (scene, argument), answered = found[-1], False
    return scene, argument, answered


def tools_of(body: dict[str, Any]) -> list[Tool]:
    tools = []
    for entry in body.get("tools") or []:
        for inner in entry.get("functionDeclarations") or [entry.get("function") or entry]:
            schema = inner.get("parameters") or inner.get("parametersJsonSchema") or inner.get("input_schema") or {}
            tools.append(Tool(inner.get("name", ""), schema))
    return tools


def tool_named(tools: list[Tool], names: tuple[str, ...]) -> Tool | None:
    by_name = {tool.name.lower(): tool for tool in tools}
    return next((by_name[name] for name in names if name in by_name), None)


def arguments_for(schema: dict[str, Any], scene: str, argument: str) -> dict[str, Any]:
    """What a tool of an agent wants, told from its own schema, well enough for it to run."""
    properties = schema.get("properties") or {}
    arguments: dict[str, Any] = {}
    for name, about in properties.items():
        lower, kind = name.lower(), str(about.get("type", "")).lower()
        if scene == "TOOL" and lower in ("command", "cmd"):
            command = argument or f"touch {TOUCHED}"
            arguments[name] = ["bash", "-lc", command] if kind == "array" else command
        elif scene == "TOOL" and lower == "sandbox_permissions":
            arguments[name] = "require_escalated"  # an agent with a sandbox asks only for what leaves it
        elif lower == "justification" and "sandbox_permissions" in properties:
            arguments[name] = "May I?"
        elif scene == "WRITE" and ("path" in lower or lower in ("file", "filename")):
            arguments[name] = argument
        elif scene == "WRITE" and lower in ("content", "contents", "text"):
            arguments[name] = "written by the model\n"
        elif name in schema.get("required", ()):
            fillers = {"string": "the model", "integer": 10, "number": 10, "boolean": False, "array": [], "object": {}}
            arguments[name] = (about.get("enum") or [fillers.get(kind)])[0]
    return arguments


def acts_of(body: dict[str, Any], messages: list[Any]) -> list[Act]:
    """The scene, act by act."""
    scene, argument, answered = scene_of(messages)
    if scene in ("TOOL", "WRITE"):
        if answered:
            return [Text("The tool has finished.")]
        tools = tools_of(body)
        tool = tool_named(tools, SHELL_TOOLS if scene == "TOOL" else WRITE_TOOLS)
        if tool is None:
            return [Text("There is no such tool among " + ", ".join(tool.name for tool in tools))]
        return [Text("I will use a tool. "), Call(tool.name, arguments_for(tool.schema, scene, argument))]
    if scene == "SLOW":
        return [Text(f"tick {n} ", 0.1) for n in range(SLOW_CHUNKS)]
    if scene == "BIG":
        return [Text(big_text(int(argument)))]
    if scene == "UNICODE":
        return [Text(ODD_TEXT)]
    return [Text(word, 0.02) for word in WORDS]


def big_text(size: int) -> str:
    """What `FAKE:BIG(size)` is answered, in one chunk. It never repeats itself: some agents stop a model that does."""
    return " ".join(map(str, range(size // 2)))[:size]


class Model(BaseHTTPRequestHandler):
    """One request of an agent. Each format has a generator that yields (event name or None, data) of its stream."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        card = {"id": "fake-model", "object": "model", "type": "model", "name": "models/fake-model"}
        self._answer(200, {"object": "list", "data": [card], "models": [card], "has_more": False})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads((gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw) or b"{}")
        path = self.path.split("?")[0]
        said = body.get("messages") or body.get("contents") or body.get("input") or []
        messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
        if "count_tokens" in path or path.endswith(":countTokens"):
            return self._answer(200, {"input_tokens": 10, "totalTokens": 10})
        if scene_of(messages)[0] == "ERROR":
            error = {"message": "the scripted failure", "type": "invalid_request_error", "code": 400}
            return self._answer(400, {"type": "error", "error": {**error, "status": "INVALID_ARGUMENT"}})
        acts = acts_of(body, messages)
        streams = bool(body.get("stream"))
        if path.endswith("/chat/completions"):
            return self._stream(chat_events(acts)) if streams else self._answer(200, chat_answer(acts))
        if path.endswith("/responses"):
            return self._stream(response_events(acts))
        if path.endswith("/messages"):
            return self._stream(message_events(acts)) if streams else self._answer(200, message_answer(acts))
        if "enerateContent" in path:
            return self._stream(gemini_events(acts)) if "stream" in path else self._answer(200, gemini_answer(acts))
        return self._answer(404, {"error": {"message": "no such path", "type": "not_found"}})

    def _answer(self, status: int, value: Any) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _stream(self, events: Iterator[tuple[str | None, Any]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{head}data: {text}\n\n".encode())
            self.wfile.flush()


class Server(ThreadingHTTPServer):
    """Agents hang up whenever they like; anything else that goes wrong here is worth a traceback."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def unique(prefix: str) -> str:
    return f"{prefix}_{time.monotonic_ns()}"


def texts_of(acts: list[Act]) -> Iterator[str]:
    """The texts, each at its time."""
    for act in acts:
        if isinstance(act, Text):
            time.sleep(act.delay)
            yield act.text


def calls_of(acts: list[Act]) -> list[Call]:
    return [act for act in acts if isinstance(act, Call)]


def joined_text(acts: list[Act]) -> str:
    return "".join(act.text for act in acts if isinstance(act, Text))


# --- OpenAI Chat Completions


CHAT_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def chat_calls(acts: list[Act]) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": unique("call"),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for index, call in enumerate(calls_of(acts))
    ]


def chat_answer(acts: list[Act]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": joined_text(acts)}
    if calls := chat_calls(acts):
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    head = {"id": unique("chatcmpl"), "object": "chat.completion", "created": 1, "model": "fake-model"}
    return {**head, "choices": [choice], "usage": CHAT_USAGE}


def chat_events(acts: list[Act]) -> Iterator[tuple[None, Any]]:
    head = {"id": unique("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": "fake-model"}

    def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> tuple[None, Any]:
        return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}

    yield chunk({"role": "assistant", "content": ""})
    for text in texts_of(acts):
        yield chunk({"content": text})
    calls = chat_calls(acts)
    if calls:
        yield chunk({"tool_calls": calls})
    yield chunk({}, "tool_calls" if calls else "stop", usage=CHAT_USAGE)
    yield None, "[DONE]"


# --- OpenAI Responses


def response_events(acts: list[Act]) -> Iterator[tuple[str, Any]]:
    response = {"id": unique("resp"), "object": "response", "created_at": 1, "model": "fake-model", "output": []}
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    message_id = unique("msg")

    def event(kind: str, **members: Any) -> tuple[str, Any]:
        return kind, {"type": kind, **members}

    def message(status: str, content: list[Any]) -> dict[str, Any]:
        return {"id": message_id, "type": "message", "role": "assistant", "status": status, "content": content}

    yield event("response.created", response={**response, "status": "in_progress"})
    yield event("response.output_item.added", output_index=0, item=message("in_progress", []))
    for text in texts_of(acts):
        yield event("response.output_text.delta", item_id=message_id, output_index=0, content_index=0, delta=text)
    whole = {"type": "output_text", "text": joined_text(acts), "annotations": []}
    items = [message("completed", [whole])]
    yield event("response.output_item.done", output_index=0, item=items[0])
    for call in calls_of(acts):
        item = {
            "id": unique("fc"),
            "type": "function_call",
            "call_id": unique("call"),
            "name": call.name,
            "arguments": json.dumps(call.arguments),
            "status": "completed",
        }
        items.append(item)
        yield event("response.output_item.added", output_index=1, item={**item, "status": "in_progress"})
        yield event("response.output_item.done", output_index=1, item=item)
    yield event("response.completed", response={**response, "status": "completed", "output": items, "usage": usage})


# --- Anthropic Messages


MESSAGE_USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def message_head() -> dict[str, Any]:
    head = {"id": unique("msg"), "type": "message", "role": "assistant", "model": "fake-model", "content": []}
    return {**head, "stop_reason": None, "stop_sequence": None, "usage": MESSAGE_USAGE}


def message_answer(acts: list[Act]) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": joined_text(acts)}]
    content += [
        {"type": "tool_use", "id": unique("toolu"), "name": call.name, "input": call.arguments}
        for call in calls_of(acts)
    ]
    return {**message_head(), "content": content, "stop_reason": "tool_use" if calls_of(acts) else "end_turn"}


def message_events(acts: list[Act]) -> Iterator[tuple[str, Any]]:
    def event(kind: str, **members: Any) -> tuple[str, Any]:
        return kind, {"type": kind, **members}

    def delta(index: int, kind: str, **members: Any) -> tuple[str, Any]:
        return event("content_block_delta", index=index, delta={"type": kind, **members})

    yield event("message_start", message=message_head())
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for text in texts_of(acts):
        yield delta(0, "text_delta", text=text)
    yield event("content_block_stop", index=0)
    for index, call in enumerate(calls_of(acts), 1):
        block = {"type": "tool_use", "id": unique("toolu"), "name": call.name, "input": {}}
        yield event("content_block_start", index=index, content_block=block)
        yield delta(index, "input_json_delta", partial_json=json.dumps(call.arguments))
        yield event("content_block_stop", index=index)
    reason = {"stop_reason": "tool_use" if calls_of(acts) else "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=reason, usage=MESSAGE_USAGE)
    yield event("message_stop")


# --- Gemini


def gemini_answer(acts: list[Act], reason: str | None = "STOP") -> dict[str, Any]:
    parts: list[dict[str, Any]] = [
        {"text": act.text} if isinstance(act, Text) else {"functionCall": {"name": act.name, "args": act.arguments}}
        for act in acts
    ]
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if reason:
        candidate["finishReason"] = reason
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake-model"}


def gemini_events(acts: list[Act]) -> Iterator[tuple[None, Any]]:
    for index, act in enumerate(acts):
        if isinstance(act, Text):
            time.sleep(act.delay)
        yield None, gemini_answer([act], "STOP" if index == len(acts) - 1 else None)


def main() -> None:
    server = Server(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
