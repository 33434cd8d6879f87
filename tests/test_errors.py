"""`RpcError` and its family: constructors, comparison, and a text that is short, complete enough and keeps secrets."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import acprt
from acprt.errors import EndFacts, mask_secrets
from acprt.wire.frames import ResponseFrame, encode_error, parse

CONSTRUCTORS = [
    (acprt.RpcError.parse_error, -32700, "Parse error"),
    (acprt.RpcError.invalid_request, -32600, "Invalid request"),
    (acprt.RpcError.method_not_found, -32601, "Method not found"),
    (acprt.RpcError.invalid_params, -32602, "Invalid params"),
    (acprt.RpcError.internal_error, -32603, "Internal error"),
    (acprt.RpcError.request_cancelled, -32800, "Request cancelled"),
    (acprt.RpcError.auth_required, -32000, "Authentication required"),
    (acprt.RpcError.resource_not_found, -32002, "Resource not found"),
]


def nested(depth: int) -> Any:
    value: Any = "core"
    for _ in range(depth):
        value = [value]
    return value


class TestConstructors:
    """One for each code that has a meaning."""

    @pytest.mark.parametrize(
        ("make", "code", "message"), CONSTRUCTORS, ids=lambda value: getattr(value, "__name__", "")
    )
    def test_code_and_message(self, make, code, message):
        """ER-06."""
        error = make()
        assert (error.code, error.message, error.data) == (code, message, None)

    def test_codes_are_integers_with_names(self):
        """ER-06."""
        assert {code.value for code in acprt.ErrorCode} == {code for _, code, _ in CONSTRUCTORS}
        assert isinstance(acprt.ErrorCode.REQUEST_CANCELLED, int)

    def test_data_is_given_along(self):
        """UN-01: an unknown method is named by its bare name, a missing resource by its uri."""
        assert acprt.RpcError.method_not_found("x/y").data == "x/y"
        assert acprt.RpcError.resource_not_found("file:///a").data == {"uri": "file:///a"}
        assert acprt.RpcError.internal_error({"reason": "r"}).data == {"reason": "r"}

    @pytest.mark.parametrize("code", [0, 7, -1, -32099, 2**40])
    def test_any_integer_is_a_code(self, code):
        """ER-06: and comes back from the wire as it was."""
        error = acprt.RpcError(code, "m", [1])
        answer = parse(encode_error(1, error))
        assert isinstance(answer, ResponseFrame)
        assert answer.error == error

    def test_errors_with_equal_parts_are_equal(self):
        """ER-06."""
        assert acprt.RpcError(1, "m", {"a": 1}) == acprt.RpcError(1, "m", {"a": 1})
        assert acprt.RpcError(1, "m") != acprt.RpcError(1, "n")
        assert acprt.RpcError(1, "m") != (1, "m", None)

    def test_an_error_survives_copying(self):
        """ER-06."""
        error = acprt.RpcError(1, "m", {"a": [1]})
        assert pickle.loads(pickle.dumps(error)) == error
        assert copy.copy(error) == error

    def test_only_the_travelling_kind_is_an_rpc_error(self):
        """DL-09, PY-23: programming errors of this process are never sent to a peer."""
        for kind in (acprt.DispatchLoopBlocked, acprt.AlreadyConsumed):
            assert issubclass(kind, RuntimeError)
            assert not issubclass(kind, acprt.RpcError)


class TestText:
    """What a user sees of an error."""

    def test_it_shows_code_message_and_data(self):
        """ER-05."""
        text = str(acprt.RpcError(-32603, "Internal error", {"details": {"cause": "no such model"}}))
        assert text == '[-32603] Internal error: {"details":{"cause":"no such model"}}'

    def test_it_does_without_data_and_without_a_message(self):
        """ER-05, RS-11."""
        assert str(acprt.RpcError(-1, "")) == "[-1] (no message)"

    def test_nested_data_is_shown_and_stays_complete(self):
        """ER-05: the excerpt is bounded, `data` is not cut."""
        data = {"a": {"b": ["x" * 10_000]}, "last": 1}
        error = acprt.RpcError(-32603, "Internal error", data)
        assert str(error).startswith('[-32603] Internal error: {"a":{"b":["xxx')
        assert len(str(error)) <= 2_000
        assert error.data == data

    def test_the_end_of_a_stderr_tail_is_shown(self):
        """DEC-21: the last lines say why a child died; the other data goes first."""
        tail = "".join(f"line {number}\n" for number in range(10_000)) + "panic: the reason\n"
        error = acprt.RpcError(
            -32603, "Incoming transport closed", {"method": "m", "exit_status": 3, "stderr_tail": tail}
        )
        text = str(error)
        assert len(text) <= 2_000
        assert '"exit_status":3' in text
        assert text.endswith("panic: the reason")
        assert error.data["stderr_tail"] == tail

    def test_a_short_stderr_tail_is_shown_whole(self):
        """DEC-21."""
        error = acprt.RpcError(-32603, "closed", {"stderr_tail": "one\ntwo\n"})
        assert str(error).endswith("stderr of the peer ends: one\ntwo")

    @pytest.mark.parametrize(
        "data",
        [
            "x" * 100_000,
            {"stderr_tail": "x" * 100_000, "more": "y" * 100_000},
            {"stderr_tail": 5},
            ["\ud800"],
            {1, 2},
            object(),
            float("nan"),
            b"bytes",
            nested(900),
            nested(200_000),
        ],
        ids=lambda data: type(data).__name__,
    )
    def test_any_data_has_a_text(self, data):
        """DEC-21: of at most 2,000 characters, also data that is no JSON."""
        error = acprt.RpcError(1, "m", data)
        assert str(error).startswith("[1] m")
        assert len(str(error)) <= 2_000
        assert repr(error).startswith("RpcError(1, 'm'")

    @given(
        message=st.text(max_size=5_000),
        data=st.none() | st.text(max_size=5_000) | st.dictionaries(st.sampled_from(["stderr_tail", "a"]), st.text()),
    )
    def test_no_text_is_longer_than_its_bound(self, message, data):
        """DEC-21."""
        assert len(str(acprt.RpcError(-32603, message, data))) <= 2_000


class TestMasking:
    """Secret-looking values do not reach logs."""

    @pytest.mark.parametrize(
        "text",
        [
            "API_KEY=hunter2",
            "export ANTHROPIC_API_KEY=hunter2 && agent",
            'OPENAI_API_KEY="hunter2"',
            '{"access_token":"hunter2"}',
            '{"accessToken": "hunter2", "a": 1}',
            "password: hunter2",
            "DB_PASSWORD_FILE=hunter2",
            "client-secret=hunter2;x",
            "--api-key=hunter2",
        ],
    )
    def test_the_value_after_a_secret_name_is_masked(self, text):
        """DEC-21: the name stays, so that one sees what was there."""
        assert "hunter2" not in mask_secrets(text)
        assert mask_secrets(text) == text.replace("hunter2", "***")

    def test_words_that_look_like_keys_are_masked(self):
        """DEC-21."""
        assert mask_secrets("invalid x-api-key sk-ant-api03-AbC_123") == "invalid x-api-key ***"

    @pytest.mark.parametrize(
        "text", ["the key is under the mat", "tokens used: ", "a=b", "monkey", "risk-averse-people"]
    )
    def test_other_text_is_left_alone(self, text):
        """DEC-21."""
        assert mask_secrets(text) == text

    @pytest.mark.parametrize(
        "error", [acprt.RpcError(1, "m", {"env": {"MY_API_KEY": "hunter2"}, "argv": "TOKEN=hunter2"})]
    )
    def test_secrets_in_data_are_masked_in_the_text_only(self, error):
        """DEC-21: `data` is what the program works with."""
        assert "hunter2" not in str(error)
        assert "hunter2" not in repr(error)
        assert error.data["env"] == {"MY_API_KEY": "hunter2"}

    def test_secrets_in_a_message_are_masked(self):
        """DEC-21."""
        error = acprt.RpcError(1, "cannot run agent --token=hunter2")
        assert "hunter2" not in str(error)
        assert "hunter2" not in repr(error)
        assert error.message.endswith("hunter2")

    def test_secrets_in_a_stderr_tail_are_masked(self):
        """DEC-21: also one whose name is cut off from the excerpt."""
        tail = "API_KEY=" + "hunter2" * 300 + "\nthe end\n"
        text = str(acprt.RpcError(1, "m", {"stderr_tail": tail}))
        assert "hunter2" not in text
        assert "the end" in text

    @pytest.mark.timeout(10)
    @pytest.mark.parametrize("pattern", ["A", "KEY", "KEY ", "TOKEN-", "a_key", "KEY=", "sk-", "SECRET:  "])
    def test_masking_takes_time_in_proportion(self, pattern):
        """DEC-21: a long base64 string costs milliseconds; with a backtracking search this test takes hours."""
        mask_secrets(pattern * (300_000 // len(pattern)))


class TestPredicate:
    """Whether an error says that the peer closed its side."""

    @pytest.mark.parametrize(
        ("error", "verdict"),
        [
            (acprt.RpcError(-32603, "Incoming transport closed", EndFacts(reason="incoming_transport_closed")), True),
            (acprt.RpcError(1, "", EndFacts(reason="incoming_transport_closed", method="m", exit_status=0)), True),
            (acprt.RpcError(-32603, "Incoming transport closed", EndFacts(reason="connection_closed")), False),
            (acprt.RpcError(-32603, "Incoming transport closed", {"reason": "incoming_transport_closed"}), False),
            (acprt.RpcError(-32603, "Incoming transport closed"), False),
            (acprt.RpcError(-32603, "Incoming transport closed", "incoming_transport_closed"), False),
            (OSError("incoming_transport_closed"), False),
            (None, False),
        ],
    )
    def test_only_the_reason_counts(self, error, verdict):
        """EO-03: of an error that was made here; a peer may say what it likes."""
        assert acprt.is_incoming_transport_closed(error) is verdict

    @pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
    def test_copy_says_the_same(self, again):
        """Whoever keeps an error and raises it later raises a copy."""
        error = acprt.RpcError(1, "", EndFacts(reason="incoming_transport_closed"))
        assert acprt.is_incoming_transport_closed(again(error))
        assert acprt.is_incoming_transport_closed(acprt.RpcError(error.code, error.message, error.data))
        assert again(error) == error


class TestMaskedWhole:
    """A secret is masked to its end, wherever the text is cut (DEC-21)."""

    @pytest.mark.parametrize(
        ("text", "masked"),
        [
            ("GITHUB_TOKEN='x y z' next", "GITHUB_TOKEN='***' next"),
            ('{"name":"OPENAI_API_KEY","value":"v3"}', '{"name":"OPENAI_API_KEY","value":"***"}'),
            ('{"Authorization":"Bearer v4"}', '{"Authorization":"***"}'),
            (r"{\"api_key\":\"abc\"}", r"{\"api_key\":\"***\"}"),
            ("agent --api-token xyz --verbose", "agent --api-token *** --verbose"),
            ("nothing to hide: value=3", "nothing to hide: value=3"),
            ('{"token_count":{"total":3},"key": [1]}', '{"token_count":{"total":3},"key": [1]}'),
            ('{"inputTokens": 12, "password": "x y"}', '{"inputTokens": 12, "password": "***"}'),
            ("TOKEN=12345 next", "TOKEN=*** next"),
        ],
    )
    def test_value_forms(self, text, masked):
        """Quoted values, protocol environments, headers, JSON inside JSON."""
        assert mask_secrets(text) == masked

    def test_long_secret_at_the_end_of_stderr(self):
        """The tail is masked before it is cut."""
        error = acprt.RpcError(-32603, "x", {"stderr_tail": "API_KEY=" + "S" * 50_000})
        assert "SSS" not in str(error)
        assert str(error).endswith("stderr of the peer ends: API_KEY=***")
