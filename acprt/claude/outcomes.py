"""How a turn ended, told from its result: by `terminal_reason` and structured members, never by a text."""

from __future__ import annotations

from enum import StrEnum

from acprt.claude.errors import AuthenticationFailed, TurnFailed
from acprt.claude.messages import ResultMessage

__all__ = ["AUTHENTICATION_ERRORS", "Outcome", "error_of", "outcome_of", "stop_reason_of"]

AUTHENTICATION_ERRORS = frozenset({"authentication_failed", "oauth_org_not_allowed"})
"""Values of an assistant message's `error` that a login would mend."""

_ABORTED = frozenset({"aborted_streaming", "aborted_tools"})
_LIMITS = frozenset({"max_turns", "budget_exhausted", "structured_output_retry_exhausted"})
_LIMIT_SUBTYPES = frozenset({"error_max_turns", "error_max_budget_usd", "error_max_structured_output_retries"})


class Outcome(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    LIMIT_REACHED = "limit_reached"
    """Turns, budget or retries that were allowed are used up."""
    NOT_AUTHENTICATED = "not_authenticated"
    FAILED = "failed"


def outcome_of(result: ResultMessage, *, assistant_error: str | None = None) -> Outcome:
    """How the turn of `result` ended. `assistant_error` is the last `error` of its assistant messages, which alone
    tells a failed login from another failure of the API.
    """
    if result.terminal_reason in _ABORTED:
        return Outcome.CANCELLED
    if result.subtype in _LIMIT_SUBTYPES or result.terminal_reason in _LIMITS:
        return Outcome.LIMIT_REACHED
    if not result.is_error and result.subtype == "success":
        return Outcome.COMPLETED
    if assistant_error in AUTHENTICATION_ERRORS:
        return Outcome.NOT_AUTHENTICATED
    return Outcome.FAILED


def stop_reason_of(result: ResultMessage) -> str | None:
    """ACP's word for the end of a turn: end_turn, max_tokens, refusal, cancelled or max_turn_requests; None for a
    failure, which has none.
    """
    match outcome_of(result):
        case Outcome.COMPLETED:
            return result.stop_reason if result.stop_reason in ("max_tokens", "refusal") else "end_turn"
        case Outcome.CANCELLED:
            return "cancelled"
        case Outcome.LIMIT_REACHED:
            return "max_turn_requests"
    return None


def error_of(result: ResultMessage, *, assistant_error: str | None = None) -> TurnFailed | None:
    """What a turn that ended so raises; None where the end is one of the agreed ones."""
    match outcome_of(result, assistant_error=assistant_error):
        case Outcome.NOT_AUTHENTICATED:
            return AuthenticationFailed(result)
        case Outcome.FAILED:
            return TurnFailed(result)
    return None
