"""Runs a list of tasks against one or several agents, many at a time: what comes back is a line of JSON per task.

python examples/agent_benchmark.py tasks.jsonl --agent "echo=python examples/echo_agent.py" --parallel 8 --out run.jsonl

A task is a line of JSON, `{"id": "sum", "prompt": "2 + 2 = ?", "expect": "4"}`; `expect` is a regular expression that
the agent's text must contain, and may be left out. Every attempt gets an agent process of its own, so that a crash or a
hang costs one task. What an agent asks permission for is allowed. Started again with the same `--out`, it runs what is
not in there yet: that is how a run that was interrupted goes on.
"""

import argparse
import asyncio
import itertools
import re
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median

import msgspec

import acprt
from acprt import acp
from acprt.acp import v1

# An agent that does not go when it should is ended soon: its process is not used again.
LIMITS = acprt.Limits(cancel_grace_seconds=0.5, exit_grace_seconds=0.5, term_grace_seconds=0.5)

COLOURS = {"passed": "#2d9d78", "failed": "#d9a30d", "timeout": "#d9730d", "crashed": "#c43d5b", "error": "#9b51e0"}
STATUSES = tuple(COLOURS)
WORTH_ANOTHER_TRY = ("timeout", "crashed", "error")  # a wrong answer is an answer


