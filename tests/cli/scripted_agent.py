"""An agent for the tests of the command, in plain JSON so that it starts at once. A prompt says what it does:

`say TEXT`, `messages`, `escape`, `stop REASON`, `tool`, `ask`, `error`, `die`, `leave` (after the turn), `wait` (until
it is cancelled), `hang` (cancelled or not), `flood` (its process id, then text without an end, deaf to everything),
`lie REASON` (an error that tells of the end of a connection). The mode `never` is not answered. Words on its command
line change how it begins: `noise`, `mute`, `version=N`, `auth`.
"""

import json
import os
import sys
import threading


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(**update):
    send(method="session/update", params={"sessionId": "s-1", "update": update})


def say(text, **more):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text}, **more)


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def answer(request):
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        can = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
        version = next((int(word[8:]) for word in sys.argv if word.startswith("version=")), 1)
        return {
            "protocolVersion": version,
            "agentCapabilities": can,
            "agentInfo": {"name": "scripted", "version": "1"},
            "authMethods": [{"id": "key", "name": "Key"}, {"id": "browser", "name": "Browser"}],
        }
    if method in ("session/new", "session/load", "session/resume"):
        if "auth" in sys.argv and not signed_in:
            raise ValueError(-32000, "Authentication required")
        commands = [{"name": "web", "description": "searches"}]
        modes = [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]
        update(sessionUpdate="available_commands_update", availableCommands=commands)
        if method == "session/load":
            update(sessionUpdate="user_message_chunk", content={"type": "text", "text": "an earlier question"})
            say("an earlier answer")
        return {"sessionId": "s-1", "modes": {"currentModeId": "ask", "availableModes": modes}}
    if method == "authenticate":
        signed_in.append(params["methodId"])
        return {}
    if method == "session/set_mode":
        if params["modeId"] == "never":
            until(lambda message: False)
        update(sessionUpdate="current_mode_update", currentModeId=params["modeId"])
        return {}
    if method == "session/prompt":
        return {"stopReason": turn(params["prompt"][0]["text"])}
    if method == "test/params":
        return params
    raise ValueError(-32601, "Method not found")


def turn(text):
    word, _, rest = text.partition(" ")
    if word == "say":
        say(rest)
    elif word == "messages":
        say("one", messageId="m-1")
        say("two", messageId="m-2")
    elif word == "escape":
        say("\x1b]0;owned\x07end")
    elif word == "stop":
        return rest
    elif word == "tool":
        update(sessionUpdate="tool_call", toolCallId="t", title="Edit notes", kind="edit", status="in_progress")
        diff = {"type": "diff", "path": "/notes", "oldText": "old\n", "newText": "new\n"}
        update(sessionUpdate="tool_call_update", toolCallId="t", status="completed", content=[diff])
        update(sessionUpdate="plan", entries=[{"content": "all of it", "priority": "high", "status": "completed"}])
    elif word == "ask":
        kinds = ["allow_once", "allow_always", "reject_once"]
        options = [{"optionId": kind, "name": kind.replace("_", " "), "kind": kind} for kind in kinds]
        call = {"toolCallId": "t", "title": "Delete everything"}
        send(
            id="q",
            method="session/request_permission",
            params={"sessionId": "s-1", "toolCall": call, "options": options},
        )
        outcome = until(lambda message: message.get("id") == "q")["result"]["outcome"]
        say(outcome.get("optionId", outcome["outcome"]))
    elif word == "error":
        say("half a line")
        raise ValueError(-32603, "the model is away")
    elif word == "lie":
        raise ValueError(-32603, "an inner connection has ended", {"reason": rest, "exit_status": 9})
    elif word == "die":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(7)
    elif word == "leave":
        threading.Timer(0.1, os._exit, [8]).start()
    elif word == "wait":
        say("waiting")
        until(lambda message: message.get("method") == "session/cancel")
        return "cancelled"
    elif word == "flood":
        say(f"{os.getpid()}\n")
        while True:
            say("and on it goes\n" * 100)
    elif word == "hang":
        say("waiting")
        until(lambda message: False)
    return "end_turn"


def until(wanted):
    while not wanted(message := receive()):
        pass
    return message


signed_in: list[str] = []
if "noise" in sys.argv:
    print("Welcome to the agent!", flush=True)
while True:
    request = receive()
    if "mute" in sys.argv or "id" not in request or "method" not in request:
        continue
    try:
        send(id=request["id"], result=answer(request))
    except ValueError as error:
        send(id=request["id"], error=dict(zip(["code", "message", "data"], error.args, strict=False)))
