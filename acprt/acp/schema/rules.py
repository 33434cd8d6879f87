"""What must hold between the members of one class; the generated classes derive from these.

Where the schema flattens a union into its parent, one class stands for all variants, and its rules say which members
go together. A rule that is broken raises ValueError, which a decoder turns into its ValidationError. No rule does I/O
or looks beyond its own object.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from msgspec import UNSET

__all__ = [
    "BooleanValueRules",
    "ElicitationRules",
    "ExclusiveElicitationRules",
    "McpAnswerRules",
    "OptionRules",
    "ToolCallRules",
    "TypedValueRules",
    "VariantRules",
    "Variants",
]

Variants: TypeAlias = dict[str, tuple[str, ...]]


class VariantRules:
    """A member of one variant means nothing in another: there it is taken as absent."""

    __slots__ = ()

    __acprt_variant_tag__: ClassVar[str]
    """The member that tells the variants apart."""

    __acprt_variant_members__: ClassVar[Variants]
    """Its value for each known variant -> the members that only that one has."""

    def __post_init__(self) -> None:
        """Never raises."""
        variant = getattr(self, self.__acprt_variant_tag__)
        if variant in self.__acprt_variant_members__:  # an unknown one may have what it likes
            for other, members in self.__acprt_variant_members__.items():
                for name in members if other != variant else ():
                    setattr(self, name, None)


class ElicitationRules(VariantRules):
    """A form has its schema, a link its id and url; either belongs to a session or, failing that, to a request."""

    __slots__ = ()

    mode: Any
    requested_schema: Any
    elicitation_id: Any
    url: Any
    session_id: Any
    tool_call_id: Any
    request_id: Any

    def __post_init__(self) -> None:
        """Raises ValueError."""
        super().__post_init__()
        if self.session_id is not None:
            self.request_id = UNSET
        elif self.request_id is UNSET:
            raise ValueError("an elicitation has a `sessionId` or a `requestId`")
        else:
            self.tool_call_id = None
        if self.mode == "form" and self.requested_schema is None:
            raise ValueError("an elicitation by form has a `requestedSchema`")
        if self.mode == "url" and (self.elicitation_id is None or self.url is None):
            raise ValueError("an elicitation by url has an `elicitationId` and a `url`")


class ExclusiveElicitationRules(ElicitationRules):
    """The same, but naming both a session and a request is an error."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if self.session_id is not None and self.request_id is not UNSET:
            raise ValueError("an elicitation has either a `sessionId` or a `requestId`")
        super().__post_init__()


class BooleanValueRules:
    """`type: "boolean"` goes with a bool; beside a string a `type` means nothing."""

    __slots__ = ()

    type: Any
    value: Any

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if isinstance(self.value, bool):
            if self.type != "boolean":
                raise ValueError('a bool is set with `type` "boolean"')
        else:
            self.type = UNSET


class TypedValueRules:
    """`type: "boolean"` goes with a bool, `type: "id"` with a string, any other with anything."""

    __slots__ = ()

    type: Any
    value: Any

    def __post_init__(self) -> None:
        """Raises ValueError."""
        wanted = {"boolean": bool, "id": str}.get(self.type)
        if wanted is not None and not isinstance(self.value, wanted):
            raise ValueError(f'a value of `type` "{self.type}" is a {wanted.__name__}')


class McpAnswerRules:
    """An answer of an MCP server is a result or an error; a result beside an error counts.

    The error is the object as it came, for it may have members of any name; `code` and `message` it must have.
    """

    __slots__ = ()

    result: Any
    error: Any

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if self.result is not UNSET:
            self.error = UNSET
        elif self.error is UNSET:
            raise ValueError("an answer has a `result` or an `error`")
        else:
            code = self.error.get("code")
            if type(code) is not int or not -(2**31) <= code < 2**31 or type(self.error.get("message")) is not str:
                raise ValueError("an error has an integer `code` of 32 bits and a string `message`")


class ToolCallRules:
    """A tool call outside of a session update has no tag: one given with a tag is taken without it."""

    __slots__ = ()

    tool_call: Any

    def __post_init__(self) -> None:
        """Never raises."""
        cls: Any = type(self.tool_call)
        if cls.__struct_config__.tag is not None:
            untagged = next(base for base in cls.__mro__[1:] if base.__struct_config__.tag is None)
            members = {name: getattr(self.tool_call, name) for name in untagged.__struct_fields__}
            self.tool_call = untagged(**members)


class OptionRules:
    """Options are all grouped, or none is."""

    __slots__ = ()

    options: Any

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if len({type(option) for option in self.options}) > 1:
            raise ValueError("`options` are all options, or all groups of options")
