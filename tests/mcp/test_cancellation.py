"""The codec of `notifications/cancelled`: every vector in both profiles, and what random frames may never do."""

from __future__ import annotations

import json
import pickle
import statistics
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from acprt import mcp
from acprt.mcp.cancellation import _UsualFrame
from acprt.mcp.ids import MAX_NUMBER_BYTES
from acprt.wire.frames import NotificationFrame, RequestFrame

LEGACY, MODERN = mcp.ProtocolEra.LEGACY_2024, mcp.ProtocolEra.MODERN_2026
CLIENT, SERVER = mcp.CancellationSender.CLIENT, mcp.CancellationSender.SERVER
PROFILES: tuple[mcp.CancellationProfile, ...] = ("0.5", "0.8")
VECTORS = [json.loads(line) for line in Path(__file__).with_name("cancellation_vectors.jsonl").read_text().splitlines()]
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def frame_with(params: str) -> bytes:
    """A cancel with these params, as raw JSON."""
    return f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}'.encode()


def unfolded(text: str) -> str:
    """`<5000 x>` in a vector stands for that many letters."""
    for count, letter in (("5000", "x"), ("254", "a"), ("255", "a")):
        text = text.replace(f"<{count} {letter}>", int(count) * letter)
    return text


def kind_of(era: mcp.ProtocolEra, frame: Any, sender: Any = CLIENT, **options: Any) -> str:
    """`ok`, or the kind of the error."""
    try:
        mcp.CancellationWireMessage.decode(era, sender, frame, **options)
    except mcp.CancellationWireCodecError as error:
        return error.kind
    return "ok"


class TestVectors:
    @pytest.mark.parametrize("profile", PROFILES)
    @pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["n"])
    def test_vector(self, vector: dict[str, str], profile: mcp.CancellationProfile) -> None:
        """Accepted or refused as the table says, and written again with the same spelling."""
        era = LEGACY if vector["era"] == "L" else MODERN
        sender = CLIENT if vector["from"] == "C" else SERVER
        frame = vector["frame"].encode() if "frame" in vector else frame_with(unfolded(vector["params"]))
        want = vector.get("want_0_8", vector["want"]) if profile == "0.8" else vector["want"]
        assert kind_of(era, frame, sender, profile=profile) == want
        if want == "ok":
            message = mcp.CancellationWireMessage.decode(era, sender, frame, profile=profile)
            assert (message.era, message.sender) == (era, sender)
            line = message.encode()
            assert mcp.CancellationWireMessage.decode(era, sender, line, profile=profile) == message
            if "out" in vector:
                assert line == frame_with(vector["out"])

    def test_all_vectors_are_there(self) -> None:
        """The file was not cut."""
        assert len(VECTORS) == 46


