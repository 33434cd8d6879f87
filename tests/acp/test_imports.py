"""What an import costs: the draft is loaded when it is used, and the face names what it has."""

from __future__ import annotations

import subprocess
import sys

import pytest

from acprt import acp


def loaded_by(program: str) -> set[str]:
    """The modules of acprt that are there after `program`, in a fresh interpreter."""
    show = "import sys; print(*(name for name in sys.modules if name.startswith('acprt')))"
    done = subprocess.run([sys.executable, "-c", f"{program}\n{show}"], capture_output=True, text=True, timeout=45)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_runtime_alone_loads_no_acp() -> None:
    assert not {name for name in loaded_by("import acprt") if name.startswith("acprt.acp")}


@pytest.mark.parametrize(
    "program",
    [
        "import acprt.acp",
        "from acprt import acp; acp.Agent('a').chains(); acp.Client('c').chains()",
        "from acprt import acp; acp.Agent.router(v1=acp.Agent('a'))",
    ],
)
def test_version_1_loads_nothing_of_version_2(program) -> None:
    names = loaded_by(program)
    assert "acprt.acp.schema.v1" in names
    assert not {"acprt.acp.v2", "acprt.acp.schema.v2", "acprt.acp.sessions_v2"} & names


def test_version_2_is_loaded_when_it_is_asked_for() -> None:
    assert "acprt.acp.schema.v2" in loaded_by("from acprt import acp; acp.Agent.v2('a').chains()")


def test_face_names_what_it_has() -> None:
    assert sorted(acp.__all__) == acp.__all__
    assert all(hasattr(acp, name) for name in acp.__all__)
