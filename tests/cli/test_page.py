"""`acprt show --html`: one file with everything in it. What it does in a browser: test_page_browser.py."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.running import acprt
from tests.cli.traced import Trace


def page_of(trace: Trace, tmp_path: Path, *words: str) -> str:
    """The text of the page."""
    target = tmp_path / "page.html"
    done = acprt("show", trace.write(tmp_path / "a <b>.jsonl"), "--html", str(target), *words)
    assert done.exit_code == 0, done.stderr
    return target.read_text(encoding="utf-8")


def test_page_is_one_file_that_loads_nothing(tmp_path):
    """No address, and a policy that forbids any."""
    made = Trace()
    made.turn(1, "s", "hello", "Hi")
    page = page_of(made, tmp_path)
    assert not re.findall(r"(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page)
    assert "default-src 'none'" in page
    assert "{{" not in page.replace("${{", "")


def test_what_a_peer_wrote_is_neither_markup_nor_code(tmp_path):
    """Whatever would end the element that holds it."""
    made = Trace()
    made.turn(1, "s", "</script><script>alert(1)</script>", "<!--", "{{script}}")
    page = page_of(made, tmp_path)
    assert "alert(1)</script>" not in page
    assert page.count("</script>") == 3
    assert "<!--" not in page
    assert "<title>a &lt;b&gt;.jsonl – acprt trace</title>" in page


def test_filters_choose_what_is_in_the_page(tmp_path):
    """A page of one session can be handed on without the others."""
    made = Trace()
    made.turn(1, "s1", "mine", "a")
    made.turn(2, "s2", "private", "b")
    page = page_of(made, tmp_path, "--session", "s1")
    assert "mine" in page
    assert "private" not in page


def test_page_that_cannot_be_written_is_told(tmp_path):
    """2, and why."""
    done = acprt("show", Trace().write(tmp_path / "t"), "--html", str(tmp_path / "no" / "page.html"))
    assert done.exit_code == 2
    assert "--html" in done.stderr