class TestOrderOfChecks:
    """Of several mistakes in one frame the first in the ladder is named."""

    @pytest.mark.parametrize("era", [LEGACY, MODERN])
    @pytest.mark.parametrize(
        ("frame", "kind"),
        [
            (b"", "InvalidEnvelope"),
            (b"nonsense", "InvalidEnvelope"),
            (b"[]", "InvalidEnvelope"),
            (b"\xef\xbb\xbf{}", "InvalidEnvelope"),
            (b'[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]', "InvalidEnvelope"),
            (b'{"jsonrpc":"2.0","method":5}', "InvalidEnvelope"),
            (b'{"jsonrpc":"2.0"}', "InvalidEnvelope"),
            (b'{"method":"notifications/cancelled","params":{"requestId":1}}', "InvalidEnvelope"),
            (b'{"jsonrpc":"1.0","method":"notifications/cancelled","params":{"requestId":1}}', "InvalidEnvelope"),
            (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1},"x":1}', "InvalidEnvelope"),
            (frame_with('{"requestId":1,"x":"?"}').replace(b"?", b"\xff"), "InvalidEnvelope"),
            (frame_with('{"requestId":1,"?":0}').replace(b"?", b"\xff"), "InvalidEnvelope"),
            (b'{"jsonrpc":"2.0","id":null,"method":"x"}', "InvalidEnvelope"),
            (b'{"jsonrpc":"2.0","id":true,"method":"x"}', "InvalidEnvelope"),
            (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', "InvalidEnvelope"),
            (b'{"jsonrpc":"2.0","id":"' + b"a" * 255 + b'","method":"x"}', "InvalidEnvelope"),
            (b'{"jsonrpc":"2.0","id":1.0,"method":"x"}', "RequestIdPresent"),
            (b'{"jsonrpc":"2.0","id":0,"method":"x","params":5}', "RequestIdPresent"),
            (b'{"jsonrpc":"2.0","method":"notifications/cancelled ","params":{"requestId":1}}', "UnexpectedMethod"),
            (b'{"jsonrpc":"2.0","method":"","params":5}', "UnexpectedMethod"),
            (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":null}', "MissingParameters"),
            (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}', "InvalidParameters"),
            (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":false}', "InvalidParameters"),
        ],
    )  # fmt: skip
    def test_first_mistake_is_named(self, era, frame, kind):
        assert kind_of(era, frame) == kind

    def test_deep_nesting_is_an_error_like_any_other(self):
        """And no RecursionError."""
        deep = b"[" * 100_000 + b"]" * 100_000
        for frame in (deep, frame_with(deep.decode()), frame_with('{"requestId":1,"x":' + deep.decode() + "}")):
            assert kind_of(MODERN, frame) in ("InvalidEnvelope", "InvalidParameters")

    def test_method_is_part_of_the_error_where_it_is_the_mistake(self):
        """There only."""
        with pytest.raises(mcp.CancellationWireCodecError) as caught:
            mcp.CancellationWireMessage.decode(LEGACY, CLIENT, b'{"jsonrpc":"2.0","method":"$/cancel_request"}')
        assert caught.value.method == "$/cancel_request"
        assert caught.value.era is LEGACY
        with pytest.raises(mcp.CancellationWireCodecError) as caught:
            mcp.CancellationWireMessage.decode(MODERN, CLIENT, frame_with("{}"))
        assert caught.value.method is None

    @pytest.mark.parametrize("era", [LEGACY, MODERN])
    @pytest.mark.parametrize("params", ['{"requestId":1.5,"reason":"s3cr3t"}', '{"requestId":["s3cr3t"]}', '"s3cr3t"'])
    def test_peers_words_are_no_part_of_an_error(self, era, params):
        """Neither its reason nor its ids: they may go to a log that others read."""
        with pytest.raises(mcp.CancellationWireCodecError) as caught:
            mcp.CancellationWireMessage.decode(era, CLIENT, frame_with(params))
        error = caught.value
        assert "s3cr3t" not in f"{error} {error!r} {error.args}"
        assert error.__cause__ is error.__context__ is None

    def test_errors_are_compared_by_value(self):
        """They are classes of mistakes, not occurrences."""
        first = mcp.CancellationWireCodecError(mcp.CancellationErrorKind.MISSING_PARAMETERS, LEGACY)
        same = mcp.CancellationWireCodecError(mcp.CancellationErrorKind.MISSING_PARAMETERS, LEGACY)
        other = mcp.CancellationWireCodecError(mcp.CancellationErrorKind.MISSING_PARAMETERS, MODERN)
        assert first == same
        assert hash(first) == hash(same)
        assert first != other
        assert first != ValueError(*first.args)
        assert pickle.loads(pickle.dumps(first)) == first

    def test_misuse_is_no_codec_error(self):
        """An era is never guessed from its version, a profile never from its release."""
        with pytest.raises(TypeError, match="ProtocolEra"):
            mcp.CancellationWireMessage.decode("2024-11-05", CLIENT, frame_with('{"requestId":1}'))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="ProtocolEra"):
            mcp.CancellationWireMessage.decode("2024-11-05", CLIENT, b"")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="profiles"):
            mcp.CancellationWireMessage.decode(LEGACY, CLIENT, frame_with('{"requestId":1}'), profile="1")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="profiles"):
            mcp.CancellationWireMessage.decode(LEGACY, CLIENT, b"", profile="1")  # type: ignore[arg-type]


