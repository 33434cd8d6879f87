"""What users were promised of MCP: the snippet of the contract runs as written, and every name of it is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import acprt
from acprt import mcp
from tests.mcp.scripted import LEGACY

ROOT = Path(__file__).resolve().parents[2]

SNIPPET = r"""
from acprt import mcp

frame = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"user"}}'
message = mcp.CancellationWireMessage.decode(mcp.ProtocolEra.LEGACY_2024, mcp.CancellationSender.CLIENT, frame)
message.era, message.sender, message.params.request_id, message.params.reason
message.encode()                                   # -> bytes of an ID-free notification
"""

THEN = """
print(message.era.value, message.sender.value, message.params.request_id, message.params.reason)
print(message.encode().decode())
"""


def test_snippet_runs_as_written() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SNIPPET + THEN], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "2024-11-05 client 7 user",
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"user","requestId":7}}',
    ]


def test_kinds_of_errors_are_the_six() -> None:
    """By their names on other implementations."""
    assert [str(kind) for kind in mcp.CancellationErrorKind] == [
        "InvalidEnvelope",
        "RequestIdPresent",
        "UnexpectedMethod",
        "MissingParameters",
        "InvalidParameters",
        "EncodeFailure",
    ]


def test_dialects_are_given_to_an_endpoint() -> None:
    """Of one era, or of the one that the opening tells."""
    fixed = acprt.Endpoint("server", dialect=mcp.dialect(mcp.ProtocolEra.LEGACY_2024, side="server"))
    assert fixed.dialect.for_connection().name == "mcp 2024-11-05"
    assert acprt.Endpoint("server", dialect=mcp.negotiated(side="server")).dialect.for_connection().name == "mcp"
    assert mcp.StdioEraClassifier(mcp.EraPolicy.LEGACY_ONLY).era is LEGACY


def test_every_name_of_the_face_is_there() -> None:
    """And documented where it lives."""
    for name in mcp.__all__:
        found = getattr(mcp, name)
        assert found is not None
    assert {"McpErrorCode", "end_subscription", "SubscriptionClosed", "negotiate"} <= set(mcp.__all__)
    assert [code.value for code in mcp.McpErrorCode] == [-32020, -32021, -32022]
    assert mcp.missing_client_capability({"sampling": {}}).data == {"requiredCapabilities": {"sampling": {}}}
    assert mcp.header_mismatch().code == -32020


def test_wing_brings_no_other_wing() -> None:
    """Importing MCP imports no ACP, and importing acprt no MCP."""
    program = "import sys; from acprt import mcp; print([name for name in sys.modules if name.startswith('acprt.acp')])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
