"""JSON Schema of schema types, through msgspec, also of the unions that msgspec cannot describe by itself.

Messages of a routing union are told apart by their method, so their params carry no tag; and some unions of the
protocol have none. Both are described as "any of".
"""

from __future__ import annotations

import sys
from typing import Any, get_args

import msgspec

from acprt.acp.schema.base import Untagged
from acprt.acp.schema.routing import ExtNotification, ExtRequest, ExtResponse

__all__ = ["json_schema"]

_REFERENCE = "#/$defs/{name}"
_NEVER = {"$ref": _REFERENCE.format(name="Never")}
_FREE = (ExtRequest, ExtNotification, ExtResponse)


def json_schema(type_: Any) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a schema class, or of a union of them.

    Of a message it describes the params; extensions may have any. It says what a well-formed value is: what decoding
    forgives besides, and variants that a later protocol adds, are not in it.
    """
    members = [type_] if isinstance(type_, type) else [cls for cls in get_args(type_) if isinstance(cls, type)]
    if not members or any(_has_tag(cls) for cls in members):
        members = [type_]  # a union with tags, an alias of a plain type: msgspec describes it
    typed = [cls for cls in members if cls not in _FREE]
    schemas, definitions = _components(typed)
    if len(typed) < len(members):
        schemas.append({"title": "Extension", "description": "Anything: extensions define their own."})
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {**schema, "$defs": definitions} if definitions else schema


def _has_tag(cls: Any) -> bool:
    return hasattr(cls, "__struct_config__") and cls.__struct_config__.tag is not None


def _components(types: list[Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Schemas of the types, and all definitions that they refer to."""
    untagged: dict[type, list[Any]] = {}

    def describe(type_: type) -> dict[str, Any]:
        if not issubclass(type_, Untagged):
            raise NotImplementedError
        module = vars(sys.modules[type_.__module__])
        untagged[type_] = [module[name] for name in type_.__acprt_variants__]
        return {"anyOf": [{"$ref": _REFERENCE.format(name=cls.__name__)} for cls in untagged[type_]]}

    wanted = list(types)
    while True:  # the variants of a union without tags are not seen by msgspec: they are asked for in the next round
        schemas, definitions = msgspec.json.schema_components(wanted, schema_hook=describe, ref_template=_REFERENCE)
        missing = [cls for classes in untagged.values() for cls in classes if cls.__name__ not in definitions]
        if not missing:
            break
        wanted += missing
    definitions.pop("Never", None)
    return [_without_never(schema) for schema in schemas[: len(types)]], _without_never(definitions)


def _without_never(schema: Any) -> Any:
    """The schema without the variant that is there for msgspec alone."""
    if isinstance(schema, list):
        return [_without_never(each) for each in schema if each != _NEVER]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _without_never(each) for name, each in schema.items() if each != _NEVER["$ref"]}
    only = kept.get("anyOf", ())
    return only[0] if len(only) == 1 else kept