class TestPayloads:
    def test_typed_members_are_read(self):
        """The snippet of the contract."""
        frame = frame_with('{"requestId":7,"reason":"user"}')
        message = mcp.CancellationWireMessage.decode(LEGACY, CLIENT, frame)
        assert isinstance(message, mcp.Legacy2024)
        assert message == mcp.Legacy2024(CLIENT, mcp.CancelledParams(7, "user"))
        modern = mcp.CancellationWireMessage.decode(MODERN, SERVER, frame)
        assert isinstance(modern, mcp.Modern2026)
        assert (modern.params.request_id, modern.params.reason, modern.params.meta) == (7, "user", None)
        assert modern.params.additional == {}

    def test_extension_is_kept_and_has_no_meaning(self):
        """Whatever it is called, in whatever spelling."""
        params = '{"z":{"b" : [ 1.50, 1e400 ]},"requestId":1,"additional":{"requestId":2},"awaitCleanup":null}'
        message = mcp.CancellationWireMessage.decode(MODERN, CLIENT, frame_with(params))
        assert message.params.request_id == 1
        assert isinstance(message, mcp.Modern2026)
        assert {name: bytes(raw) for name, raw in message.params.additional.items()} == {
            "z": b'{"b" : [ 1.50, 1e400 ]}',
            "additional": b'{"requestId":2}',
            "awaitCleanup": b"null",
        }

    def test_frame_over_lines_is_written_on_one(self):
        """A line break inside an extension would cut the line in two."""
        frame = frame_with('{\n"requestId":\n1,\n"x":{\n"y":1.0\n}\n}')
        message = mcp.CancellationWireMessage.decode(MODERN, CLIENT, frame)
        assert message.encode() == frame_with('{"requestId":1,"x":{"y":1.0}}')

    def test_parsed_frame_is_read_like_its_line(self):
        """A dialect has the frame already."""
        for params in ('{"requestId":7,"reason":"user"}', '{"requestId":1.0,"x":2}', "[1]", "null", "{}"):
            frame = NotificationFrame("notifications/cancelled", Raw(params.encode()))
            for era in (LEGACY, MODERN):
                assert kind_of(era, frame) == kind_of(era, frame_with(params))
        assert kind_of(LEGACY, NotificationFrame("notifications/cancelled")) == "MissingParameters"
        assert kind_of(LEGACY, NotificationFrame("other")) == "UnexpectedMethod"
        assert (
            kind_of(LEGACY, RequestFrame(1, "notifications/cancelled", Raw(b'{"requestId":1}'))) == "RequestIdPresent"
        )
        assert kind_of(LEGACY, RequestFrame(None, "notifications/cancelled")) == "InvalidEnvelope"

    @pytest.mark.parametrize("convert", [bytearray, memoryview, bytes.decode])
    def test_line_may_come_in_any_buffer(self, convert):
        assert kind_of(LEGACY, convert(frame_with('{"requestId":0}'))) == "ok"
        assert kind_of(LEGACY, convert(frame_with('{"requestId":7}'))) == "ok"

    @pytest.mark.parametrize("era", [LEGACY, MODERN])
    def test_member_that_stands_twice_counts_where_it_stands_last(self, era):
        """The looseness of the usual readers; `admit_frame` is there for the others."""
        for params, id in (('{"requestId":1,"requestId":2}', 2), ('{"requestId":null,"requestId":2}', 2)):
            message = mcp.CancellationWireMessage.decode(era, CLIENT, frame_with(params))
            assert message.params.request_id == id
        assert kind_of(era, frame_with('{"requestId":2,"requestId":null}')) == "InvalidParameters"

    @pytest.mark.parametrize(
        ("meta", "legacy", "modern"),
        [
            ("{}", "ok", "ok"),
            ('{"traceparent":"00-1","com.example/x":[1.0],"baggage":1}', "ok", "ok"),
            ('{"io.modelcontextprotocol/anything":1}', "InvalidParameters", "ok"),
            ('{"io.modelcontextprotocol/serverInfo":null}', "InvalidParameters", "ok"),
            (f'{{"{SUBSCRIPTION}":"a"}}', "InvalidParameters", "ok"),
            (f'{{"{SUBSCRIPTION}":1.5}}', "InvalidParameters", "InvalidParameters"),
            (f'{{"{SUBSCRIPTION}":{{}}}}', "InvalidParameters", "InvalidParameters"),
            ('{"":1,"a":1,"a.b-c_d":1,"x/":1,"a1-b.c2/n":1}', "ok", "ok"),
            ('{"a b":1}', "InvalidParameters", "InvalidParameters"),
            ('{"a-":1}', "InvalidParameters", "InvalidParameters"),
            ('{"1a/x":1}', "InvalidParameters", "InvalidParameters"),
            ('{"a-/x":1}', "InvalidParameters", "InvalidParameters"),
            ('{"a..b/x":1}', "InvalidParameters", "InvalidParameters"),
            ('{"/x":1}', "InvalidParameters", "InvalidParameters"),
            ('{"a/b/c":1}', "InvalidParameters", "InvalidParameters"),
            ('{"é":1}', "InvalidParameters", "InvalidParameters"),
            ('{"a\\n":1}', "InvalidParameters", "InvalidParameters"),
        ],
    )
    def test_metadata_is_read_by_grammar_and_era(self, meta, legacy, modern):
        params = frame_with(f'{{"requestId":1,"_meta":{meta}}}')
        assert kind_of(LEGACY, params, profile="0.8") == legacy
        assert kind_of(LEGACY, params, profile="0.5") == "InvalidParameters"
        assert kind_of(MODERN, params, profile="0.8") == modern
        assert kind_of(MODERN, params, profile="0.5") == modern

    @pytest.mark.parametrize(
        ("meta", "kind"),
        [
            ({f"k{at}": 1 for at in range(128)}, "ok"),
            ({f"k{at}": 1 for at in range(129)}, "InvalidParameters"),
            ({"k" * 512: 1}, "ok"),
            ({"k" * 513: 1}, "InvalidParameters"),
            ({"k": "v" * (16 * 1024 - 2)}, "ok"),
            ({"k": "v" * (16 * 1024 - 1)}, "InvalidParameters"),
        ],
        ids=["128 entries", "129 entries", "512 bytes of key", "513 bytes of key", "16 KiB of value", "a byte more"],
    )
    def test_metadata_is_bounded(self, meta, kind):
        assert kind_of(MODERN, frame_with(json.dumps({"requestId": 1, "_meta": meta}))) == kind

    def test_size_of_a_metadata_value_counts_without_what_it_does_not_need(self):
        """White space, and escapes of characters that need none."""
        text = "v" * (16 * 1024 - 100)
        for value in (f'[ {" " * 200} "{text}" ]', '"' + "\\u0076" * 10_000 + '"'):
            assert kind_of(MODERN, frame_with(f'{{"requestId":1,"_meta":{{"k":{value}}}}}')) == "ok"

    def test_long_string_id_is_measured_as_json(self):
        """256 bytes with quotes: a control character takes six of them, however the peer wrote it."""
        for id, kind in (
            ("\\n" * 127, "ok"),
            ("\\n" * 128, "InvalidParameters"),
            ("\\u0001" * 42, "ok"),
            ("\\u0001" * 43, "InvalidParameters"),
            ("\\u0061" * 254, "ok"),
            ("é" * 127, "ok"),
            ("é" * 128, "InvalidParameters"),
        ):
            assert kind_of(LEGACY, frame_with(f'{{"requestId":"{id}"}}')) == kind

    def test_long_integer_is_bounded_by_its_spelling(self):
        """4096 bytes of a number, exponents to ten thousand, in all eras."""
        for era in (LEGACY, MODERN):
            for id, kind in (
                ("1" * MAX_NUMBER_BYTES, "ok"),
                ("1" * (MAX_NUMBER_BYTES + 1), "InvalidParameters"),
                ("1" * 5000, "InvalidParameters"),
                ("1e10000", "ok"),
                ("1e-10001", "InvalidParameters"),
                ("10e-1", "ok"),
                ("1e-1", "InvalidParameters"),
                ("0e-2", "ok"),
                ("1.50e1", "ok"),
                ("1.55e1", "InvalidParameters"),
            ):
                assert kind_of(era, frame_with(f'{{"requestId":{id}}}')) == kind, id


