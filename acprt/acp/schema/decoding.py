"""Two-speed decoding: msgspec first, and only where it refuses, a rebuild that applies the leniency of the schema.

The first attempt is the plain typed decoder and costs what msgspec costs. The second one reads the JSON into builtin
values and builds the classes from their annotations: malformed values of marked members count as absent, malformed
elements of marked lists are dropped, and a variant with an unknown tag becomes `Unknown`, anywhere in the tree.
Everything else that is malformed stays an error. This room decodes; it never encodes and knows no message by name.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, UnsetType, ValidationError

from acprt.acp.schema.base import (
    DEFAULT_ON_ERROR,
    DEFAULT_ON_NULL,
    OPEN,
    SKIP_INVALID,
    Never,
    Siblings,
    Unknown,
    Untagged,
)
from acprt.acp.schema.rules import Variants
from acprt.wire.payloads import Decoder, decoder_for

__all__ = ["decode", "lenient_decoder"]

Build = Callable[[Any], Any]
"""Builtin values in, the typed value out; raises ValidationError."""

_read_any = msgspec.json.Decoder().decode


def lenient_decoder(type_: Any) -> Decoder:
    """The decoder of a type made of schema classes; the runtime uses it wherever such a type is declared.

    Raises TypeError or NameError for a type that cannot be decoded.
    """
    build: Build | None = None  # made at the first use: most types are always well-formed

    def decode_again(text: bytes) -> Any:
        nonlocal build
        build = build or _builder(type_)
        value = _read_any(text)
        if value is None and _takes_nothing(type_):
            value = {}  # a result without required members may come as null
        return build(value)

    return Decoder(msgspec.json.Decoder(type_, dec_hook=_build_untagged).decode, decode_again)


def decode(type_: Any, text: bytes | msgspec.Raw) -> Any:
    """`text` as `type_`, forgiving what the schema says must be forgiven.

    Raises msgspec.ValidationError for the wrong shape, msgspec.DecodeError for text that is not JSON.
    """
    decoder = decoder_for(type_)
    try:
        return decoder.decode(text)
    except ValidationError:
        if decoder.decode_again is None:  # nothing of the schema is in the type
            raise
        return decoder.decode_again(bytes(text))


def _takes_nothing(type_: Any) -> bool:
    is_class: bool = isinstance(type_, msgspec.StructMeta)
    return is_class and all(
        field.default is not NODEFAULT or field.default_factory is not NODEFAULT
        for field in msgspec.structs.fields(type_)
    )


# --- builders: one per annotation, made once ------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _builder(annotation: Any) -> Build:
    """How a value of `annotation` is built from builtins."""
    kind, marks = _unmarked(annotation)
    origin = get_origin(kind)
    if kind is Any:
        return lambda value: value
    if origin in (Union, types.UnionType):
        return _union(kind, marks)
    if origin is list:
        return _list(kind, marks, annotation)
    if origin is dict:
        return _map(kind)
    if isinstance(kind, msgspec.StructMeta):
        return _struct(kind)
    if isinstance(kind, type) and issubclass(kind, Untagged):
        return _untagged(kind)
    return lambda value: msgspec.convert(value, annotation)


def _unmarked(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type inside an annotation, and what it is annotated with."""
    if get_origin(annotation) is Annotated:
        kind, *marks = get_args(annotation)
        return kind, tuple(marks)
    return annotation, ()


def _struct(cls: Any) -> Build:
    """An object of one class."""
    hints = get_type_hints(cls, include_extras=True)
    open_tag: str | None = cls.__acprt_open_tag__
    known = _literals(hints[open_tag]) if open_tag else frozenset()
    tag, tag_field, forgives = cls.__struct_config__.tag, cls.__struct_config__.tag_field, cls.__acprt_forgives_tag__
    members: list[_Member] | None = None  # made at the first use: classes may contain each other

    def build(value: Any) -> Any:
        nonlocal members
        if type(value) is not dict:
            raise _expected("object", value)
        if open_tag and type(value.get(open_tag)) is str and value[open_tag] not in known:
            return Unknown(open_tag, value)
        if tag is not None and value.get(tag_field, tag) != tag and not forgives:
            raise ValidationError(f"Invalid value {value[tag_field]!r} in `{tag_field}`")
        if members is None:
            members = [_Member(cls, field, hints[field.name]) for field in msgspec.structs.fields(cls)]
        given: dict[str, Any] = {}
        for member in members:
            member.read(value, given)
        try:
            return cls(**given)
        except ValueError as error:  # a rule of the class
            raise ValidationError(str(error)) from None

    return build


