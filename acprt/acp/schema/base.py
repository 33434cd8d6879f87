"""What the generated schema classes are made of: Struct bases, `Unknown`, and the marks that the schema's texts carry.

A mark changes nothing for a well-formed value, and costs nothing: only the lenient second attempt of
`acprt.acp.schema.decoding` looks at marks. This room knows no message of the protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeAlias, TypeVar, dataclass_transform

import msgspec
from msgspec import UNSET, UnsetType, field

from acprt.runtime import messages
from acprt.runtime.messages import method_of
from acprt.wire.payloads import Decoder

__all__ = [
    "DEFAULT_ON_ERROR",
    "DEFAULT_ON_NULL",
    "OPEN",
    "SKIP_INVALID",
    "DefaultOnError",
    "DefaultOnNull",
    "Int32",
    "Int64",
    "MetaStruct",
    "Metadata",
    "Never",
    "Notification",
    "OrUnknown",
    "PatchStruct",
    "Request",
    "Siblings",
    "SkipInvalid",
    "Struct",
    "Tagged",
    "UInt16",
    "UInt32",
    "UInt64",
    "Unknown",
    "Untagged",
]

T = TypeVar("T")
R = TypeVar("R")

Metadata: TypeAlias = dict[str, Any]
"""`_meta`: keys that the protocol gives no meaning, except `traceparent`, `tracestate` and `baggage`."""

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
UInt16: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**16 - 1)]
UInt32: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
UInt64: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
"""No upper bound: msgspec holds bounds in 64 signed bits, and reads larger integers exactly."""


class Unknown(dict[str, Any]):
    """A variant that this version of the schema does not name: the JSON object as it came, with its tag.

    It is the dict of all wire members, so it is encoded as it was received. `tag_field` is the wire name of the
    member that tells variants apart, `tag` its value: `Unknown("type", {"type": "_video", "url": "…"})`. A tag with
    a leading `_` is an extension's, any other is from a later protocol; neither may be read as a known variant.
    """

    __slots__ = ("tag_field",)

    def __init__(self, tag_field: str, raw: Mapping[str, Any]) -> None:
        super().__init__(raw)
        self.tag_field = tag_field

    @property
    def tag(self) -> str:
        """The tag that is not known."""
        tag: str = self[self.tag_field]
        return tag

    @property
    def raw(self) -> dict[str, Any]:
        """All wire members, the tag included: this object itself."""
        return self

    def __repr__(self) -> str:
        return f"Unknown({self.tag_field!r}, {super().__repr__()})"


class _Mark:
    """Says how the lenient decoder treats the annotated value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


DEFAULT_ON_ERROR = _Mark("DEFAULT_ON_ERROR")
DEFAULT_ON_NULL = _Mark("DEFAULT_ON_NULL")
SKIP_INVALID = _Mark("SKIP_INVALID")
OPEN = _Mark("OPEN")

DefaultOnError: TypeAlias = Annotated[T, DEFAULT_ON_ERROR]
"""A malformed value counts as the field's default (an empty list where there is none); the object survives."""

DefaultOnNull: TypeAlias = Annotated[T, DEFAULT_ON_NULL]
"""`null` counts as the empty list or map; anything else malformed is an error."""

SkipInvalid: TypeAlias = Annotated[T, SKIP_INVALID]
"""Malformed elements of the list are dropped, the others kept."""

if TYPE_CHECKING:
    OrUnknown: TypeAlias = T | Unknown
else:
    OrUnknown = Annotated[T, OPEN]  # msgspec has no union with a class of ours: the lenient decoder puts it there
"""An open union: a variant with an unknown tag arrives as `Unknown`."""


class Siblings:
    """Mark of an open union: the members, all strings, that even an unknown variant must have."""

    __slots__ = ("names",)

    def __init__(self, *names: str) -> None:
        self.names = names


