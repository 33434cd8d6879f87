"""What /proc tells of a child, as the kit reads it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from acprt.testing.proc import HAS_PROC, RunningProcess, running_processes


def told_of(pid: int) -> RunningProcess:
    return next(each for each in running_processes() if each.label.startswith(f"{pid} ("))


@pytest.mark.skipif(not HAS_PROC, reason="there is no /proc here")
def test_a_child_is_told_with_its_parent_its_group_and_its_end() -> None:
    command = [sys.executable, "-I", "-S", "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as child:
        assert told_of(child.pid)[2:] == (os.getpid(), child.pid)

        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert told_of(child.pid).state == "Z"
