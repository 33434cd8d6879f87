"""Runs checks one after the other and makes the report. It knows which checks there are, and nothing about any."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from acprt.cli.check import cancels, ends, handshake, lifecycle, lines, output, requests, speed, turns
from acprt.cli.check.process import Frame
from acprt.cli.check.subject import Options, Subject
from acprt.cli.check.verdicts import Check, CheckResult, Failed, NotApplicable, Report, ShownFrame, Verdict
from acprt.errors import mask_secrets

__all__ = ["ALL_CHECKS", "GROUPS", "run_checks", "selected"]

ALL_CHECKS: tuple[Check, ...] = (
    *handshake.CHECKS,
    *requests.CHECKS,
    *lifecycle.CHECKS,
    *turns.CHECKS,
    *cancels.CHECKS,
    *lines.CHECKS,  # they may break the agent: what is before is judged by then
    *ends.CHECKS,
    *speed.CHECKS,
    *output.CHECKS,  # they look back at everything that was written
)

GROUPS: tuple[str, ...] = tuple(dict.fromkeys(check.id.partition(".")[0] for check in ALL_CHECKS))

_FRAMES_SHOWN = 40  # of one check: the first and the last
_LINE_CHARACTERS = 600


def selected(version: int, only: Sequence[str], skip: Sequence[str]) -> list[Check]:
    """The checks of a version, by groups or ids; all of them when `only` is empty."""

    def named(check: Check, names: Sequence[str]) -> bool:
        return check.id in names or check.id.partition(".")[0] in names

    return [
        check
        for check in ALL_CHECKS
        if version in check.versions and (not only or named(check, only)) and not named(check, skip)
    ]


async def run_checks(
    options: Options,
    checks: Sequence[Check],
    *,
    on_start: Callable[[Check], None] = lambda check: None,
    on_result: Callable[[CheckResult], None] = lambda result: None,
) -> Report:
    """Try `checks` on the agent. Raises RpcError when it cannot be started at all."""
    start = time.monotonic()
    subject = Subject(options)
    results: list[CheckResult] = []
    try:
        for check in checks:
            on_start(check)
            result = await _run_one(subject, check)
            results.append(result)
            on_result(result)
    finally:
        await subject.aclose()
    return Report(
        command=list(options.argv),
        protocol_version=options.version,
        agent=subject.agent_name,
        seconds=round(time.monotonic() - start, 3),
        stderr_bytes=subject.stderr_bytes,
        results=results,
    )


async def _run_one(subject: Subject, check: Check) -> CheckResult:
    start, first = time.monotonic(), len(subject.log)
    verdict: Verdict = "pass"
    try:
        async with asyncio.timeout(4 * subject.options.timeout):
            detail = await check.run(subject)
    except Failed as error:
        verdict, detail = "fail", str(error)
        await subject.restart()  # what is left in it, such as a turn that runs, is not the next check's
    except NotApplicable as error:
        verdict, detail = "not applicable", str(error)
    except (AttributeError, LookupError, TypeError) as error:  # checks read answers as if they were well-formed
        verdict, detail = "fail", f"an answer has not the shape that it should have: {error!r}"
        await subject.restart()
    except TimeoutError:
        verdict, detail = "fail", f"not done after {4 * subject.options.timeout:g} s"
        await subject.restart()
    frames = subject.log[first:]
    return CheckResult(
        id=check.id,
        title=check.title,
        verdict=verdict,
        level=check.level,
        rule=check.rule,
        detail=mask_secrets(detail),
        seconds=round(time.monotonic() - start, 3),
        frames=[_shown(frame) for frame in _ends_of(frames)],
        frames_left_out=max(0, len(frames) - _FRAMES_SHOWN),
    )


def _ends_of(frames: list[Frame]) -> list[Frame]:
    half = _FRAMES_SHOWN // 2
    return frames if len(frames) <= _FRAMES_SHOWN else [*frames[:half], *frames[-half:]]


def _shown(frame: Frame) -> ShownFrame:
    text = frame.line[: 4 * _LINE_CHARACTERS].decode("utf-8", "backslashreplace")
    cut = text if len(text) <= _LINE_CHARACTERS else text[:_LINE_CHARACTERS] + "…"
    return ShownFrame(round(frame.at, 4), frame.process, frame.sender, frame.size, mask_secrets(cut))