class _Member:
    """How one member of an object is read."""

    __slots__ = (
        "_annotation",
        "_build",
        "_default_on_error",
        "_default_on_null",
        "_has_default",
        "_name",
        "_owner",
        "_tag",
        "_variants",
        "_wire",
    )

    def __init__(self, cls: Any, field: msgspec.structs.FieldInfo, annotation: Any) -> None:
        _, marks = _unmarked(annotation)
        self._name = field.name
        self._wire = field.encode_name
        self._annotation = annotation
        self._build = _builder(annotation)
        self._has_default = field.default is not NODEFAULT or field.default_factory is not NODEFAULT
        self._default_on_error = DEFAULT_ON_ERROR in marks
        self._default_on_null = DEFAULT_ON_NULL in marks
        self._variants: Variants = getattr(cls, "__acprt_variant_members__", {})
        self._owner = next((variant for variant, names in self._variants.items() if field.name in names), None)
        self._tag = cls.__acprt_variant_tag__ if self._owner else ""

    def read(self, source: dict[str, Any], given: dict[str, Any]) -> None:
        """Puts the value of the member into `given`, unless its default stands."""
        if self._wire not in source:
            if not self._has_default:
                raise ValidationError(f"Object missing required field `{self._wire}`")
            return
        value = source[self._wire]
        forgives = self._default_on_error
        variant = source.get(self._tag)
        if self._owner is not None and variant != self._owner:
            if type(variant) is str and variant in self._variants:
                return  # it belongs to another variant: it is not looked at
            forgives = True  # the variant is not known, nor what it means by this member
        if value is None and self._default_on_null:
            self._fall_back(given)
            return
        try:
            given[self._name] = self._build(value)
        except ValidationError as error:
            if not forgives:
                raise ValidationError(f"{error} in `{self._wire}`") from None
            self._fall_back(given)

    def _fall_back(self, given: dict[str, Any]) -> None:
        if not self._has_default:  # required, and a list or a map
            given[self._name] = {} if get_origin(_unmarked(self._annotation)[0]) is dict else []


def _list(kind: Any, marks: tuple[Any, ...], annotation: Any) -> Build:
    (inner,) = get_args(kind)
    element = _builder(inner)
    skips = SKIP_INVALID in marks
    least = max((mark.min_length or 0 for mark in marks if isinstance(mark, msgspec.Meta)), default=0)

    def build(value: Any) -> Any:
        if type(value) is not list:
            raise _expected("array", value)
        if not skips:
            if len(value) < least:
                raise ValidationError(f"Expected `array` of length >= {least}")
            return [element(each) for each in value]
        kept = []
        for each in value:
            try:
                kept.append(element(each))
            except ValidationError:  # the one element is dropped, not the list
                continue
        return kept

    return build


def _map(kind: Any) -> Build:
    value_of = _builder(get_args(kind)[1])

    def build(value: Any) -> Any:
        if type(value) is not dict:
            raise _expected("object", value)
        return {name: value_of(each) for name, each in value.items()}

    return build


