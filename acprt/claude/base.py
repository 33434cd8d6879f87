"""What messages of the stream are made of: the Struct bases, and what a message keeps of the line that it came from.

The stream grows members with every release of its peer, so nothing may be lost: a message keeps its line, and is
written again from it. This room knows no kind of message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, TypeVar, dataclass_transform

import msgspec

from acprt.wire.payloads import Decoder

__all__ = [
    "KINDS",
    "OPEN",
    "Lenient",
    "Message",
    "Number",
    "Open",
    "Part",
    "SystemMessage",
    "UnknownMessage",
    "UnknownPart",
]

T = TypeVar("T")

Number: TypeAlias = int | float
"""A JSON number that is an integer in what was seen, and need not stay one."""


class _Line:
    """Holds the line outside of the fields: a slot costs a decode 8 ns, a `__dict__` 280 (claude_decode)."""

    __slots__ = ("_line",)

    _line: bytes | msgspec.Raw


class Lenient:
    """What is decoded by the runtime and may have malformed members: those count as absent, if they can be."""

    __slots__ = ()

    @staticmethod
    def __acprt_decoder__(type_: Any) -> Decoder:
        """The decoder of `type_`, with a lenient second attempt."""
        from acprt.claude.decoding import decode_leniently  # decoding stands above this room

        return Decoder(msgspec.json.Decoder(type_).decode, lambda text: decode_leniently(type_, text))


class _PartMeta(msgspec.StructMeta):
    """Keyword-only throughout, which msgspec does not inherit; wire names are the field's own."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, tag: str | None = None
    ) -> _PartMeta:
        return super().__new__(
            mcls,
            name,
            bases,
            namespace,
            kw_only=True,
            omit_defaults=True,
            repr_omit_defaults=True,
            gc=False,  # decoded trees have no cycles
            tag=tag,
            tag_field=None if tag is None else "type",
        )


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Part(Lenient, msgspec.Struct, metaclass=_PartMeta):
    """Base of what stands inside messages. `tag` is its `type` member, where it has one."""

    if TYPE_CHECKING:  # the class keyword once more: type checkers look for it here, not in the metaclass

        def __init_subclass__(cls, *, tag: str | None = None) -> None: ...


KINDS: dict[tuple[str, str | None], type[Message]] = {}
"""Every message class by `type` and, among system messages, `subtype`; filled as they are defined."""


class _MessageMeta(msgspec.StructMeta):
    """Gives a message class its discriminators and enters it in `KINDS`."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        type: str | None = None,
        subtype: str | None = None,
    ) -> _MessageMeta:
        tag = subtype or type
        cls: Any = super().__new__(
            mcls,
            name,
            bases,
            namespace,
            kw_only=True,
            omit_defaults=True,
            repr_omit_defaults=True,
            gc=False,
            tag=tag,
            tag_field=None if tag is None else "subtype" if subtype else "type",
        )
        if tag is not None:
            cls.type = "system" if subtype else type
            if subtype:
                cls.subtype = subtype
            KINDS[cls.type, subtype] = cls
        return cls  # type: ignore[no-any-return]  # a class of this metaclass, made Any to be given attributes


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class Message(_Line, msgspec.Struct, metaclass=_MessageMeta):
    """Base of every frame of the stream. Compare and copy it as any Struct; `claude.encode` writes it again."""

    type: ClassVar[str]
    """The top-level `type` on the wire."""

    if TYPE_CHECKING:

        def __init_subclass__(cls, *, type: str | None = None, subtype: str | None = None) -> None: ...

    @property
    def line(self) -> bytes | None:
        """The JSON that this message was decoded from; None for one made here."""
        line = getattr(self, "_line", None)
        return None if line is None else bytes(line)

    @property
    def raw(self) -> dict[str, Any]:
        """Every member as it came, unknown ones included; `{}` for a message made here."""
        line = self.line
        members: dict[str, Any] = {} if line is None else msgspec.json.decode(line)
        return members

    @property
    def extras(self) -> dict[str, Any]:
        """The members that this class has no field for."""
        known = {"type", "subtype", *self.__struct_encode_fields__}
        return {name: value for name, value in self.raw.items() if name not in known}

    def __copy__(self) -> Any:
        """A copy with the same line, which msgspec's own would leave behind."""
        copy = msgspec.structs.replace(self)
        if (line := getattr(self, "_line", None)) is not None:
            copy._line = line
        return copy

    def __reduce__(self) -> Any:
        """Pickled, and copied in depth, with its line."""
        return _restored, (self.__class__, msgspec.structs.asdict(self), self.line)


def _restored(cls: type[Message], values: dict[str, Any], line: bytes | None) -> Message:
    message = cls(**values)
    if line is not None:
        message._line = line
    return message


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class SystemMessage(Message):
    """Base of the frames of type `system`, told apart by `subtype`."""

    subtype: ClassVar[str]

    uuid: str | None = None
    session_id: str = ""


class UnknownMessage(Message):
    """A kind that this version does not name, or one whose required members are not there: `raw` has it whole.

    It never ends a session: a later release may add kinds at any time, and the rule upstream is to ignore them.
    """

    type: str = ""  # type: ignore[misc]  # of the frame here, of the class elsewhere: read alike
    """The top-level `type`; empty when there is none."""
    subtype: str | None = None
    """The `subtype`, where there is one."""


class UnknownPart(dict[str, Any]):
    """A content block, or another tagged part, that this version does not name: the JSON object as it came."""

    __slots__ = ()

    @property
    def type(self) -> str:
        """Its `type`; empty when it has none."""
        tag = self.get("type")
        return tag if isinstance(tag, str) else ""


OPEN = "open"
"""Says that an unknown variant arrives as `UnknownPart`; only the second attempt of the decoder looks at it."""

if TYPE_CHECKING:
    Open: TypeAlias = T | UnknownPart
else:
    Open = Annotated[T, OPEN]  # msgspec has no union of tagged structs and a dict