class TestEncode:
    @pytest.mark.parametrize(
        "id", [True, None, 1.0, "a" * 255, "\ud800", 10**5000, [], b"1"], ids=lambda id: type(id).__name__
    )
    def test_id_that_is_none_cannot_be_written(self, id):
        for message in (
            mcp.Legacy2024(CLIENT, mcp.CancelledParams(id)),
            mcp.Modern2026(CLIENT, mcp.FinalCancelledNotificationParams(id)),
        ):
            with pytest.raises(mcp.CancellationWireCodecError) as caught:
                message.encode()
            assert caught.value == mcp.CancellationWireCodecError(mcp.CancellationErrorKind.ENCODE_FAILURE, message.era)

    @pytest.mark.parametrize(
        "changes",
        [
            {"reason": 5},
            {"reason": "\udc00"},
            {"meta": {"-bad/x": Raw(b"1")}},
            {"meta": {"x": object()}},
            {"meta": [1]},
            {"additional": {"reason": Raw(b'"other"')}},
            {"additional": {"requestId": Raw(b"2")}},
            {"additional": {"_meta": Raw(b"{}")}},
            {"additional": {"x": object()}},
            {"additional": {"x": Raw(b"\n{")}},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_value_that_is_not_of_the_wire_cannot_be_written(self, changes):
        """A member of its own among the additional ones would override the real one on its way."""
        message = mcp.Modern2026(CLIENT, mcp.FinalCancelledNotificationParams(1, **changes))
        with pytest.raises(mcp.CancellationWireCodecError) as caught:
            message.encode()
        assert caught.value.kind == "EncodeFailure"

    def test_metadata_against_the_era_is_refused_on_the_way_out_too(self):
        """As `decode` would, under the profile of the message."""
        final_only = {SUBSCRIPTION: Raw(b'"l2"')}
        legacy = mcp.CancelledParams(1, meta={"a": Raw(b"1")})
        assert mcp.Legacy2024(CLIENT, legacy, "0.8").encode() == frame_with('{"_meta":{"a":1},"requestId":1}')
        server = mcp.FinalCancelledNotificationParams("l1", meta=final_only)
        assert mcp.Modern2026(SERVER, server).encode()
        assert mcp.Modern2026(CLIENT, server, "0.8").encode()
        for message in (
            mcp.Legacy2024(CLIENT, legacy),
            mcp.Legacy2024(CLIENT, mcp.CancelledParams(1, meta=final_only), "0.8"),
            mcp.Modern2026(SERVER, server, "0.8"),
            mcp.Modern2026(CLIENT, mcp.FinalCancelledNotificationParams(1, meta={SUBSCRIPTION: Raw(b"true")})),
        ):
            with pytest.raises(mcp.CancellationWireCodecError) as caught:
                message.encode()
            assert caught.value.kind == "InvalidParameters"

    def test_members_are_sorted_and_absent_ones_left_out(self):
        """Golden files can be shared; nothing is stamped on."""
        params = mcp.FinalCancelledNotificationParams(
            mcp.SpelledInteger("1e0"), "x", {}, {"a": Raw(b"1"), "z": Raw(b"2"), "réal": Raw(b"3")}
        )
        assert mcp.Modern2026(CLIENT, params).encode() == frame_with(
            '{"_meta":{},"a":1,"reason":"x","requestId":1e0,"réal":3,"z":2}'
        )
        assert mcp.Legacy2024(SERVER, mcp.CancelledParams(-1)).encode() == frame_with('{"requestId":-1}')

    def test_message_of_no_era_is_not_written(self):
        with pytest.raises(NotImplementedError):
            mcp.CancellationWireMessage(CLIENT, mcp.CancelledParams(1)).encode()

    def test_messages_cannot_be_changed(self):
        """They are values."""
        message = mcp.Legacy2024(CLIENT, mcp.CancelledParams(1))
        with pytest.raises(AttributeError):
            message.sender = SERVER  # type: ignore[misc]
        assert msgspec.structs.replace(message, sender=SERVER).sender is SERVER


@pytest.mark.slow
def test_usual_cancel_costs_at_most_three_times_its_bare_decoding():
    """Measured side by side, in short runs that take turns, so that a busy machine slows both."""
    frame = frame_with('{"requestId":7,"reason":"user"}')
    decode, bare = mcp.CancellationWireMessage.decode, msgspec.json.decode

    def seconds(work: Any) -> float:
        began = time.perf_counter()
        for _ in range(2000):
            work()
        return time.perf_counter() - began

    for era in (LEGACY, MODERN):
        ratios = [
            seconds(lambda era=era: decode(era, CLIENT, frame)) / seconds(lambda: bare(frame, type=_UsualFrame))
            for _ in range(50)
        ]
        assert statistics.median(ratios) <= 3
