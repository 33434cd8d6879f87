"""`acprt check`: what it says of agents that keep the rules, of one that breaks each of them, and how it says it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from acprt.cli.check.runner import ALL_CHECKS, GROUPS
from tests.cli.running import PROGRAM, ROOT, acprt, acprt_program, environment

FAULTY = [sys.executable, "-I", "-S", str(Path(__file__).with_name("faulty_agent.py"))]
TESTY = [sys.executable, "-m", "acprt.testing.testy"]
SLOW = ["--prompt", "quick", "--slow-prompt", "slow"]

UNTRIED = {"handshake.start", "speed.round_trip", "speed.pipelined", "speed.session"}
"""What no agent here breaks: it would take half a minute, or cannot be broken."""

RUNS_WITH = {
    "output.purity": "handshake",
    "output.version": "handshake",
    "output.responses": "requests.unknown",
    "output.schema": "turns.end",
    "output.extensions": "turns.end",
    "output.sessions": "sessions.new",
}
"""What must run before a check that looks back."""

RULES = [check for check in ALL_CHECKS if check.id not in UNTRIED and 1 in check.versions]


def report_of(*words: str, exit_code: int = 0) -> dict[str, Any]:
    done = acprt("check", "--json", "--timeout", "5", *words)
    assert done.stdout, done.output
    report: dict[str, Any] = json.loads(done.stdout)
    failed = [(result["id"], result["detail"]) for result in report["results"] if result["verdict"] == "fail"]
    assert done.exit_code == exit_code, failed
    return report


def running(argument: str) -> list[int]:
    """Faulty agents that were started with it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = path.read_bytes().split(b"\0")
            if words[-2:-1] == [argument.encode()] and words[-3:-2] == [FAULTY[-1].encode()] and b"check" not in words:
                found.append(int(path.parent.name))
    return found


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    return {result["id"]: result["verdict"] for result in report["results"]}


class TestAgentsThatKeepTheRules:
    def test_an_agent_without_faults_passes_everything(self) -> None:
        report = report_of(*SLOW, "--strict", "--", *FAULTY)
        assert set(verdicts(report)) == {check.id for check in ALL_CHECKS if 1 in check.versions}
        assert {id: verdict for id, verdict in verdicts(report).items() if verdict != "pass"} == {}
        assert report["agent"] == "faulty 1"

    @pytest.mark.slow
    def test_testy_keeps_every_rule_of_version_1(self) -> None:
        report = report_of("--slow-prompt", "wait_for_cancel", "--skip", "ends.eof_turn", "--", *TESTY)
        others = {id: verdict for id, verdict in verdicts(report).items() if verdict != "pass"}
        assert others == {
            "sessions.relative": "fail",
            "sessions.fork": "not applicable",
            "sessions.resume": "not applicable",  # a session that was closed is forgotten
        }

    @pytest.mark.slow
    def test_testy_keeps_every_rule_of_version_2(self) -> None:
        report = report_of(
            "--v2", "--slow-prompt", "wait_for_cancel", "--skip", "ends", "--skip", "speed", "--", *TESTY
        )
        assert report["protocol_version"] == 2
        assert "fail" not in {
            result["verdict"] for result in report["results"] if result["id"] != "sessions.relative"
        }, report
        assert verdicts(report)["cancels.during"] == "pass"

    @pytest.mark.parametrize(
        ("example", "version", "known"),
        [
            ("echo_agent.py", 1, {"sessions.distinct"}),  # its one session has one id: it is the shortest agent
            ("streaming_agent.py", 1, set()),
            pytest.param("slow_agent.py", 1, set(), marks=pytest.mark.slow),
            ("both_versions.py", 1, set()),
            ("both_versions.py", 2, set()),
            ("v2_agent.py", 2, set()),
        ],
    )
    def test_examples_keep_the_rules(self, example: str, version: int, known: set[str]) -> None:
        """Those that agents must keep."""
        program = [sys.executable, str(ROOT / "examples" / example)]
        options = ["--v2"] if version == 2 else []
        skipped = ["--skip", "lines", "--skip", "speed", "--skip", "ends.eof_turn"]
        report = report_of(
            *options, *skipped, "--slow-prompt", "word " * 10_000, "--", *program, exit_code=1 if known else 0
        )
        assert {r["id"] for r in report["results"] if r["verdict"] == "fail" and r["level"] == "must"} == known

    def test_the_built_in_echo_agent_keeps_them(self) -> None:
        report = report_of("--skip", "ends", "--", sys.executable, "-m", "acprt", "echo")
        assert not [r for r in report["results"] if r["verdict"] == "fail" and r["level"] == "must"]


