"""The floors of the project hold: who may import whom, what `import acprt` costs, what the face may contain."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# What acprt adds to a program that has asyncio and msgspec already. Everything else waits until it is needed.
ALLOWED_EXTRAS = {"shlex", "termios"}


def _loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter holds after `statement`."""
    program = f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')"
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
    path = f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    added = _loaded_by(path + "import acprt") - _loaded_by(path + "import asyncio, msgspec")
    own = {name for name in added if name.split(".")[0] == "acprt"}
    rooms = {name.split(".")[1] for name in own if "." in name}
    assert rooms <= {"errors", "limits", "runtime", "trace", "transports", "wire"}
    assert sorted(added - own - ALLOWED_EXTRAS) == []


def test_face_re_exports_and_defines_nothing() -> None:
    """`acprt/__init__.py` holds a docstring, imports, `__all__` and the version."""
    tree = ast.parse(ROOT.joinpath("acprt", "__init__.py").read_text(encoding="utf-8"))
    others = [
        ast.unparse(node)
        for node in tree.body[1:]
        if not isinstance(node, ast.Import | ast.ImportFrom) and not _assigns(node, {"__all__", "__version__"})
    ]
    assert ast.get_docstring(tree)
    assert not others, others


def _assigns(node: ast.stmt, names: set[str]) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return bool(targets) and all(isinstance(target, ast.Name) and target.id in names for target in targets)