class Task(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    prompt: str
    expect: str = ""


class Result(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A line of the results: the last attempt at one task by one agent."""

    agent: str
    task: str
    status: str
    attempts: int = 1
    seconds: float
    first_update_seconds: float | None = None
    updates: int = 0
    stop_reason: str = ""
    text: str = ""
    error: str = ""


async def attempt(agent: str, command: str, task: Task, options: argparse.Namespace) -> Result:
    """One process, one session, one prompt. Never raises for what an agent does."""
    result = Result(agent=agent, task=task.id, status="error", seconds=0.0)
    began = time.perf_counter()
    try:
        async with asyncio.timeout(options.timeout):
            await prompt(command, task, options.cwd, result, began)
        right = result.stop_reason == "end_turn" and re.search(task.expect, result.text)
        result.status = "passed" if right else "failed"
    except TimeoutError:
        result.status, result.error = "timeout", f"nothing after {options.timeout:g} s"
    except acprt.RpcError as error:
        gone = acprt.is_incoming_transport_closed(error) or "Could not start" in error.message
        result.status, result.error = ("crashed" if gone else "error"), str(error)
    except Exception as error:  # whatever it is, the other tasks go on
        result.error = f"{type(error).__name__}: {error}"
    result.seconds = round(time.perf_counter() - began, 4)
    return result


async def prompt(command: str, task: Task, cwd: str, result: Result, began: float) -> None:
    client = acp.Client("agent-benchmark", version=acprt.__version__, limits=LIMITS)

    @client.method
    async def permission(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        return acp.allow_first(request)

    async with client.connect(acprt.AgentProcess.parse(command)) as cx:
        await acp.initialize(cx)
        async with acp.session(cx, cwd=cwd) as session:
            async for update in session.prompt(task.prompt):
                result.updates += 1
                if result.first_update_seconds is None:
                    result.first_update_seconds = round(time.perf_counter() - began, 4)
                match update:
                    case v1.AgentMessageChunk(content=v1.TextContent(text=text)):
                        result.text += text
            result.stop_reason = session.stop_reason or ""


async def run(agents: dict[str, str], tasks: list[Task], options: argparse.Namespace) -> list[Result]:
    """All that is not in the results yet, `--parallel` at a time. Gives the results that were there, too."""
    results = read_results(options.out)
    done = {key for key, result in results.items() if result.status == "passed" or not options.again}
    # Agents take turns, so that what the machine does over minutes hits all of them.
    jobs = [(agent, task) for task, agent in itertools.product(tasks, agents) if (agent, task.id) not in done]
    progress = Progress(len(done), len(jobs))
    left = iter(jobs)
    with options.out.open("ab") as out:

        async def work() -> None:
            for agent, task in left:
                result = await with_retries(agent, agents[agent], task, options)
                out.write(msgspec.json.encode(result) + b"\n")
                out.flush()
                results[agent, task.id] = result
                progress.show(result)

        async with asyncio.TaskGroup() as group:
            for _ in range(options.parallel):
                group.create_task(work())
    progress.end()
    return list(results.values())


async def with_retries(agent: str, command: str, task: Task, options: argparse.Namespace) -> Result:
    for attempts in itertools.count(1):
        result = await attempt(agent, command, task, options)
        result.attempts = attempts
        if result.status not in WORTH_ANOTHER_TRY or attempts > options.retries:
            return result
    raise AssertionError("count() has no end")


def read_results(path: Path) -> dict[tuple[str, str], Result]:
    """What earlier runs wrote, the last result of each agent and task. A line that was cut off when a run was stopped
    is dropped, so that its task runs again.
    """
    if not path.exists():
        return {}
    lines = path.read_bytes().split(b"\n")
    if lines.pop():
        path.write_bytes(b"".join(line + b"\n" for line in lines))
    results = [msgspec.json.decode(line, type=Result) for line in lines if line]
    return {(result.agent, result.task): result for result in results}


class Progress:
    """How far it is: one line that is written over in a terminal, a line per result elsewhere."""

    def __init__(self, before: int, jobs: int) -> None:
        self._done, self._jobs = 0, jobs
        self._counts: Counter[str] = Counter()
        self._began = time.monotonic()
        if before:
            print(f"{before} results were there; {jobs} to go", file=sys.stderr)

    def show(self, result: Result) -> None:
        self._done += 1
        self._counts[result.status] += 1
        counts = ", ".join(f"{self._counts[status]} {status}" for status in STATUSES if self._counts[status])
        per_second = self._done / (time.monotonic() - self._began)
        line = f"{self._done}/{self._jobs} {result.agent} {result.task}: {result.status}"
        if sys.stderr.isatty():
            print(f"\r\x1b[K{line} | {counts} | {per_second:.1f}/s", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        if sys.stderr.isatty() and self._done:
            print(file=sys.stderr)


def summary(results: list[Result], agents: dict[str, str]) -> str:
    """A row per agent, the one that passed most first. Times are those of attempts that came to an end."""
    rows = [["agent", "tasks", *STATUSES, "median s", "90 % s", "first update s"]]
    by_agent = {agent: [result for result in results if result.agent == agent] for agent in agents}
    for agent, own in sorted(by_agent.items(), key=lambda pair: -sum(result.status == "passed" for result in pair[1])):
        counts = Counter(result.status for result in own)
        ended = sorted(result.seconds for result in own if result.status in ("passed", "failed"))
        first = [result.first_update_seconds for result in own if result.first_update_seconds is not None]
        times = [f"{median(ended):.2f}", f"{ended[len(ended) * 9 // 10]:.2f}"] if ended else ["–", "–"]
        rows.append([agent, str(len(own)), *(str(counts[status]) for status in STATUSES), *times])
        rows[-1].append(f"{median(first):.2f}" if first else "–")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def chart(results: list[Result], agents: dict[str, str]) -> str:
    """An SVG: per agent a bar of all its tasks, cut by how they ended."""
    parts, y = [], 30
    for place, status in enumerate(STATUSES):
        parts.append(f'<rect x="{160 + place * 90}" y="8" width="10" height="10" fill="{COLOURS[status]}"/>')
        parts.append(f'<text x="{174 + place * 90}" y="17">{status}</text>')
    for agent in agents:
        own = [result for result in results if result.agent == agent]
        counts, x = Counter(result.status for result in own), 160.0
        parts.append(f'<text x="150" y="{y + 15}" text-anchor="end">{escaped(agent)}</text>')
        for status in STATUSES:
            width = 450 * counts[status] / max(len(own), 1)
            if width:
                parts.append(f'<rect x="{x:g}" y="{y}" width="{width:g}" height="20" fill="{COLOURS[status]}">')
                parts.append(f"<title>{counts[status]} {status}</title></rect>")
            x += width
        y += 28
    size = f'width="620" height="{y}" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n' + "\n".join(parts) + "\n</svg>\n"


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs tasks against agents.")
    parser.add_argument("tasks", type=Path, help="a file with a task per line")
    parser.add_argument(
        "--agent", action="append", required=True, metavar="NAME=CMD", help="may be given several times"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results.jsonl"), help="results; what is in there is not run again"
    )
    parser.add_argument("--chart", type=Path, help="an SVG of the results")
    parser.add_argument("--parallel", type=int, default=4, help="agent processes at a time (default: 4)")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for a task, from the start of its agent")
    parser.add_argument("--retries", type=int, default=1, help="after a crash, an error or a time-out (default: 1)")
    parser.add_argument("--again", action="store_true", help="run once more what is there and did not pass")
    parser.add_argument("--cwd", default=".", help="the folder that agents work in")
    return parser.parse_args()


def read_tasks(path: Path) -> list[Task]:
    tasks = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            try:
                tasks.append(msgspec.json.decode(line, type=Task))
                re.compile(tasks[-1].expect)
            except (msgspec.MsgspecError, re.error) as error:
                raise SystemExit(f"{path}:{number}: {error}") from None
    twice = [id for id, count in Counter(task.id for task in tasks).items() if count > 1]
    if twice:
        raise SystemExit(f"{path}: ids are there twice: {', '.join(twice)}")
    return tasks


def read_agents(words: list[str]) -> dict[str, str]:
    named = [word.partition("=") for word in words]
    if unnamed := [name for name, equals, command in named if not (name and equals and command)]:
        raise SystemExit(f"an agent is NAME=CMD, not {unnamed[0]}")
    return {name: command for name, _, command in named}


def main() -> None:
    options = arguments()
    agents, tasks = read_agents(options.agent), read_tasks(options.tasks)
    try:
        results = asyncio.run(run(agents, tasks, options))
    except KeyboardInterrupt:
        sys.exit(f"stopped; the same command goes on where it was: what is done is in {options.out}")
    print(summary(results, agents))
    if options.chart:
        options.chart.write_text(chart(results, agents))


if __name__ == "__main__":
    main()
