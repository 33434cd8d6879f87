"""`Limits`: every number has a unit, a default and a reason, and reaches what it bounds."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import msgspec
import pytest

import acprt
from acprt import limits
from acprt.limits import DEFAULT_LIMITS, Limits

UNITS = {"bytes": int, "seconds": float, "frames": int, "requests": int, "messages": int, "lines": int, "threads": int}


def reasons() -> dict[str, str]:
    """The text that stands behind each field in the source."""
    (cls,) = (node for node in ast.parse(inspect.getsource(limits)).body if isinstance(node, ast.ClassDef))
    found = {}
    for field, text in zip(cls.body, cls.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(text, ast.Expr), f"{field.target.id} has no reason behind it"
            assert isinstance(text.value, ast.Constant)
            assert isinstance(text.value.value, str)
            found[field.target.id] = text.value.value
    return found


class TestFields:
    """The numbers themselves."""

    def test_every_field_has_a_reason(self):
        """M-05."""
        written = reasons()
        assert list(written) == [field.name for field in msgspec.structs.fields(Limits)]
        assert all(len(text) > 30 for text in written.values())

    @pytest.mark.parametrize("field", msgspec.structs.fields(Limits), ids=lambda field: field.name)
    def test_every_field_has_a_unit_and_a_usable_default(self, field):
        """M-05: the name ends in the unit, except for a plain count."""
        unit = field.name.rpartition("_")[2]
        assert unit in UNITS or field.name == "tombstones"
        assert type(field.default) is UNITS.get(unit, int)
        assert isinstance(field.default, int | float)
        assert 0 < field.default < float("inf")

    def test_names_of_the_contract(self):
        """M-05: they are part of the public contract."""
        names = {field.name for field in msgspec.structs.fields(Limits)}
        assert names >= {
            "line_bytes",
            "inbox_bytes",
            "inbox_frames",
            "outbox_high_bytes",
            "outbox_max_bytes",
            "drain_seconds",
            "exit_grace_seconds",
            "term_grace_seconds",
            "stderr_tail_bytes",
            "slow_handler_seconds",
        }

    def test_limits_are_values(self):
        """M-05: named, immutable, comparable."""
        assert Limits() == DEFAULT_LIMITS == acprt.Limits()
        assert Limits(line_bytes=1) != Limits()
        with pytest.raises(AttributeError):
            Limits().line_bytes = 2  # type: ignore[misc]  # that it cannot be set is the point
        with pytest.raises(TypeError):
            Limits(1)  # type: ignore[call-arg]  # that it takes names only is the point

    def test_every_field_is_read_somewhere(self):
        """M-05: a limit that bounds nothing is a lie."""
        root = Path(limits.__file__).parent
        code = "\n".join(path.read_text(encoding="utf-8") for path in root.rglob("*.py") if path.name != "limits.py")
        unread = [
            field.name for field in msgspec.structs.fields(Limits) if not re.search(rf"limits\.{field.name}\b", code)
        ]
        assert not unread


class TestReach:
    """An endpoint's limits are its connections' limits."""

    def test_an_endpoint_passes_its_limits_to_its_connections(self, run):
        """M-05, DEC-28."""
        chosen = Limits(line_bytes=1_000)

        async def main():
            near, far = acprt.memory_pair()
            async with acprt.Endpoint("a", limits=chosen).connect(near) as cx:
                assert cx.limits is chosen
            async with acprt.Endpoint("b").connect(far) as cx:
                assert cx.limits is DEFAULT_LIMITS

        run(main())


class TestValidation:
    """A limit that cannot be meant is refused where it is written."""

    @pytest.mark.parametrize(
        "wrong", [{"line_bytes": "5"}, {"line_bytes": 1.5}, {"inbox_frames": True}, {"drain_seconds": "soon"}]
    )
    def test_wrong_type_names_the_field(self, wrong):
        """DEC-6: not at the first message."""
        (name,) = wrong
        with pytest.raises(TypeError, match=f"Limits.{name}"):
            acprt.Limits(**wrong)

    @pytest.mark.parametrize(
        "wrong",
        [{"line_bytes": 0}, {"line_bytes": -1}, {"sync_threads": 0}, {"drain_seconds": -1.0}, {"drain_seconds": 1e30}],
    )
    def test_value_out_of_range_names_the_field(self, wrong):
        """As above."""
        (name,) = wrong
        with pytest.raises(ValueError, match=f"Limits.{name}"):
            acprt.Limits(**wrong)

    def test_no_time_and_all_time_are_legal(self):
        """0 ends at once, infinity switches a bound off."""
        limits = acprt.Limits(drain_seconds=0, slow_handler_seconds=float("inf"))
        assert (limits.drain_seconds, limits.slow_handler_seconds) == (0, float("inf"))