def _union(kind: Any, marks: tuple[Any, ...]) -> Build:
    """Tagged classes, at most one other kind of object, a list, and whatever msgspec can tell apart itself."""
    members = [member for member in get_args(kind) if member is not UnsetType]
    takes_null = type(None) in members
    classes = [member for member in members if isinstance(member, msgspec.StructMeta)]
    others = [member for member in members if member not in classes and member is not type(None)]
    composed = [member for member in others if _is_composed(member)]
    if not classes and not composed:
        plain = msgspec.convert
        return lambda value: plain(value, kind)
    skips = (SKIP_INVALID,) if SKIP_INVALID in marks else ()
    by_type: dict[type, Build] = {}
    for member in composed:
        inner = Annotated[member, skips[0]] if skips and get_origin(_unmarked(member)[0]) is list else member
        by_type[list if get_origin(_unmarked(member)[0]) is list else dict] = _builder(inner)
    if classes:
        is_open = OPEN in marks
        by_type[dict] = _tagged(classes, marks) if len(classes) > 1 or is_open else _builder(classes[0])
    simple = [member for member in others if member not in composed]

    def build(value: Any) -> Any:
        if value is None and takes_null:
            return None
        found = by_type.get(type(value))
        if found is not None:
            return found(value)
        if simple:
            return msgspec.convert(value, Union[tuple(simple)])  # noqa: UP007  # made from a list
        raise _expected(" | ".join("array" if each is list else "object" for each in by_type), value)

    return build


def _is_composed(member: Any) -> bool:
    """Whether rules of ours may apply inside."""
    kind, _ = _unmarked(member)
    return get_origin(kind) in (list, dict, Union, types.UnionType) or (
        isinstance(kind, type) and issubclass(kind, (msgspec.Struct, Untagged))
    )


def _tagged(classes: list[Any], marks: tuple[Any, ...]) -> Build:
    """An object of one of several classes, told apart by a tag."""
    tag_field: str = classes[0].__struct_config__.tag_field
    by_tag = {cls.__struct_config__.tag: cls for cls in classes if cls is not Never}
    siblings = [name for mark in marks if isinstance(mark, Siblings) for name in mark.names]
    is_open = OPEN in marks

    def build(value: Any) -> Any:
        if type(value) is not dict:
            raise _expected("object", value)
        tag = _tag_of(value, tag_field)
        cls = by_tag.get(tag)
        if cls is not None:
            return _builder(cls)(value)
        if not is_open:
            raise ValidationError(f"Invalid value {tag!r} in `{tag_field}`")
        for name in siblings:
            if type(value.get(name)) is not str:
                raise ValidationError(f"Expected `str` in `{name}` of an object with an unknown `{tag_field}`")
        return Unknown(tag_field, value)

    return build


def _untagged(union: Any) -> Build:
    """An object of the first class that fits, the ones that its tag names before those without a tag."""
    module = vars(sys.modules[union.__module__])
    classes = [module[name] for name in union.__acprt_variants__]
    open_tag: str | None = union.__acprt_union_tag__
    tags = {cls.__struct_config__.tag for cls in classes}

    def build(value: Any) -> Any:
        if type(value) is not dict:
            raise _expected("object", value)
        if open_tag and type(value.get(open_tag)) is str and value[open_tag] not in tags:
            return Unknown(open_tag, value)
        first: ValidationError | None = None
        for cls in classes:
            config = cls.__struct_config__
            if config.tag is not None and value.get(config.tag_field) != config.tag:
                continue
            try:
                return _builder(cls)(value)
            except ValidationError as error:
                first = first or error
        raise first or ValidationError("Expected one of " + ", ".join(cls.__name__ for cls in classes))

    return build


def _build_untagged(type_: Any, value: Any) -> Any:
    """msgspec's hook for the one kind of class that it does not know."""
    if isinstance(type_, type) and issubclass(type_, Untagged):
        union: Any = type_
        return _builder(union)(value)
    raise NotImplementedError(f"{type_!r} cannot be decoded")


def _tag_of(value: dict[str, Any], tag_field: str) -> str:
    if tag_field not in value:
        raise ValidationError(f"Object missing required field `{tag_field}`")
    tag = value[tag_field]
    if type(tag) is not str:
        raise ValidationError(f"Expected `str`, got `{_name_of(tag)}` in `{tag_field}`")
    return tag


def _literals(annotation: Any) -> frozenset[str]:
    kind, _ = _unmarked(annotation)
    assert get_origin(kind) is Literal, annotation
    return frozenset(get_args(kind))


def _expected(what: str, value: Any) -> ValidationError:
    return ValidationError(f"Expected `{what}`, got `{_name_of(value)}`")


def _name_of(value: Any) -> str:
    return _JSON_NAMES.get(type(value), type(value).__name__)


_JSON_NAMES = {dict: "object", list: "array", type(None): "null"}
