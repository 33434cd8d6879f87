"""The page of `acprt show --html` in a real browser: lanes, pairs, folds, filters, keys, themes, 50,000 events."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import acprt
from tests.cli.traced import AGENT, CLIENT, Trace

playwright = pytest.importorskip("playwright.sync_api", reason="needs `pip install playwright`")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)"),
]
expect = playwright.expect


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One for all tests."""
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def show(browser, tmp_path) -> Iterator[Any]:
    """`show(trace)`: its page, opened. Nothing in it may fail, or ask for anything but itself."""
    complaints: list[str] = []
    contexts = []

    def opened(trace: Trace, **options: Any) -> Any:
        target = tmp_path / "page.html"
        assert acprt("show", trace.write(tmp_path / "trace.jsonl"), "--html", str(target)).exit_code == 0
        context = browser.new_context(**({"viewport": {"width": 1400, "height": 800}} | options))
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.extend([message.text] if message.type == "error" else []))
        page.on("request", lambda request: complaints.extend([] if request.url.startswith("file:") else [request.url]))
        page.goto(target.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def sample() -> Trace:
    """A handshake, a turn with chunks around a permission, an error, an unanswered request, rubbish."""
    made = Trace()
    made.ask(1, "initialize", {"protocolVersion": 1})
    made.answer(1, "initialize", {"protocolVersion": 1}, latency=0.01)
    made.ask(2, "session/prompt", {"sessionId": "s1", "prompt": [{"type": "text", "text": "Say <b>hi</b>"}]})
    for text in ("He", "llo ", "world"):
        made.chunk("s1", text)
    made.ask(1, "session/request_permission", {"sessionId": "s1", "options": [{"name": "Yes"}]}, side=AGENT)
    made.answer(1, "session/request_permission", {"outcome": {"outcome": "cancelled"}}, side=CLIENT, session="s1")
    made.chunk("s1", "Bye")
    made.answer(2, "session/prompt", {"stopReason": "end_turn"}, session="s1", latency=2.5)
    made.ask(3, "no/such", {"zebra": 1})
    made.answer(3, "no/such", {"code": -32601, "message": "Method not found"}, is_error=True)
    made.add(AGENT, type="malformed", text="Segmentation fault", error="Parse error")
    made.ask(4, "session/new", {"cwd": "/tmp"})
    return made


def rows(page: Any) -> list[str]:
    """What the rows say."""
    texts: list[str] = page.locator(".row .what").all_inner_texts()
    return [text.replace("\n", " ") for text in texts]


def labels(page: Any) -> list[str]:
    """What stands above the arrows."""
    texts: list[str] = page.locator("#drawing text").all_text_contents()
    return texts


def chosen(page: Any) -> str:
    """The chosen row, as a screen reader hears it."""
    label: str = page.locator('.row[aria-selected="true"]').get_attribute("aria-label")
    return label


class TestDiagram:
    def test_client_stands_left_of_the_agent(self, show):
        """And proxies between them, by number."""
        made = Trace()
        for sender, receiver in (("Agent", "Proxy(1)"), ("Proxy(10)", "Agent"), ("Proxy(2)", "Client")):
            made.add({"from": sender, "to": receiver}, type="notification", method="m", params={})
        page = show(made)
        boxes = page.locator("#lanes .lane")
        assert boxes.all_inner_texts() == ["Client", "Proxy(1)", "Proxy(2)", "Proxy(10)", "Agent"]
        lefts = [box.bounding_box()["x"] for box in boxes.all()]
        assert lefts == sorted(lefts)

    def test_arrows_go_from_lane_to_lane(self, show):
        """Requests are drawn through, answers dashed."""
        page = show(sample())
        lines = page.locator("#drawing line.arrow").all()
        client, agent = (box.bounding_box() for box in page.locator("#lanes .lane").all())
        asked, answered = (line.bounding_box() for line in lines[:2])
        middle = client["x"] + client["width"] / 2, agent["x"] + agent["width"] / 2
        for box in (asked, answered):
            assert middle[0] <= box["x"] < box["x"] + box["width"] <= middle[1]
        assert lines[0].get_attribute("stroke-dasharray") is None
        assert lines[1].get_attribute("stroke-dasharray")
        assert float(lines[0].get_attribute("x1")) < float(lines[0].get_attribute("x2"))
        assert float(lines[1].get_attribute("x1")) > float(lines[1].get_attribute("x2"))
        assert lines[0].get_attribute("stroke") == lines[1].get_attribute("stroke")

    def test_lanes_of_several_connections_are_apart(self, show):
        """Each with its own client and agent."""
        made, other = Trace("a#1"), Trace("b#1", pid=2)
        made.turn(1, "s", "x", "y")
        other.turn(1, "t", "x", "y")
        made.records += other.records
        page = show(made)
        expect(page.locator("#lanes .lane")).to_have_text(["Clienta#1", "Agenta#1", "Clientb#1", "Agentb#1"])
        page.select_option("#connection", label="b#1 (pid 2)")
        expect(page.locator("#lanes .lane")).to_have_text(["Client", "Agent"])

    def test_open_requests_have_bars(self, show):
        """As long as they were open; one that was never answered has no end, and says so."""
        page = show(sample())
        assert page.locator("#drawing rect.bar").count() == 4
        row = page.locator(".row", has_text="/tmp")
        expect(row.locator(".took")).to_have_text("unanswered")

    def test_latency_stands_at_the_answer(self, show):
        """What took long stands out."""
        page = show(sample())
        row = page.locator(".row", has_text="end_turn")
        expect(row.locator(".took")).to_have_text("2.50 s")
        expect(row.locator(".took")).to_have_class(re.compile("slow"))

    def test_peer_cannot_bring_markup(self, show):
        """What it wrote is text."""
        page = show(sample())
        assert any("Say <b>hi</b>" in row for row in rows(page))
        assert page.locator(".row b, #details b").count() == 0

    def test_width_of_the_lanes_can_be_set(self, show):
        """From 80 to 300 pixels."""
        page = show(sample())
        lane = page.locator("#lanes .lane").first
        page.locator("#width").fill("80")
        narrow = lane.bounding_box()["width"]
        page.locator("#width").fill("300")
        assert lane.bounding_box()["width"] == narrow + 220

    def test_trace_without_records_is_a_page(self, show):
        """It says that there is nothing."""
        page = show(Trace())
        expect(page.locator("#empty")).to_be_visible()


class TestFolds:
    def test_chunks_of_one_message_are_one_row(self, show):
        """With their text put together; a chunk after something else is another message."""
        page = show(sample())
        assert len(rows(page)) == 12
        assert "agent_message_chunk ×3" in labels(page)
        assert any("3 chunks" in row and "Hello world" in row for row in rows(page))

    def test_fold_opens_and_closes(self, show):
        """By click and by key."""
        page = show(sample())
        page.locator(".fold").click()
        assert len(rows(page)) == 15
        assert page.locator(".row.inner").count() == 3
        page.keyboard.press("e")
        assert len(rows(page)) == 12
        page.keyboard.press("ArrowRight")
        assert len(rows(page)) == 15
        page.keyboard.press("ArrowLeft")
        assert len(rows(page)) == 12

    def test_turns_are_one_row_each(self, show):
        """Prompt, end, and what was between."""
        page = show(sample())
        page.select_option("#collapse", "turns")
        assert len(rows(page)) == 7
        (turn,) = (row for row in rows(page) if "turn" in row)
        assert "Say <b>hi</b> → end_turn · 8 events, 4 chunks" in turn

    def test_nothing_is_folded_on_request(self, show):
        """A row for every event."""
        page = show(sample())
        page.select_option("#collapse", "none")
        assert len(rows(page)) == 14

    def test_chunks_of_sessions_that_mix_are_folded_apart(self, show):
        """Each session has its own message."""
        made = Trace()
        for n in range(4):
            made.chunk(f"s{n % 2}", str(n))
        page = show(made)
        assert [row.removeprefix("▸2 chunks") for row in rows(page)] == ["02", "13"]


class TestFilters:
    def test_search_finds_what_stands_anywhere_in_a_message(self, show):
        """And marks it where it can be seen."""
        page = show(sample())
        page.keyboard.press("/")
        page.keyboard.type("ZEBRA")
        expect(page.locator("#count")).to_have_text("1 of 14 events")
        expect(page.locator(".row mark")).to_have_text("zebra")
        page.keyboard.press("Escape")
        expect(page.locator("#count")).to_have_text("14 events")

    @pytest.mark.parametrize(("text", "count"), [("<b>hi", 1), ('"zebra":', 1), ("nothing like it", 0), ("[", 3)])
    def test_search_takes_text_as_it_is(self, show, text, count):
        """No character means anything but itself."""
        page = show(sample())
        page.fill("#search", text)
        expect(page.locator("#count")).to_have_text(f"{count} of 14 events")

    def test_kinds_can_be_left_out(self, show):
        """By a check box each."""
        page = show(sample())
        page.get_by_label("notification", exact=True).uncheck()
        expect(page.locator("#count")).to_have_text("10 of 14 events")
        page.get_by_label("response", exact=True).uncheck()
        expect(page.locator("#count")).to_have_text("6 of 14 events")

    def test_protocols_can_be_told_apart(self, show):
        """Responses have one, so they go with it."""
        made = sample()
        for record in made.records[:2]:
            record["protocol"] = "mcp"
        page = show(made)
        page.get_by_label("acp", exact=True).uncheck()
        expect(page.locator("#count")).to_have_text("2 of 14 events")

    def test_errors_alone(self, show):
        """Error answers and lines that are no messages."""
        page = show(sample())
        page.get_by_label("errors only").check()
        expect(page.locator("#count")).to_have_text("2 of 14 events")
        assert page.locator(".row.bad").count() == 2

    def test_one_session(self, show):
        """Where there are several."""
        made = sample()
        made.turn(9, "s2", "second", "x")
        page = show(made)
        page.select_option("#session", "s2")
        expect(page.locator("#count")).to_have_text("3 of 17 events")


class TestDetails:
    def test_click_shows_the_message(self, show):
        """Its facts and its JSON; the cross closes it."""
        page = show(sample())
        page.locator(".row", has_text="zebra").click()
        details = page.locator("#details")
        expect(details.locator("h2")).to_have_text("request no/such")
        assert '"zebra": 1' in details.locator("pre").inner_text()
        assert "Client → Agent" in details.inner_text()
        details.get_by_label("Close the details").click()
        expect(details).to_be_hidden()

    def test_pair_is_marked_and_reached(self, show):
        """From a request to its response and back."""
        page = show(sample())
        page.locator(".row", has_text="zebra").click()
        expect(page.locator(".row.partner")).to_have_attribute("aria-label", re.compile("Method not found"))
        page.locator("#details .jump").click()
        assert "response no/such" in chosen(page)
        page.keyboard.press("p")
        assert "request no/such" in chosen(page)

    def test_pair_inside_a_fold_opens_it(self, show):
        """What is hidden is shown when it is asked for."""
        page = show(sample())
        page.select_option("#collapse", "turns")
        page.locator(".row", has_text="end_turn").click()
        page.locator("#details .jump").click()
        assert chosen(page).startswith("response session/prompt")

    def test_same_id_used_again_is_another_pair(self, show):
        """Ids of the two sides do not mix either."""
        made = Trace()
        made.turn(1, "s", "first", "a")
        made.turn(1, "s", "second", "b")
        page = show(made)
        page.locator(".row", has_text="second").click()
        page.keyboard.press("p")
        assert page.locator('.row[aria-selected="true"]').get_attribute("data-row") == "5"

    def test_text_of_a_fold_is_whole(self, show):
        """As the reader of the chat saw it."""
        page = show(sample())
        page.locator(".row", has_text="3 chunks").click()
        expect(page.locator("#details pre")).to_have_text("Hello world")

    def test_width_is_set_by_mouse_and_by_key(self, show):
        """Both ways are for everybody."""
        page = show(sample())
        page.keyboard.press("j")
        before = page.locator("#details").bounding_box()["width"]
        page.locator("#divider").focus()
        page.keyboard.press("ArrowLeft")
        assert page.locator("#details").bounding_box()["width"] == before + 30
        box = page.locator("#divider").bounding_box()
        page.mouse.move(box["x"] + 2, 300)
        page.mouse.down()
        page.mouse.move(box["x"] - 98, 300)
        page.mouse.up()
        assert page.locator("#details").bounding_box()["width"] > before + 100


class TestKeyboard:
    def test_rows_are_walked(self, show):
        """Focus is there from the start; what is chosen is told to screen readers."""
        page = show(sample())
        page.keyboard.press("j")
        page.keyboard.press("ArrowDown")
        assert chosen(page).startswith("response initialize")
        assert page.locator("#scroll").get_attribute("aria-activedescendant") == "row-1"
        page.keyboard.press("k")
        assert chosen(page).startswith("request initialize")
        page.keyboard.press("End")
        assert chosen(page).startswith("request session/new")
        page.keyboard.press("Home")
        assert chosen(page).startswith("request initialize")

    def test_errors_are_walked(self, show):
        """Next and previous."""
        page = show(sample())
        page.keyboard.press("n")
        assert chosen(page).startswith("response no/such")
        page.keyboard.press("n")
        assert chosen(page).startswith("malformed")
        page.keyboard.press("Shift+N")
        assert chosen(page).startswith("response no/such")

    def test_search_goes_on_in_the_rows(self, show):
        """Enter leaves it with the first hit chosen."""
        page = show(sample())
        page.keyboard.press("/")
        page.keyboard.type("zebra")
        page.keyboard.press("Enter")
        assert chosen(page).startswith("request no/such")
        page.keyboard.press("Escape")
        expect(page.locator("#details")).to_be_hidden()

    def test_keys_are_listed(self, show):
        """By the question mark; letters typed into a field are text."""
        page = show(sample())
        page.keyboard.press("?")
        expect(page.locator("#help")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#help")).to_be_hidden()
        page.locator("#search").focus()
        page.keyboard.type("j?t")
        expect(page.locator("#search")).to_have_value("j?t")
        expect(page.locator("#help")).to_be_hidden()

    def test_everything_is_reached_by_tab(self, show):
        """In the order in which it stands; rows are walked by arrows, not by tab."""
        page = show(sample())
        page.locator("#search").focus()
        seen = []
        for _ in range(14):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("() => document.activeElement.id || document.activeElement.value"))
        wanted = ["request", "errors", "collapse", "width", "theme", "keys", "scroll"]
        assert [each for each in seen if each in wanted][: len(wanted)] == wanted  # then the browser's own, and again


class TestThemes:
    @staticmethod
    def darkness(page: Any) -> int:
        colour = page.locator("body").evaluate("node => getComputedStyle(node).backgroundColor")
        return 765 - sum(map(int, re.findall(r"\d+", colour)[:3]))

    @pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
    def test_page_follows_the_system(self, show, scheme, is_dark):
        """Until told otherwise."""
        assert (self.darkness(show(sample(), color_scheme=scheme)) > 400) == is_dark

    def test_theme_can_be_chosen(self, show):
        """By key or button: as the system, light, dark."""
        page = show(sample(), color_scheme="light")
        found = []
        for _ in range(3):
            page.keyboard.press("t")
            found.append((page.locator("#theme").inner_text(), self.darkness(page) > 400))
        assert found == [("theme: light", False), ("theme: dark", True), ("theme: auto", False)]

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_text_has_contrast(self, show, scheme):
        """4.5 to 1 at least, faint text and errors too (WCAG 2.2 AA)."""
        page = show(sample(), color_scheme=scheme)
        page.keyboard.press("j")

        def colours(selector: str, name: str) -> list[int]:
            text = page.locator(selector).first.evaluate(f"node => getComputedStyle(node).{name}")
            return [int(part) for part in re.findall(r"\d+", text)[:3]]

        paper, panel = colours("body", "backgroundColor"), colours("header", "backgroundColor")
        chosen_row = colours('.row[aria-selected="true"]', "backgroundColor")
        pairs = [(".row .what", paper), (".row .time", paper), (".row.bad .what", paper), ("#count", panel)]
        pairs += [('.row[aria-selected="true"] .time', chosen_row), (".row .took.slow", paper), ("#details dt", panel)]
        for selector, ground in pairs:
            assert _contrast(colours(selector, "color"), ground) >= 4.5, selector


def test_fifty_thousand_events_are_no_burden(show):
    """Only what can be seen is drawn, so moving about takes no longer than with fifty."""
    made = Trace()
    turn = 0
    while len(made.records) < 50_000:
        turn += 1
        made.turn(turn, f"s{turn % 5}", f"question {turn}", *["a few words of an answer "] * 60)
    count = f"{len(made.records):,} events"
    began = time.monotonic()
    page = show(made)
    expect(page.locator("#count")).to_have_text(count)
    page.select_option("#collapse", "none")
    page.keyboard.press("Escape")
    page.locator("#scroll").focus()
    page.keyboard.press("End")
    assert chosen(page).startswith("response session/prompt")
    assert page.locator(".row").count() < 100
    for _ in range(20):
        page.keyboard.press("PageUp")
    page.fill("#search", f"question {turn}")
    expect(page.locator("#count")).to_have_text(re.compile("^1 of"))
    assert time.monotonic() - began < 30  # it takes about three; a page that draws every row takes minutes


def _contrast(one: list[int], other: list[int]) -> float:
    """The ratio that WCAG defines."""

    def luminance(colour: list[int]) -> float:
        parts = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_page_of_a_file_is_found_by_its_name(show, tmp_path):
    """The tab of the browser says which trace it is."""
    page = show(sample())
    assert page.title() == "trace.jsonl – acprt trace"
    assert Path(tmp_path / "page.html").exists()