class _PayloadMeta(msgspec.StructMeta):
    """msgspec does not inherit `kw_only`: every payload class is keyword-only without saying so."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        tag_field: str | None = None,
        tag: str | None = None,
    ) -> _PayloadMeta:
        return super().__new__(
            mcls,
            name,
            bases,
            namespace,
            kw_only=True,
            rename="camel",
            omit_defaults=True,
            repr_omit_defaults=True,
            gc=False,  # decoded trees have no cycles, and a session keeps many of them (bench: full collections)
            tag_field=tag_field,
            tag=tag,
        )


class _Schema:
    """What payloads and messages share."""

    __slots__ = ()

    __acprt_unstable__: ClassVar[bool] = False
    """Whether the class is missing from the stable schema: only for peers that opted in."""

    __acprt_forgives_tag__: ClassVar[bool] = False
    """Whether a wrong tag counts as the right one: the tag has a default, and is default-on-error."""

    __acprt_open_tag__: ClassVar[str | None] = None
    """Wire name of the member whose unknown values make an object `Unknown`, for classes that are their own union."""

    @staticmethod
    def __acprt_decoder__(type_: Any) -> Decoder:
        """The decoder of `type_`, a type made of schema classes, with the leniency that the schema asks for."""
        from acprt.acp.schema.decoding import lenient_decoder  # decoding stands above this room

        return lenient_decoder(type_)


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Struct(_Schema, msgspec.Struct, metaclass=_PayloadMeta):
    """Base of payloads: snake_case here, camelCase on the wire, keyword-only, defaults omitted."""

    if TYPE_CHECKING:  # the class keywords once more: type checkers look for them here, not in the metaclass

        def __init_subclass__(cls, *, tag_field: str | None = None, tag: str | None = None) -> None: ...


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class MetaStruct(Struct):
    """A payload that carries `_meta`."""

    meta: DefaultOnError[Metadata | None] = field(name="_meta", default=None)


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class PatchStruct(Struct):
    """A payload that changes what was told before: an absent member keeps, null clears, a value replaces."""

    meta: DefaultOnError[Metadata | UnsetType | None] = field(name="_meta", default=UNSET)


class Never(Struct, tag_field="type", tag="\0"):
    """A variant that does not exist, beside the only one that does: see `Tagged`."""


if TYPE_CHECKING:
    Tagged: TypeAlias = Annotated[T, "tagged"]
else:

    class Tagged:
        """A tagged class by itself, which must come with its tag: msgspec asks for a tag in a union only."""

        def __class_getitem__(cls, only):
            return only | Never


class Untagged(_Schema):
    """Base of unions that no tag tells apart: annotated with it, a member takes any of its subclasses.

    `variants` are the names of the classes in the module of the union; the first one that fits is taken. With
    `open_tag` an object whose tag is none of theirs is `Unknown`.
    """

    __slots__ = ()

    __acprt_variants__: ClassVar[tuple[str, ...]] = ()
    __acprt_union_tag__: ClassVar[str | None] = None

    def __init_subclass__(cls, *, variants: tuple[str, ...] = (), open_tag: str | None = None) -> None:
        if variants:  # the union itself, not one of its variants
            cls.__acprt_variants__ = variants
            cls.__acprt_union_tag__ = open_tag


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Request(_Schema, messages.Request[R], Generic[R], gc=False, repr_omit_defaults=True):
    """Base of the protocol's requests."""

    meta: DefaultOnError[Metadata | None] = field(name="_meta", default=None)

    @property
    def method(self) -> str:
        """The wire method."""
        return method_of(self)

    def encode_params(self) -> bytes:
        """The params as JSON text."""
        return msgspec.json.encode(self)


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Notification(_Schema, messages.Notification, gc=False, repr_omit_defaults=True):
    """Base of the protocol's notifications."""

    meta: DefaultOnError[Metadata | None] = field(name="_meta", default=None)

    @property
    def method(self) -> str:
        """The wire method."""
        return method_of(self)

    def encode_params(self) -> bytes:
        """The params as JSON text."""
        return msgspec.json.encode(self)
