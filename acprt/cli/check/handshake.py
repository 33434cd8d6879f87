"""Checks of `initialize`: what is answered, for which version, and in what shape."""

from __future__ import annotations

from acprt.cli.check.shapes import fault_in_result
from acprt.cli.check.subject import Subject
from acprt.cli.check.verdicts import Failed, check

__all__ = ["CHECKS"]

_FUTURE_VERSION = 65535
_START_SECONDS = 30.0  # cold starts of 8 s were measured; editors give up at about this

_RULE = "ACP, Initialization"


@check("handshake.answer", "Answers initialize, with the version that was asked for", rule=f"{_RULE}: version")
async def answers(subject: Subject) -> str:
    process = await subject.shared()
    assert process.initialized is not None
    return f"version {subject.options.version} after {process.initialized.seconds:.2f} s"


@check("handshake.shape", "The answer to initialize has the shape of the schema", rule=f"{_RULE}: schema")
async def shape(subject: Subject) -> str:
    process = await subject.shared()
    assert process.initialized is not None
    wrong = fault_in_result(subject.options.version, "initialize", process.initialized.members.get("result"))
    if wrong is not None:
        raise Failed(wrong)
    return "well-formed"


@check("handshake.name", "Says what it is called", rule=f"{_RULE}: implementation information", level="should")
async def name(subject: Subject) -> str:
    await subject.shared()
    if subject.agent_name is None:
        raise Failed("no agentInfo" if subject.options.version == 1 else "no info")
    return subject.agent_name


@check(
    "handshake.future",
    "Asked for a version that does not exist, offers one that it speaks",
    rule=f"{_RULE}: version negotiation: the agent answers the latest version that it supports",
)
async def future(subject: Subject) -> str:
    async with subject.fresh(opened=False) as process:
        answer = await process.call("initialize", subject.opening(_FUTURE_VERSION))
        if answer.is_error:
            raise Failed(f"refused with {answer}, which leaves the client without a version")
        version = answer.result.get("protocolVersion")
        if version not in (1, 2):
            raise Failed(f"answered version {version!r}")
        return f"offered version {version}"


@check(
    "handshake.start",
    "Is ready within 30 seconds",
    rule="clients give up on an agent that does not start",
    level="should",
)
async def start(subject: Subject) -> str:
    process = await subject.shared()
    assert process.initialized is not None
    seconds = process.initialized.seconds
    if seconds > _START_SECONDS:
        raise Failed(f"ready after {seconds:.1f} s")
    return f"ready after {seconds:.2f} s"


CHECKS = (answers, shape, name, future, start)
