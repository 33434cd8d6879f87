"""`_meta`: the names that MCP gives meaning to, the grammar of its keys, and how much of it is read.

Metadata is open: a key that nobody here knows is kept as the JSON it is. Nothing here adds a key to a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw

__all__ = [
    "CLIENT_CAPABILITIES",
    "CLIENT_INFO",
    "LOG_LEVEL",
    "MAX_META_ENTRIES",
    "MAX_META_KEY_BYTES",
    "MAX_META_VALUE_BYTES",
    "PROTOCOL_VERSION",
    "RESERVED_PREFIX",
    "SERVER_INFO",
    "SUBSCRIPTION_ID",
    "MetadataError",
    "check_metadata",
    "parse_metadata",
]

RESERVED_PREFIX: Final = "io.modelcontextprotocol/"
"""Of keys that came after 2024-11-05: the six below with 2026-07-28, others in between."""

PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"

MAX_META_ENTRIES: Final = 128
MAX_META_KEY_BYTES: Final = 512
MAX_META_VALUE_BYTES: Final = 16 * 1024
"""Of one value, written without white space and with no more escapes than JSON asks for."""

# An optional prefix of dot-separated labels and a slash, then a name that may be empty.
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')

_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


class MetadataError(ValueError):
    """A `_meta` that is refused: no object, too many entries, a key against the grammar, a value that is too large."""


def parse_metadata(raw: Raw | bytes) -> dict[str, Raw]:
    """The members of a raw `_meta`, each still raw. Raises MetadataError."""
    try:
        members = _decode_members(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        raise MetadataError("_meta is an object") from None
    check_metadata(members)
    return members


def check_metadata(members: Mapping[str, Raw]) -> None:
    """Raise MetadataError unless number, keys and sizes of the entries are legal."""
    if len(members) > MAX_META_ENTRIES:
        raise MetadataError(f"_meta has at most {MAX_META_ENTRIES} entries")
    for key, value in members.items():
        if len(key) > MAX_META_KEY_BYTES:  # a key within the grammar is ASCII
            raise MetadataError(f"a key of _meta has at most {MAX_META_KEY_BYTES} bytes")
        if _KEY.fullmatch(key) is None:
            raise MetadataError("a key of _meta is an optional prefix of labels and a slash, then a name")
        if len(value) > MAX_META_VALUE_BYTES and _canonical_size(bytes(value)) > MAX_META_VALUE_BYTES:
            raise MetadataError(f"a value of _meta has at most {MAX_META_VALUE_BYTES} bytes")


def _canonical_size(value: bytes) -> int:
    """How long a value is without the white space and the escapes that it does not need."""
    compact = msgspec.json.format(value, indent=-1)
    return len(_STRING.sub(lambda found: msgspec.json.encode(msgspec.json.decode(found[0])), compact))
