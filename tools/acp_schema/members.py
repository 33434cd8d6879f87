"""How one member of an object is declared: its type, its marks, its default."""

from __future__ import annotations

import json

from acp_schema import tables
from acp_schema.shapes import Member, Schema, reference
from acp_schema.texts import snake

__all__ = ["Types"]

MARKS = {"x-deserialize-default-on-error": "DefaultOnError", "x-deserialize-default-on-null": "DefaultOnNull"}


class Types:
    """The types of one version. `untagged` are the definitions that have an untagged class beside the tagged one."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.untagged: set[str] = set()

    def member(self, owner: str, wire: str, schema: Schema, is_required: bool, clears: bool) -> Member:
        """A field. `clears`: null and absence say different things."""
        made = Member(tables.INNER_NAMES.get(wire, snake(wire)), wire, self.of(schema))
        if made.type == "Any":
            made.default = None if is_required else "UNSET"
            return made
        nullable = "null" in schema.get("type", ()) or {"type": "null"} in schema.get("anyOf", ())
        made.default = tables.DEFAULTS.get((self.version, owner, wire))
        if clears and not is_required:
            made.type, made.default = f"{made.type} | UnsetType | None", "UNSET"
        elif nullable:
            made.type, made.default = f"{made.type} | None", None if is_required else "None"
        elif not is_required and made.default is None:
            made.default = self._default(schema)
        if schema.get("x-deserialize-skip-invalid-items"):
            made.type = f"SkipInvalid[{made.type}]"
        for mark, wrapper in MARKS.items():
            if schema.get(mark):
                made.type = f"{wrapper}[{made.type}]"
        return made

    @staticmethod
    def _default(schema: Schema) -> str | None:
        default = schema.get("default")
        referred = reference(schema)
        if isinstance(default, bool):
            return str(default)
        if isinstance(default, str):
            return json.dumps(default)
        if referred and isinstance(default, dict):
            return f"field(default_factory={referred})"
        return {"array": "field(default_factory=list)", "object": "field(default_factory=dict)"}.get(
            schema.get("type", "")
        )

    def of(self, schema: Schema) -> str:
        """The type that a schema stands for, without null."""
        referred = reference(schema)
        if referred:
            return self._referred(referred)
        others = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
        return self.of(others[0]) if len(others) == 1 else self._plain(schema)

    def _referred(self, name: str) -> str:
        own = tables.UNTAGGED_NAMES[name] if name in self.untagged else name
        return f"OrUnknown[{own}]" if tables.MERGED.get(name) == "state" else own

    def _plain(self, schema: Schema) -> str:
        types = schema.get("type")
        kind = next((each for each in types if each != "null"), None) if isinstance(types, list) else types
        match kind:
            case None:
                return "Any"
            case "null":
                return "None"
            case "string":
                return self._bounded("str", min_length=schema.get("minLength"))
            case "boolean":
                return "bool"
            case "integer" if schema.get("minimum"):
                return self._bounded("int", ge=schema["minimum"], le=tables.UPPER_BOUNDS[schema["format"]])
            case "integer":
                return tables.INTEGERS[schema["format"]]
            case "number":
                return self._bounded("float", ge=schema.get("minimum"), le=schema.get("maximum"))
            case "array":
                return self._bounded(f"list[{self.of(schema['items'])}]", min_length=schema.get("minItems"))
            case "object":
                values = schema.get("additionalProperties")
                return f"dict[str, {self.of(values) if isinstance(values, dict) else 'Any'}]"
        raise LookupError(f"no type for {schema}")

    @staticmethod
    def _bounded(kind: str, **bounds: float | None) -> str:
        given = [f"{name}={bound}" for name, bound in bounds.items() if bound is not None]
        return f"Annotated[{kind}, msgspec.Meta({', '.join(given)})]" if given else kind
