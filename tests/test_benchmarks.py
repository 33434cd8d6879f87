"""The benchmark programs run and give numbers. What they are is for a machine at rest to say, never for a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import publish
from benchmarks.harness import charts
from benchmarks.harness.curves import CURVES, curve_points
from benchmarks.harness.peers import Peer, known_peers, missing
from benchmarks.harness.report import growth_sections, table_sections
from benchmarks.harness.results import Results
from benchmarks.harness.rounds import Record
from benchmarks.harness.workloads import Goal, Workload, selected, soak, workloads

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / "benchmarks" / "bench.py"
PEERS = {peer.name: peer for peer in known_peers()}
TABLE = workloads(starts=1)

# Sizes at which every workload takes a moment.
SMALL = {"pipelined": 4, "naps": 10, "storm": 10, "agents": 2, "idle": 2, "pending": 50, "echo": 1000, "proxied": 2}
OWN_PEERS = ("acprt", "acprt-acp", "acprt-session", "acprt-stock", "limit", "limit-stock", "blocking")


def bench(*options: str, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCH), *options], capture_output=True, text=True, timeout=timeout, check=False
    )


def small_sample(peer: Peer, workload: str) -> dict[str, Any]:
    """What the client program of `peer` prints for a workload that is as small as it can be."""
    command = [*peer.client_command(), workload, "--size", str(SMALL.get(workload, 1)), "--seconds", "0.05"]
    done = subprocess.run(command, env=peer.environment(), capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    sample: dict[str, Any] = json.loads(done.stdout)
    return sample


def programs() -> list[Any]:
    """Each of our peers with each workload of its client program, and each other peer with a few that differ most."""
    kinds = dict.fromkeys(
        row.arguments[0] for row in [*TABLE, soak(1.0)] if row.arguments and row.arguments[0] != "import"
    )
    found = []
    for peer in PEERS.values():
        for kind in kinds:
            ours = peer.name in OWN_PEERS
            if kind not in peer.lacks and (ours or kind in ("updates", "nested", "storm", "pending")):
                mark = pytest.mark.slow if ours else pytest.mark.interop
                found.append(pytest.param(peer, kind, marks=mark, id=f"{peer.name}-{kind}"))
    return found


class TestPrograms:
    @pytest.mark.parametrize(("peer", "workload"), programs())
    def test_client_gives_a_sample(self, peer, workload):
        """Of something that was counted, from a peer that kept the order of its updates."""
        if reason := missing(peer):
            pytest.skip(reason)
        sample = small_sample(peer, workload)
        assert sample["count"] > 0
        rows = [row for row in [*TABLE, soak(1.0)] if row.arguments[:1] == (workload,)]
        assert all(row.value(sample) is not None for row in rows)
        assert not sample.get("out_of_order")
        if peer.name in OWN_PEERS:
            assert not sample.get("handled_after_answer")

    def test_agent_with_more_handlers_answers(self):
        """The curve over registered handlers: the agent is told how many."""
        peer = PEERS["acprt-stock"]
        command = [*peer.client_command(), "sequential", "--handlers", "20", "--seconds", "0.05"]
        done = subprocess.run(command, env=peer.environment(), capture_output=True, text=True, timeout=50, check=False)
        assert json.loads(done.stdout)["count"] > 0, done.stderr


class TestCommand:
    @pytest.mark.slow
    @pytest.mark.timeout(120)
    def test_quick_run_of_one_workload_yields_ratios(self, tmp_path):
        """acprt and the limit each give a sample, and the goal between them is judged; all of it is written."""
        pytest.importorskip("uvloop", reason="both peers of this run are on uvloop")
        done = bench("--quick", "--only", "w1", "--peers", "acprt,limit", "--results", str(tmp_path))
        assert done.returncode == 0, done.stderr
        run = json.loads((tmp_path / "table.json").read_bytes())
        assert {(record["workload"], record["peer"]) for record in run["records"]} == {
            (workload, peer) for workload in ("w1", "w1-p50") for peer in ("acprt", "limit")
        }
        assert all(record["sample"]["count"] > 0 and record["sample"]["seconds"] > 0 for record in run["records"])
        (judged,) = [verdict for verdict in run["verdicts"] if verdict["goal"]["against"] == "limit"]
        assert judged["word"].startswith(("pass", "FAIL"))
        assert all(ratio > 0 for ratio in judged["measured"]["values"])
        assert (tmp_path / "table.md").read_text().rstrip() == done.stdout.rstrip()
        assert charts.can_draw() == (tmp_path / "table.svg").exists()

    @pytest.mark.slow
    @pytest.mark.timeout(180)
    def test_profile_names_rooms_of_the_house(self, tmp_path):
        """Shares of each program add up to all of its time; on a busy machine a short run has few samples."""
        pytest.importorskip("uvloop", reason="the sampled programs are on uvloop")
        done = bench("--quick", "--parts", "profile", "--peers", "acprt", "--results", str(tmp_path), timeout=170)
        assert done.returncode == 0, done.stderr
        shares = json.loads((tmp_path / "profile.json").read_bytes())["shares"]
        assert {name.partition(", ")[2] for name in shares} == {"client", "agent"}
        assert all(sum(by_room.values()) == pytest.approx(1.0) for by_room in shares.values() if by_room)
        rooms = {room for by_room in shares.values() for room in by_room}
        assert any(room.startswith(("wire/", "runtime/", "transports/")) for room in rooms)

    def test_missing_peer_is_named_not_hidden(self, tmp_path):
        """It stands in the report as skipped, with what to do about it; the others are measured."""
        absent = tmp_path / "python"
        options = ["--quick", "--only", "w5-import", "--peers", "incumbent,blocking", "--incumbent-python", str(absent)]
        done = bench(*options, timeout=50)
        assert done.returncode == 0, done.stderr
        assert f"skipped: incumbent: there is no {absent}" in done.stdout
        assert "make peers" in done.stdout

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            (["--peers", "acprt,nobody"], "no peer is called nobody; there are acprt, incumbent"),
            (["--parts", "tabel"], "no part is called tabel; there are table"),
            (["--peers", "blocking", "--only", "w99"], "no workload is called w99; there are w1, w1-p50"),
        ],
    )
    def test_unknown_name_is_answered_with_those_there_are(self, options, complaint):
        done = bench(*options, timeout=50)
        assert done.returncode == 1
        assert complaint in done.stderr


class TestRows:
    def test_every_workload_has_a_row(self):
        """W1 to W12; the soak is the one that has to be asked for."""
        families = {row.key.partition("-")[0] for row in [*TABLE, soak(600.0)]}
        assert families == {f"w{number}" for number in range(1, 13)}

    def test_row_that_shows_another_rows_samples_brings_it_along(self):
        chosen = selected(TABLE, ["w9-share"], quick=False)
        assert [row.key for row in chosen] == ["w9", "w9-share"]

    def test_quick_run_has_no_row_without_its_samples(self):
        chosen = {row.key for row in selected(TABLE, [], quick=True)}
        assert "w9" not in chosen
        assert all(row.sample_of in chosen for row in TABLE if row.sample_of and row.key in chosen)

    def test_peer_is_not_asked_for_what_it_cannot_do(self):
        keys = {row.key for row in TABLE if row.arguments and row.can_be_done_by(PEERS["blocking"])}
        assert "w1" in keys
        assert not keys & {"w6", "w6-idle", "w7", "w9", "w10", "w12"}

    def test_curves_reach_from_the_smallest_to_the_largest(self):
        sizes = {curve.key: (curve.sizes[0], curve.sizes[-1]) for curve in CURVES}
        assert sizes == {
            "size": (100, 16 * 2**20),
            "in-flight": (1, 10_000),
            "connections": (1, 200),
            "handlers": (1, 1_000),
        }


def rate(key: str = "w1", **more: Any) -> Workload:
    return Workload(key=key, title="rate", unit="/s", arguments=("sequential",), value=lambda s: s["rate"], **more)


def records(key: str = "w1", **rates_by_peer: list[float]) -> list[Record]:
    return [
        Record(round=number, workload=key, peer=peer.replace("_", "-"), sample={"rate": value, "count": 1})
        for peer, rates in rates_by_peer.items()
        for number, value in enumerate(rates)
    ]


class TestResults:
    def test_ratio_is_taken_within_a_round_before_the_median(self):
        """A machine that is half as fast in one round changes no ratio."""
        results = Results(records(acprt=[100.0, 50.0, 100.0], limit=[200.0, 100.0, 200.0]), [rate()])
        ratios = results.ratios("w1", "acprt", "limit")
        assert ratios is not None
        assert ratios.values == (0.5, 0.5, 0.5)

    def test_round_that_lacks_one_of_the_two_gives_no_ratio(self):
        failed = Record(round=1, workload="w1", peer="limit", error="it died")
        results = Results([*records(acprt=[100.0, 100.0], limit=[50.0]), failed], [rate()])
        ratios = results.ratios("w1", "acprt", "limit")
        assert ratios is not None
        assert ratios.values == (2.0,)

    def test_closest_peer_is_the_fastest_of_another_project(self):
        """Neither a limit nor acprt itself under another name."""
        taken = records(acprt=[100.0], limit=[300.0], acprt_stock=[90.0], mcp=[10.0], pygls=[20.0])
        closest = Results(taken, [rate()]).closest_peer("w1")
        assert closest is not None
        assert (closest[0], closest[1].median) == ("pygls", 5.0)

    def test_row_for_typed_peers_leaves_the_others_out(self):
        taken = records(acprt=[100.0], pylsp=[120.0], mcp=[10.0])
        closest = Results(taken, [rate(ahead_of_untyped=False)]).closest_peer("w1")
        assert closest is not None
        assert closest[0] == "mcp"


SHOWN = [PEERS["acprt"], PEERS["limit"], PEERS["mcp"]]


class TestReport:
    def test_failed_goal_and_failed_sample_are_said(self):
        failed = Record(round=0, workload="w1", peer="mcp", error="mcp, w1: exit 1: it died")
        row = rate(goals=(Goal("limit", 0.9),))
        results = Results([*records(acprt=[50.0], limit=[100.0]), failed], [row])
        sections = table_sections(results, [row], SHOWN, {"pygls": "there is none"}, ["a machine"])
        assert "0.50 (0.50–0.50) | FAIL" in sections["goals"]
        assert "FAILED: mcp, w1: exit 1: it died" in sections["trust"]
        assert "skipped: pygls: there is none" in sections["trust"]

    def test_growth_has_a_table_per_curve_that_was_measured(self):
        points = [point for point in curve_points() if point.curve == "handlers"]
        taken = [
            Record(
                round=0,
                workload=point.key,
                peer="acprt",
                sample={"count": 10, "client_cpu": 1e-4, "agent_cpu": 1e-4},
            )
            for point in points
        ]
        sections = growth_sections(Results(taken, points), points, SHOWN, {}, [])
        assert sections.keys() == {"about", "handlers", "trust"}
        assert "1,000" in sections["handlers"]
        assert "20.0 (0 %)" in sections["handlers"]

    def test_same_numbers_draw_the_same_bytes(self, tmp_path):
        """Charts are committed: one that changed without its numbers would be noise."""
        if not charts.can_draw():
            pytest.skip("matplotlib is not installed: `make bench-setup`")
        results = Results(records(acprt=[50.0], limit=[100.0]), [rate()])
        drawn = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (path,) = charts.draw_table(results, [rate()], SHOWN, tmp_path / name)
            drawn.append(path.read_bytes())
        assert drawn[0] == drawn[1]


class TestPage:
    def test_results_replace_their_places_and_nothing_else(self, tmp_path, capsys):
        """What has no newer result is kept and named; a chart that the page shows is copied beside it."""
        results, page = tmp_path / "results", tmp_path / "docs" / "performance.md"
        results.mkdir()
        page.parent.mkdir()
        page.write_text(
            "before\n<!-- bench:table.goals -->\nold\n<!-- /bench -->\nbetween\n"
            "<!-- bench:growth.size -->\nold growth\n<!-- /bench -->\n<!-- bench:table.chart-table --><!-- /bench -->\n"
        )
        chart = "![chart: table](charts/table.svg)"
        (results / "table.json").write_text(json.dumps({"sections": {"goals": "| new |", "chart-table": chart}}))
        (results / "table.svg").write_text("<svg/>")
        assert publish.main(results, page) == 0
        assert page.read_text() == (
            "before\n<!-- bench:table.goals -->\n\n| new |\n\n<!-- /bench -->\nbetween\n"
            "<!-- bench:growth.size -->\nold growth\n<!-- /bench -->\n"
            f"<!-- bench:table.chart-table -->\n\n{chart}\n\n<!-- /bench -->\n"
        )
        assert (page.parent / "charts" / "table.svg").read_text() == "<svg/>"
        assert "growth.size" in capsys.readouterr().err

    def test_places_of_the_page_are_sections_that_a_run_writes(self):
        """A misspelt one would stay empty for ever."""
        text = publish.PAGE.read_text(encoding="utf-8")
        assert text.count("<!-- bench:") == text.count("<!-- /bench -->") > 0
        known = {f"table.{name}" for name in ("about", "goals", "ratios", "absolute", "cpu", "trust")}
        known |= {f"growth.{name}" for name in ("about", "trust", *(curve.key for curve in CURVES))}
        known |= {"table.chart-table", "profile.chart-profile", "soak.chart-soak"}
        known |= {f"growth.chart-growth-{curve.key}" for curve in CURVES}
        known |= {"profile.about", "profile.profile", "soak.about", "soak.absolute", "soak.trust"}
        places = {f"{block['part']}.{block['section']}" for block in publish._BLOCK.finditer(text)}
        assert places <= known