class TestAgentsThatDoNot:
    @pytest.mark.parametrize("check", RULES, ids=lambda check: check.id)
    def test_each_rule_is_noticed_when_it_is_broken(self, check: Any) -> None:
        """By the check that is about it."""
        fault = {
            "sessions.load": "session/load",
            "sessions.resume": "session/resume",
            "sessions.delete": "session/delete",
            "ends.eof_unopened": "ends.eof",
        }
        names = {check.id, RUNS_WITH.get(check.id, check.id)}
        only = [word for name in sorted(names) for word in ("--only", name)]
        report = report_of(
            *only, *SLOW, "--timeout", "1", "--", *FAULTY, fault.get(check.id, check.id),
            exit_code=1 if check.level == "must" else 0,
        )  # fmt: skip
        (result,) = [each for each in report["results"] if each["id"] == check.id]
        assert result["verdict"] == "fail", result
        assert result["rule"]
        assert result["detail"]
        assert result["frames"] or check.id.startswith("output.") or check.id in _SAYS_NOTHING, result

    def test_an_agent_that_does_not_open_is_not_asked_for_more(self) -> None:
        """It would say the same seventy times. Its stderr tells why."""
        report = report_of(*SLOW, "--", *FAULTY, "handshake.crash", exit_code=1)
        first, *others = report["results"]
        assert first["verdict"] == "fail"
        assert "exit status 3" in first["detail"]
        assert "cannot read the config" in first["detail"]
        asked = [
            r for r in others if r["verdict"] != "not applicable" and r["id"].partition(".")[0] in ("sessions", "turns")
        ]
        assert asked == []
        assert report["seconds"] < 20

    def test_an_agent_that_wants_a_login_is_judged_by_what_it_does_before(self) -> None:
        report = report_of(*SLOW, "--", *FAULTY, "login")
        found = verdicts(report)
        assert {found[id] for id in ("turns.end", "cancels.during", "sessions.new")} == {"not applicable"}
        assert found["requests.unknown"] == "pass"


_SAYS_NOTHING = {"ends.eof_unopened"}
"""Checks in which no line passes."""


