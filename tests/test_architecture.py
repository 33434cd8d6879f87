"""The floors of the project hold: who may import whom, what `import acprt` costs, what the face may contain."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# What an agent that is served on stdio has no use for: its start does not pay for it.
LATE = {
    "acprt.runtime.joined",
    "acprt.trace.file_sink",
    "acprt.trace.records",
    "acprt.transports.blocking",
    "acprt.transports.child",
    "acprt.transports.memory",
    "acprt.transports.process",
    "acprt.transports.streams",
}


def _loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter holds after `statement`."""
    return _printed(f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')")


def _printed(program: str) -> set[str]:
    """The words that a fresh interpreter prints."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}"
    done = subprocess.run([sys.executable, "-I", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_contract_holds() -> None:
    """The contracts of pyproject.toml: arrows go down only, `wire` does no I/O, nothing imports the face."""
    pytest.importorskip("importlinter")
    program = (
        "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True, no_logo=True))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_import_of_the_face_brings_nothing_else() -> None:
    """No wing, no roof, no uvloop, and nothing of the standard library that asyncio and msgspec do not bring anyway."""
    added = _loaded_by("import acprt") - _loaded_by("import asyncio, msgspec")
    own = {name for name in added if name.split(".")[0] == "acprt"}
    rooms = {name.split(".")[1] for name in own if "." in name}
    assert rooms <= {"errors", "limits", "runtime", "trace", "transports", "wire"}
    assert sorted(own & LATE) == []
    assert sorted(added - own) == []


def test_face_re_exports_and_defines_nothing() -> None:
    """`acprt/__init__.py` holds a docstring, imports, `__all__` and the version. Some of the imports come late, which
    type checkers do not see: they are the same."""
    tree = ast.parse(ROOT.joinpath("acprt", "__init__.py").read_text(encoding="utf-8"))
    others = [
        node
        for node in tree.body[1:]
        if not isinstance(node, ast.Import | ast.ImportFrom) and not _assigns(node, {"__all__", "__version__"})
    ]
    assert ast.get_docstring(tree)
    (late,) = others
    assert isinstance(late, ast.If)
    assert ast.unparse(late.test) == "TYPE_CHECKING"
    imports = [node for node in late.body if isinstance(node, ast.ImportFrom)]
    assert imports == late.body
    seen = {name.name: node.module for node in imports for name in node.names}
    table, *functions = late.orelse
    assert isinstance(table, ast.Assign)
    assert ast.literal_eval(table.value) == seen
    assert [node.name for node in functions if isinstance(node, ast.FunctionDef)] == ["__getattr__", "__dir__"]


def test_what_the_face_imports_late_is_there_like_the_rest() -> None:
    """By attribute, by `from acprt import …`, in `dir`; and a name that does not exist is still an AttributeError."""
    names = _printed("import acprt; print(*dir(acprt)); print(acprt.AgentProcess.__module__)")
    assert {"AgentProcess", "Endpoint", "FileSink", "memory_pair", "streams"} <= names
    assert "acprt.transports.process" in names
    assert _printed("from acprt import *; print(FileSink.__name__, AgentProcess.__name__, Endpoint.__name__)") == {
        "AgentProcess",
        "Endpoint",
        "FileSink",
    }
    assert _printed("import acprt; print(hasattr(acprt, 'AgentProces'))") == {"False"}


def _assigns(node: ast.stmt, names: set[str]) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return bool(targets) and all(isinstance(target, ast.Name) and target.id in names for target in targets)
