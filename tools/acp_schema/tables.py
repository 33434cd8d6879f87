"""What the schemas of the protocol leave to their reader: names, defaults, members where null is not absence."""

from __future__ import annotations

Members = tuple[str, ...] | None

THREE_STATE: dict[str, dict[str, Members]] = {
    "v1": {
        "SessionInfoUpdate": ("title", "updatedAt"),
        "CompactionUpdate": ("summary", "error"),
        "SubagentUpdate": None,
        "SessionMessage": None,
    },
    "v2": {
        "ToolCallUpdate": None,
        "UserMessage": None,
        "AgentMessage": None,
        "AgentThought": None,
        "TerminalUpdate": None,
        "SessionInfoUpdate": None,
        "CompactionUpdate": None,
        "UsageUpdate": ("cost",),
        "SubagentUpdate": None,
        "SessionMessage": None,
    },
}
"""Version -> class -> members where absence keeps and null clears; None: all but the required. `_meta` is with them."""

VARIANT_NAMES = {
    ("DiffChange", "add"): "DiffAdd",
    ("DiffChange", "delete"): "DiffDelete",
    ("DiffChange", "modify"): "DiffModify",
    ("DiffChange", "move"): "DiffMove",
    ("DiffChange", "copy"): "DiffCopy",
    ("RequestPermissionOutcome", "cancelled"): "CancelledPermissionOutcome",
}
"""(union, tag) -> class, for variants that share a payload or have none, where the tag alone names too little."""

UNTAGGED_NAMES = {"ToolCallUpdate": "ToolCallPatch", "StateUpdate": "SessionState"}
"""Payloads that stand in a tagged union and elsewhere without a tag -> the name of the untagged class.

The tagged class keeps the schema's name, being built and matched most, and derives from the untagged one.
"""

MERGED: dict[str, str | None] = {
    "CreateElicitationRequest": "mode",
    "CreateElicitationResponse": "action",
    "SetSessionConfigOptionRequest": "type",
    "MessageMcpResponse": None,
    "StateUpdate": "state",
    "IdleStateUpdate": None,
}
"""Unions flattened into their parent, of which one class is made -> the member that tells the variants apart."""

MERGED_TYPES: dict[tuple[str, str, str], tuple[str, str | None]] = {
    ("v1", "SetSessionConfigOptionRequest", "type"): ('DefaultOnError[Literal["boolean"] | UnsetType]', "UNSET"),
    ("v1", "SetSessionConfigOptionRequest", "value"): ("bool | str", None),
    ("v2", "SetSessionConfigOptionRequest", "value"): ("Any", None),
    ("v1", "CreateElicitationRequest", "sessionId"): ("DefaultOnError[SessionId | None]", "None"),
    ("v1", "CreateElicitationRequest", "requestId"): ("DefaultOnError[RequestId | UnsetType]", "UNSET"),
    ("v2", "CreateElicitationRequest", "requestedSchema"): ("Tagged[ElicitationSchema] | None", "None"),
    ("v1", "MessageMcpResponse", "error"): ("DefaultOnError[McpError | UnsetType]", "UNSET"),
    ("v2", "MessageMcpResponse", "error"): ("DefaultOnError[McpError | UnsetType]", "UNSET"),
}
"""(version, class, wire member) -> type and default, where variants of a merged class disagree."""

RULES = {
    ("v1", "CreateElicitationRequest"): "ElicitationRules",
    ("v2", "CreateElicitationRequest"): "ExclusiveElicitationRules",
    ("v1", "CreateElicitationResponse"): "VariantRules",
    ("v2", "CreateElicitationResponse"): "VariantRules",
    ("v1", "StateUpdate"): "VariantRules",
    ("v2", "StateUpdate"): "VariantRules",
    ("v1", "SetSessionConfigOptionRequest"): "BooleanValueRules",
    ("v2", "SetSessionConfigOptionRequest"): "TypedValueRules",
    ("v1", "MessageMcpResponse"): "McpAnswerRules",
    ("v2", "MessageMcpResponse"): "McpAnswerRules",
    ("v1", "RequestPermissionRequest"): "ToolCallRules",
    ("v2", "ToolCallPermissionSubject"): "ToolCallRules",
    ("v1", "SessionConfigSelect"): "OptionRules",
    ("v2", "SessionConfigSelect"): "OptionRules",
}
"""(version, class) -> the class of `acprt.acp.schema.rules` that it derives from."""

DEFAULTS = {("v1", "ToolCall", "kind"): '"other"', ("v1", "ToolCall", "status"): '"pending"'}
"""(version, class, wire member) -> a default that the schema does not state, as the reference implementation has it."""

OPEN_BESIDES = {("v1", "SessionUpdate")}
"""Unions that the schema closes and we do not: an unknown update must not end a stream."""

ALWAYS_WRITTEN = {"ElicitationSchema"}
"""Classes whose constant `type` is made a tag: a tag is written even where it could be left out."""

KEPT_AS_OBJECTS = {"McpError": "dict[str, Any]"}
"""Definitions that keep members of any name -> their type."""

ELEMENTS = {"SessionConfigSelectOptions": "SessionConfigSelectEntry"}
"""Unions of two kinds of array -> the name of the union of their elements."""

INNER_NAMES = {"method": "inner_method"}
"""Members that would hide an attribute of a message: `.method` is the wire method (DEC-4)."""

EXTENSIONS = ("ExtRequest", "ExtResponse", "ExtNotification")

ROUTING: dict[str, str | None] = {
    "ClientRequest": "ExtRequest",
    "ClientNotification": "ExtNotification",
    "ClientResponse": "ExtResponse",
    "AgentRequest": "ExtRequest",
    "AgentNotification": "ExtNotification",
    "AgentResponse": "ExtResponse",
    "ProtocolLevelNotification": None,
    "ProxyRequest": None,
    "ProxyNotification": None,
    "ProxyResponse": None,
}
"""Routing union -> the class for messages of extensions."""

INTEGERS = {"uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "int32": "Int32", "int64": "Int64"}
UPPER_BOUNDS = {"uint16": 2**16 - 1, "uint32": 2**32 - 1}
