"""Turns the definitions of one version into items.

Unions are looked at first, for they decide which payloads carry a tag, which share one, and which are flattened.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from acp_schema import tables
from acp_schema.members import Types
from acp_schema.shapes import Defs, Item, Member, Schema, Tag, constant, reference, references, variants
from acp_schema.texts import pascal, snake

__all__ = ["Reader", "unstable_methods", "unstable_tags"]


class Reader:
    """One version: the unstable definitions, and the stable ones to tell what is unstable."""

    def __init__(self, version: str, unstable: Schema, stable: Schema) -> None:
        self.version = version
        self.defs: Defs = unstable["$defs"]
        self.stable: Defs = stable["$defs"]
        self.items: dict[str, Item] = {}
        self._types = Types(version)
        self._uses = Counter(references(self.defs))
        self._tag_of: dict[str, tuple[str, Tag]] = {}  # payload -> the one tagged union it belongs to, and its tag
        self._parent: dict[str, Schema] = {}  # payload -> the union that it is flattened into
        self._markers: dict[str, list[str]] = {}  # variant -> untagged unions that it belongs to
        self._gone = {*tables.ROUTING, *tables.EXTENSIONS}

    def read(self) -> list[Item]:
        """All items, in the order of the schema."""
        for name, schema in self.defs.items():
            self._look_at(name, schema)
        for name, schema in self.defs.items():
            if name not in self._gone:
                self._define(name, schema)
        for name in tables.ROUTING:
            self._define_routing(name)
        return list(self.items.values())

    # --- unions, looked at ---

    def _look_at(self, name: str, schema: Schema) -> None:
        alternatives = variants(schema)
        if name in tables.MERGED:
            self._gone |= self._flattened_into(schema)
            return
        if name in tables.ROUTING or self._is_alias(alternatives):
            return
        told = [(constant(variant), reference(variant)) for variant in alternatives]
        shared = Counter(payload for tag, payload in told if tag)
        has_untagged = any(payload and not tag for tag, payload in told)
        for tag, payload in told:
            if payload is None:
                continue
            if tag and shared[payload] == 1:
                self._tag_of[payload] = (name, tag)
                if payload in tables.UNTAGGED_NAMES and self._uses[payload] > 1:
                    self._types.untagged.add(payload)
            if "properties" in schema:
                self._parent[payload] = schema
            if has_untagged:
                self._markers.setdefault(payload, []).append(name)

    @staticmethod
    def _is_alias(alternatives: list[Schema]) -> bool:
        """Another name for the one definition that it refers to, or for anything at all."""
        takes_anything = any(set(variant) <= {"title", "description"} for variant in alternatives)
        return takes_anything or (len(alternatives) == 1 and reference(alternatives[0]) is not None)

    def _flattened_into(self, schema: Schema) -> set[str]:
        """Payloads that a merged union swallows, and what they swallow in turn."""
        found: set[str] = set()
        for variant in variants(schema):
            payload = reference(variant)
            if payload:
                found |= {payload} | self._flattened_into(self.defs[payload])
            else:
                found |= self._flattened_into(variant)
        return found

    # --- definitions ---

    def _add(self, name: str, schema: Schema, **parts: Any) -> Item:
        unstable = name in self.defs and name not in self.stable
        method = (schema["x-method"], schema["x-side"]) if "x-method" in schema else None
        item = Item(name, method=method, unstable=unstable, **parts)
        assert name not in self.items, f"{name} is defined twice"
        self.items[name] = item
        return item

    def _define(self, name: str, schema: Schema) -> None:
        alternatives = variants(schema)
        if name in tables.KEPT_AS_OBJECTS:
            self._add(name, schema, expression=tables.KEPT_AS_OBJECTS[name])
        elif name in tables.MERGED:
            self._define_merged(name, schema)
        elif alternatives:
            self._define_union(name, schema, alternatives)
        elif schema.get("type") == "object":
            self._define_object(name, schema)
        elif "x-method" in schema and (other := reference(schema)):
            self._define_borrowed(name, other, schema)
        else:
            self._add(name, schema, expression=self._types.of(schema))

    def _define_borrowed(self, name: str, other: str, schema: Schema) -> None:
        """A method that takes, and answers with, what another one does."""
        if name.endswith("Request"):
            self._add(name, schema, bases=[other], keywords=[f'method="{schema["x-method"]}"'])
        else:
            self._add(name, schema, expression=other, needs={other})

    def _define_union(self, name: str, schema: Schema, alternatives: list[Schema]) -> None:
        if self._is_alias(alternatives):
            only = reference(alternatives[0]) if len(alternatives) == 1 else None
            self._add(name, schema, expression=only or "Any", needs={only} if only else set())
        elif all(variant.get("type") == "array" for variant in alternatives):
            self._define_arrays(name, schema, alternatives)
        elif not any(reference(variant) or constant(variant) for variant in alternatives):
            self._define_values(name, schema, alternatives)
        elif any(reference(variant) and not constant(variant) for variant in alternatives):
            members = [payload for payload in map(reference, alternatives) if payload]
            is_open = any(not reference(variant) and not constant(variant) for variant in alternatives)
            self._define_untagged(name, members, is_open)
        else:
            self._define_tagged(name, schema, alternatives)

    def _define_values(self, name: str, schema: Schema, alternatives: list[Schema]) -> None:
        """An enum of strings or numbers, or a union of JSON types."""
        values = [variant["const"] for variant in alternatives if "const" in variant]
        is_open = len(values) < len(alternatives)
        if not values:
            kinds = sorted(map(self._types.of, alternatives), key="None".__eq__)  # None comes last
            self._add(name, schema, expression=" | ".join(kinds))
        elif isinstance(values[0], str):
            self._add(name, schema, expression=literal(values) + (" | str" if is_open else ""))
        else:
            self._add(name, schema, expression=self._types.of(alternatives[0]))

    def _define_arrays(self, name: str, schema: Schema, alternatives: list[Schema]) -> None:
        """An array of one kind, or of the other."""
        element = tables.ELEMENTS[name]
        members = [str(reference(variant["items"])) for variant in alternatives]
        self._define_untagged(element, members, False)
        self._add(
            name, schema, expression=self._types.of(alternatives[0]).replace(members[0], element), needs={element}
        )
        for member in members:
            self._markers[member] = [element]

    def _define_untagged(self, name: str, members: list[str], is_open: bool) -> None:
        keywords = [f"variants={tuple_of(members)}"]
        if is_open:
            keywords.append('open_tag="type"')
        self._add(name, {}, bases=["Untagged"], keywords=keywords, constants=["__slots__ = ()"])

    def _define_tagged(self, name: str, schema: Schema, alternatives: list[Schema]) -> None:
        is_open = (self.version, name) in tables.OPEN_BESIDES
        stable_tags = set(map(constant, variants(self.stable.get(name, {}))))
        names, siblings = [], []
        for variant in alternatives:
            tag, payload = constant(variant), reference(variant)
            if tag is None:
                is_open = True
                tag_field = next(iter(variant["properties"]))
                siblings = [wire for wire in (*variant["required"], *schema.get("required", ())) if wire != tag_field]
            elif payload and self._tag_of.get(payload) == (name, tag):
                names.append(payload)
            else:
                item = self._add(tables.VARIANT_NAMES.get((name, tag[1])) or pascal(tag[1]), variant, tag=tag)
                item.bases = [payload or "Struct"]
                item.unstable = tag not in stable_tags
                names.append(item.name)
        expression = " | ".join(names) if len(names) > 1 else f"Tagged[{names[0]}]"
        if is_open:
            expression = f"OrUnknown[{expression}]"
        if siblings:
            expression = f"Annotated[{expression}, Siblings({', '.join(map(json.dumps, siblings))})]"
        self._add(name, schema, expression=expression, needs=set(names))

    # --- objects ---

    def _define_object(self, name: str, schema: Schema) -> None:
        parent = self._parent.get(name, {})
        properties = {**parent.get("properties", {}), **schema.get("properties", {})}
        required = {*parent.get("required", ()), *schema.get("required", ())}
        own = tables.UNTAGGED_NAMES[name] if name in self._types.untagged else name
        item = self._add(own, schema)
        item.unstable = name not in self.stable
        item.bases = [*self._markers.get(name, ()), *self._bases(name, schema, properties)]
        item.keywords = self._method(name, schema)
        stable = {**parent.get("properties", {}), **self.stable.get(name, {}).get("properties", {})}
        for wire, member in properties.items():
            if wire == "_meta":
                continue
            if name in tables.ALWAYS_WRITTEN and wire == "type":
                item.tag = (wire, "object")
                if wire not in required:
                    item.constants.append("__acprt_forgives_tag__ = True")
                continue
            made = self._types.member(name, wire, member, wire in required, self._clears(name, wire))
            made.unstable = name in self.stable and wire not in stable
            item.members.append(made)
        self._define_with_tag(name, item)

    def _define_with_tag(self, name: str, item: Item) -> None:
        """The tag of a payload: its own, or that of a class derived from it."""
        if name in self._types.untagged:
            self._add(name, {}, bases=[item.name], tag=self._tag_of[name][1])
            item.note = f"`{name}` without its tag, where it is not a session update."
        elif name in self._tag_of:
            item.tag = self._tag_of[name][1]

    def _bases(self, name: str, schema: Schema, properties: Schema) -> list[str]:
        rules = tables.RULES.get((self.version, name))
        bases = [rules] if rules else []
        if self._method(name, schema):
            assert "_meta" in properties, name
            return [*bases, "Notification" if name.endswith("Notification") else f'Request["{self._reply(schema)}"]']
        if name in tables.THREE_STATE[self.version]:
            return [*bases, "PatchStruct"]
        return [*bases, "MetaStruct" if "_meta" in properties else "Struct"]

    @staticmethod
    def _method(name: str, schema: Schema) -> list[str]:
        return [f'method="{schema["x-method"]}"'] if "x-method" in schema and not name.endswith("Response") else []

    def _reply(self, schema: Schema) -> str:
        """The response to a request: of the same method, answered by the same side."""
        told = ("x-method", "x-side")
        return next(
            name
            for name, other in self.defs.items()
            if name.endswith("Response") and all(other.get(each) == schema[each] for each in told)
        )

    def _clears(self, name: str, wire: str) -> bool:
        members = tables.THREE_STATE[self.version].get(name, ())
        return members is None or wire in members

    # --- one class for all variants ---

    def _define_merged(self, name: str, schema: Schema) -> None:
        tag = tables.MERGED[name]
        own = tables.UNTAGGED_NAMES[name] if name in self._types.untagged else name
        item = self._add(own, schema)
        item.unstable = name not in self.stable
        properties = self._all_properties(schema)
        item.bases, item.keywords = self._bases(name, schema, properties), self._method(name, schema)
        required = schema.get("required", ())
        if tag:
            item.members.append(self._choice(name, tag, schema, item))
            item.constants += self._of_one_variant(tag, schema)
        for wire, member in properties.items():
            if wire not in ("_meta", tag):
                item.members.append(self._merged_member(name, wire, member, wire in required))
        self._define_with_tag(name, item)

    def _all_properties(self, schema: Schema) -> dict[str, Schema]:
        """The members of a union and of all its variants, but for the constants."""
        found: dict[str, Schema] = dict(schema.get("properties", {}))
        for variant in variants(schema):
            payload = reference(variant)
            inner = self._all_properties(self.defs[payload]) if payload else {}
            for wire, member in (self._all_properties(variant) | inner).items():
                if "const" not in member:
                    found.setdefault(wire, member)
        return found

    def _of_one_variant(self, tag: str, schema: Schema) -> list[str]:
        """The constants that say which members belong to one variant only; none if no member does."""
        members: dict[str, set[str]] = {}
        for variant in variants(schema):
            told, payload = constant(variant), reference(variant)
            if told:
                members[told[1]] = set(self._all_properties(self.defs[payload])) - {"_meta"} if payload else set()
        count = Counter(wire for each in members.values() for wire in each)
        alone = {value: sorted(snake(wire) for wire in each if count[wire] == 1) for value, each in members.items()}
        if not any(alone.values()):
            return []
        table = ", ".join(f"{json.dumps(value)}: {tuple_of(own)}" for value, own in alone.items())
        return [f'__acprt_variant_tag__ = "{tag}"', f"__acprt_variant_members__: ClassVar[Variants] = {{{table}}}"]

    def _choice(self, name: str, tag: str, schema: Schema, item: Item) -> Member:
        """The member that tells the variants apart."""
        values = [told[1] for told in map(constant, variants(schema)) if told]
        kind, default = tables.MERGED_TYPES.get((self.version, name, tag), (None, None))
        if kind is None:
            kind = literal(values)
            if tag == "state":  # the one union of these that keeps what an unknown variant says
                item.constants.append(f'__acprt_open_tag__ = "{tag}"')
            else:
                kind += " | str"
        return Member(tag, tag, kind, default)

    def _merged_member(self, name: str, wire: str, schema: Schema, is_required: bool) -> Member:
        made = self._types.member(name, wire, schema, is_required, False)
        kind, default = tables.MERGED_TYPES.get((self.version, name, wire), (None, None))
        if kind is not None:
            made.type, made.default = kind, default
        elif wire == "stopReason":
            values = [told[1] for told in map(constant, variants(self.defs["IdleStateUpdate"])) if told]
            made.type = f"DefaultOnError[{literal(values)} | str | None]"
        elif made.default is None and not is_required:
            absent = "UnsetType" if wire == "requestId" else "None"  # null is an id in v1
            made.type, made.default = f"{made.type} | {absent}", "UNSET" if wire == "requestId" else "None"
        return made

    # --- routing ---

    def _define_routing(self, name: str) -> None:
        extension = tables.ROUTING[name]
        if name not in self.defs:  # the envelope definition lacks this one: it is told by the side
            found = [each for each, schema in self.defs.items() if schema.get("x-side") == "protocol"]
        elif name.endswith("Response"):
            found = [str(reference(each)) for each in variants(variants(self.defs[name])[0]["properties"]["result"])]
        else:
            found = [str(reference(each)) for each in variants(variants(self.defs[name]["properties"]["params"])[0])]
        members = [self.items[each].expression or each for each in found if each not in tables.EXTENSIONS]
        members = [each for each in dict.fromkeys(members) if each != "Any"]
        self._add(name, {}, expression=" | ".join([*members, *([extension] if extension else [])]), needs=set(members))


def literal(values: list[str]) -> str:
    """A closed set of strings."""
    return f"Literal[{', '.join(map(json.dumps, values))}]"


def tuple_of(names: list[str]) -> str:
    """A tuple of strings."""
    return f"({', '.join(map(json.dumps, names))}{',' if len(names) == 1 else ''})"


def unstable_tags(unstable: Defs, stable: Defs) -> dict[str, list[str]]:
    """Union -> tags that the stable definition lacks."""
    found = {}
    for name, schema in unstable.items():
        here, there = (
            {told for told in map(constant, variants(each)) if told} for each in (schema, stable.get(name, {}))
        )
        if name in stable and here - there:
            found[name] = sorted(value for _, value in here - there)
    return found


def unstable_methods(unstable: Defs, stable: Defs) -> list[str]:
    """Wire methods that no stable definition has."""
    return sorted(
        {s["x-method"] for s in unstable.values() if "x-method" in s} - {s.get("x-method") for s in stable.values()}
    )
