"""The committed modules are what the generator makes of the schemas; it runs where the schemas are at hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

import acprt
from acprt.acp import v1, v2

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = os.environ.get("ACPRT_ACP_SCHEMAS")
needs_schemas = pytest.mark.skipif(SCHEMAS is None, reason="ACPRT_ACP_SCHEMAS names no directory with the schemas")


def read(version: str, name: str) -> Any:
    assert SCHEMAS is not None
    return json.loads((Path(SCHEMAS) / version / name).read_text("utf-8"))


@needs_schemas
def test_committed_modules_are_what_the_generator_writes(tmp_path: Path) -> None:
    assert SCHEMAS is not None
    program = ROOT / "tools" / "generate_acp_schema.py"
    subprocess.run([sys.executable, str(program), SCHEMAS, str(tmp_path)], check=True, timeout=50)
    for name in ("v1.py", "v2.py"):
        committed = ROOT / "acprt" / "acp" / "schema" / name
        assert (tmp_path / name).read_text("utf-8") == committed.read_text("utf-8"), f"{name}: run {program.name}"


def classes_of(schema: ModuleType, *unions: str) -> list[Any]:
    members = [cls for union in unions for cls in get_args(getattr(schema, union))]
    return [cls for cls in members if not cls.__name__.startswith("Ext")]


@needs_schemas
@pytest.mark.parametrize(("version", "schema"), [("v1", v1), ("v2", v2)])
def test_methods_are_those_of_the_method_list(version: str, schema: ModuleType) -> None:
    listed = read(version, "meta.unstable.json")
    to_agent = {acprt.method_of(cls) for cls in classes_of(schema, "ClientRequest", "ClientNotification")}
    to_client = {acprt.method_of(cls) for cls in classes_of(schema, "AgentRequest", "AgentNotification")}
    assert to_agent == set(listed["agentMethods"].values())
    assert to_client == set(listed["clientMethods"].values())
    stable = read(version, "meta.json")
    both = set(stable["agentMethods"].values()) | set(stable["clientMethods"].values())
    assert (to_agent | to_client | set(listed["proxyMethods"].values())) - both == schema.UNSTABLE_METHODS


@needs_schemas
@pytest.mark.parametrize(("version", "schema"), [("v1", v1), ("v2", v2)])
@pytest.mark.parametrize("file", ["schema.json", "schema.unstable.json"])
def test_every_definition_with_a_method_is_a_name_of_the_module(version: str, schema: ModuleType, file: str) -> None:
    for name, definition in read(version, file)["$defs"].items():
        method = definition.get("x-method")
        if method is None:
            continue
        cls = getattr(schema, name)
        if name.endswith(("Request", "Notification")):
            assert acprt.method_of(cls) == method
            assert cls.__acprt_unstable__ is (name not in read(version, "schema.json")["$defs"])
