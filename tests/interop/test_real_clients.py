"""Whole clients of other projects, as `make peers-heavy` installs them, with an acprt agent."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.interop.turn import PEERS, WORDS_AGENT, check_client

pytestmark = [pytest.mark.real_peers, pytest.mark.timeout(120)]

SECONDS = 60.0


class Acpx:
    """The program `acpx`: one prompt per run, and each frame that passes, either way, as a line of its stdout."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.status_file = folder / "exit_status"
        self.folder = folder
        # It ends as soon as its own work is done: the agent's exit status has to be kept by the agent's own parent.
        agent = folder / "agent.sh"
        agent.write_text(f"#!/bin/sh\n{shlex.join(WORDS_AGENT)}\necho $? >{self.status_file}\n", encoding="utf-8")
        agent.chmod(0o755)
        self._command = [*command, "--agent", str(agent), "--approve-all", "--format", "json", "exec"]
        node = Path(command[0]).parent
        self._env = {"PATH": f"{node}{os.pathsep}{os.defpath}", "HOME": str(folder), "LANG": "C.UTF-8"}

    def prompt(self, text: str, on_frame: Callable[[Any, subprocess.Popen[str]], None] | None = None) -> list[Any]:
        """All frames of the turn. Both programs must end by themselves, and cleanly."""
        frames = []
        with subprocess.Popen(
            [*self._command, text], env=self._env, cwd=self.folder, stdout=subprocess.PIPE, text=True
        ) as program:
            assert program.stdout is not None
            for line in program.stdout:
                frames.append(json.loads(line))
                if on_frame is not None:
                    on_frame(frames[-1], program)
            assert program.wait(SECONDS) == 0
        assert self.agent_exit_status() == 0
        return frames

    def agent_exit_status(self) -> int:
        ends = time.monotonic() + SECONDS
        while not self.status_file.exists() or not self.status_file.read_text(encoding="utf-8"):
            assert time.monotonic() < ends, "the agent is still there"
            time.sleep(0.02)
        status = int(self.status_file.read_text(encoding="utf-8"))
        self.status_file.unlink()
        return status


@pytest.fixture
def acpx(installed_acpx, tmp_path) -> Acpx:
    return Acpx(installed_acpx, tmp_path)


def texts(frames: list[Any]) -> list[str]:
    return [frame["params"]["update"]["content"]["text"] for frame in frames if frame.get("method") == "session/update"]


def calls(frames: list[Any]) -> list[str]:
    return [frame["method"] for frame in frames if "method" in frame and frame["method"] != "session/update"]


class TestAcpx:
    """Offers files and terminals, and gives permission."""

    def test_turn_with_a_permission_request(self, acpx) -> None:
        """Its ids start at 0 and so do not have the agent's; the updates come in order, the answer behind them."""
        frames = acpx.prompt("one ASK three")
        assert texts(frames) == ["one", "yes", "three"]
        assert calls(frames) == ["initialize", "session/new", "session/prompt", "session/request_permission"]
        assert frames[-1]["result"] == {"stopReason": "end_turn"}

    def test_files_and_terminals_of_the_client(self, acpx) -> None:
        """The agent's requests in the other direction, by the generated classes."""
        frames = acpx.prompt("FILE RUN")
        assert texts(frames) == ["two", "done 3"]
        assert (acpx.folder / "from_the_agent.txt").read_text(encoding="utf-8") == "one\ntwo\nthree\n"
        assert calls(frames)[3:] == [
            "fs/write_text_file",
            "fs/read_text_file",
            "terminal/create",
            "terminal/wait_for_exit",
            "terminal/output",
            "terminal/release",
        ]

    def test_interrupt_in_mid_turn_cancels_it(self, acpx) -> None:
        """Ctrl-C becomes `session/cancel`; the prompt is answered with its stop reason."""

        def interrupt(frame: Any, program: subprocess.Popen[str]) -> None:
            if frame.get("method") == "session/update":
                program.send_signal(signal.SIGINT)

        frames = acpx.prompt("WAIT", interrupt)
        assert texts(frames) == ["WAIT"]
        assert "session/cancel" in calls(frames)
        assert frames[-1]["result"] == {"stopReason": "cancelled"}


class TestAcpClient:
    """Shares no code with any SDK, and ends the agent by SIGTERM."""

    def test_it_drives_our_agent_through_turns(self, installed_acp_client) -> None:
        """A turn, a permission request, a cancel in mid-turn; SIGTERM ends the agent cleanly."""
        assert check_client([installed_acp_client, str(PEERS / "acp_client_client.py")]) == {}