class TestTheCommand:
    def test_the_terminal_shows_groups_rules_and_a_summary(self) -> None:
        done = acprt("check", "--only", "requests", "--timeout", "2", "--", *FAULTY, "requests.unknown")
        assert done.exit_code == 1
        lines = done.stdout.splitlines()
        assert "requests" in lines
        assert "  ✗ Answers an unknown method with -32601: answered error -32600 'Method not found'" in lines
        assert "      requests.unknown, must: JSON-RPC 2.0 §5.1: method not found" in lines
        assert re.fullmatch(
            r"faulty 1, ACP version 1: 8 passed, 1 failed, 0 should be better, 0 not applicable, in [\d.]+ s", lines[-1]
        )

    def test_frames_of_a_failure_are_shown_when_asked_for(self) -> None:
        done = acprt("check", "--frames", "--only", "requests.unknown", "--", *FAULTY, "requests.unknown")
        assert '→ {"jsonrpc":"2.0","id":2,"method":"acprt/no_such_method","params":{}}' in done.stdout
        assert '← {"jsonrpc": "2.0", "id": 2, "error"' in done.stdout

    def test_an_agents_name_steers_no_terminal(self) -> None:
        done = acprt("check", "--only", "handshake", "--", *FAULTY, "escapes")
        assert "\x1b[2J" not in done.stdout
        assert "[2J[red]faulty" in done.stdout.splitlines()[-1]

    def test_what_agents_only_should_do_counts_when_strict(self) -> None:
        words = ["--only", "lines.blank", "--", *FAULTY, "lines.blank"]
        assert acprt("check", *words).exit_code == 0
        assert acprt("check", "--strict", *words).exit_code == 1

    def test_the_page_has_every_check_and_is_complete_in_itself(self, tmp_path: Path) -> None:
        page = tmp_path / "report.html"
        acprt("check", "--only", "requests", "--html", str(page), "--", *FAULTY, "requests.unknown")
        text = page.read_text(encoding="utf-8")
        for check in ALL_CHECKS:
            assert (f'id="{check.id}"' in text) == check.id.startswith("requests."), check.id
        assert '<details id="requests.unknown" class="fail" open>' in text
        assert "acprt/no_such_method" in text
        assert not re.search(r"""(src|href)=|@import|url\(|<script""", text)

    def test_what_an_agent_says_is_text_in_the_page(self, tmp_path: Path) -> None:
        page = tmp_path / "report.html"
        agent = "import sys; print('<script>alert(1)</script>', flush=True); sys.stdin.read()"
        command = [sys.executable, "-I", "-S", "-c", agent]
        acprt("check", "--timeout", "0.5", "--only", "handshake", "--html", str(page), "--", *command)
        assert "&lt;script&gt;" in page.read_text(encoding="utf-8")
        assert "<script>" not in page.read_text(encoding="utf-8")

    def test_the_list_names_every_check(self) -> None:
        done = acprt("check", "--list")
        assert [line.split()[0] for line in done.stdout.splitlines()] == [check.id for check in ALL_CHECKS]
        assert done.exit_code == 0

    @pytest.mark.parametrize(
        "words", [["--only", "nothing"], ["--skip", "nothing"], ["--only", "turns", "--skip", "turns"]]
    )
    def test_a_name_that_is_none_is_a_usage_error(self, words: list[str]) -> None:
        assert acprt("check", *words, "--", *FAULTY).exit_code == 2

    def test_an_agent_that_cannot_be_started_has_an_exit_code_of_its_own(self) -> None:
        done = acprt("check", "--", "/no/such/agent")
        assert done.exit_code == 3
        assert "/no/such/agent" in done.stderr

    def test_it_leaves_no_process_and_no_folder_behind(self, tmp_path: Path) -> None:
        """Also of an agent that neither EOF nor SIGTERM ends."""
        pids = tmp_path / "pids"
        agent = f"import os; open({str(pids)!r}, 'a').write(f'{{os.getpid()}} '); __file__ = {FAULTY[-1]!r}\n"
        program = tmp_path / "agent.py"
        program.write_text(agent + Path(FAULTY[-1]).read_text(encoding="utf-8").replace("from __future__", "# "))
        words = ["--only", "ends.sigterm", "--only", "requests.unknown", *SLOW]
        done = acprt_program("check", *words, "--", sys.executable, "-I", "-S", str(program), "ends.sigterm")
        assert "still running 5 s after SIGTERM" in done.stdout
        started = [int(pid) for pid in pids.read_text().split()]
        assert len(started) == 2
        assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]

    def test_ctrl_c_ends_the_agent_and_says_so_by_its_exit_code(self) -> None:
        """While a turn runs that nobody else would end."""
        words = ["check", "--only", "turns", "--timeout", "40", "--prompt", "slow", "--", *FAULTY, "interrupted"]
        with subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, text=True, env=environment()) as command:
            assert command.stdout is not None
            assert command.stdout.readline().startswith("checking ")
            while not (agents := running("interrupted")):
                time.sleep(0.05)
            command.send_signal(signal.SIGINT)
            command.communicate(timeout=20)
        assert command.returncode == 130
        assert not [pid for pid in agents if Path(f"/proc/{pid}").exists()]

    def test_a_page_that_cannot_be_written_is_refused_before_the_agent_works(self, tmp_path: Path) -> None:
        """At the end it would have cost many turns."""
        started = tmp_path / "started"
        done = acprt("check", "--html", str(tmp_path / "no-such" / "page.html"), "--", "touch", str(started))
        assert done.exit_code == 2
        assert "--html: " in done.stderr
        assert not started.exists()

    def test_ids_are_unique_and_name_their_group(self) -> None:
        ids = [check.id for check in ALL_CHECKS]
        assert len(ids) == len(set(ids))
        assert {id.partition(".")[0] for id in ids} == set(GROUPS)
