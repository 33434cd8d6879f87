"""Error codes that MCP 2026-07-28 adds to JSON-RPC, and the errors that carry them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from acprt.errors import RpcError

__all__ = ["McpErrorCode", "header_mismatch", "missing_client_capability", "unsupported_protocol_version"]


class McpErrorCode(IntEnum):
    """What the specification has taken of its own band, -32020 to -32099."""

    HEADER_MISMATCH = -32020
    MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
    UNSUPPORTED_PROTOCOL_VERSION = -32022


def header_mismatch(data: Any = None) -> RpcError:
    """-32020: headers of an HTTP request contradict its body."""
    return RpcError(McpErrorCode.HEADER_MISMATCH, "Header mismatch", data)


def missing_client_capability(required: Mapping[str, Any]) -> RpcError:
    """-32021 with `data` `{"requiredCapabilities": …}`: the request needs what its client did not declare."""
    return RpcError(
        McpErrorCode.MISSING_REQUIRED_CLIENT_CAPABILITY,
        "Missing required client capability",
        {"requiredCapabilities": dict(required)},
    )


def unsupported_protocol_version(requested: str | None, supported: Sequence[str]) -> RpcError:
    """-32022 with `data` `{"supported": […], "requested": …}`; `requested` is None where none could be read."""
    data: dict[str, Any] = {"supported": list(supported)}
    if requested is not None:
        data["requested"] = requested
    return RpcError(McpErrorCode.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)
