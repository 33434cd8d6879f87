"""The blocking agent: `os.read`, one typed decode a line, one `os.write` for all answers of a read. No loop at all."""

from __future__ import annotations

import msgspec

import script
import wire
from blocking_pipe import BlockingPipe

JOIN_AT_MOST = 150
"""Updates joined into one write: about 32 KiB."""


def main() -> None:
    pipe = BlockingPipe(0, 1)
    decode = msgspec.json.Decoder(wire.PromptMessage | wire.Initialize | wire.NewSession).decode
    decode_answer = msgspec.json.Decoder(wire.PermissionAnswer).decode
    asking: dict[int, int] = {}  # the id of a question to the client → of the prompt that waits for its answer
    while lines := pipe.read_lines():
        replies: list[msgspec.Struct] = []
        for line in lines:
            if asking and b'"method"' not in line:
                replies.append(done(asking.pop(decode_answer(line).id)))
                continue
            message = decode(line)
            if type(message) is wire.PromptMessage:
                answer(pipe, message, replies, asking)
            elif type(message) is wire.Initialize:
                replies.append(wire.Reply("2.0", message.id, wire.Result(protocol_version=1)))
            else:
                replies.append(wire.Reply("2.0", message.id, wire.Result(session_id=script.SESSION_ID)))
        if replies:
            pipe.write(replies)


def answer(
    pipe: BlockingPipe, message: wire.PromptMessage, replies: list[msgspec.Struct], asking: dict[int, int]
) -> None:
    text = wire.text_of_prompt(message)
    command, number = script.command_of(text)
    if command == script.CALL:
        asking[message.id] = message.id  # each side counts its own requests: the same number serves for both
        replies.append(wire.permission_message(message.id))
        return
    if command == script.ECHO:
        replies.append(wire.update_message(text))
    elif command == script.UPDATES:
        texts, mask, update = script.UPDATE_TEXTS, script.UPDATE_MASK, wire.update_message
        for begin in range(0, number, JOIN_AT_MOST):
            pipe.write([update(texts[i & mask]) for i in range(begin, min(begin + JOIN_AT_MOST, number))])
    replies.append(done(message.id))


def done(request_id: int) -> wire.Reply:
    return wire.Reply("2.0", request_id, wire.Result(stop_reason="end_turn"))


if __name__ == "__main__":
    main()
