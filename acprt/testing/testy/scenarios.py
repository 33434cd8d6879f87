"""The scenarios: which steps each one is made of, in which order.

A scenario that is cancelled is cancelled as a task, between its steps or inside one; nothing here looks for it.
"""

from __future__ import annotations

import asyncio

from acprt.acp.schema import v1
from acprt.testing.testy.asking import ask_for_everything, open_terminal, release_terminal
from acprt.testing.testy.commands import Scenario
from acprt.testing.testy.eliciting import elicit_everything
from acprt.testing.testy.telling import tell_content, tell_session, tell_tool_calls
from acprt.testing.testy.turn import Turn

__all__ = ["run_scenario"]


async def run_scenario(turn: Turn, scenario: Scenario) -> v1.StopReason:
    """Run it. What came of it is in the turn's report; the stop reason is `cancelled` when a cancel was asked for."""
    turn.report.append(f"scenario: {scenario}")
    match scenario:
        case "session_updates":
            tell_session(turn)
            tell_content(turn)
            tell_tool_calls(turn)
            turn.report.append("session_updates: sent")
        case "content":
            _content(turn)
        case "tool_calls":
            tell_tool_calls(turn)
            turn.report.append("tool_calls: sent")
        case "callbacks":
            await ask_for_everything(turn)
            await elicit_everything(turn)
        case "elicitations":
            await elicit_everything(turn)
        case "cancel_status":
            return _cancel_status(turn)
        case "wait_for_cancel":
            await asyncio.Event().wait()
        case "full":
            await _full(turn)
            return _cancel_status(turn)
    return "end_turn"


async def _full(turn: Turn) -> None:
    tell_session(turn)
    turn.report.append("session_updates: sent")
    _content(turn)
    terminal_id = await open_terminal(turn)
    tell_tool_calls(turn, terminal_id)
    turn.report.append("tool_calls: sent")
    if terminal_id is not None:
        await release_terminal(turn, terminal_id)
    await ask_for_everything(turn)
    await elicit_everything(turn)


def _content(turn: Turn) -> None:
    tell_content(turn)
    turn.report.append(f"content_blocks: {len(turn.prompt)}")


def _cancel_status(turn: Turn) -> v1.StopReason:
    was_cancelled = turn.session.take_cancel()
    turn.report.append(f"cancel_status: {'cancelled' if was_cancelled else 'not_cancelled'}")
    return "cancelled" if was_cancelled else "end_turn"
