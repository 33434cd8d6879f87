"""What testy asks of the user: forms with every kind of field, and visits to a link.

A client that offers no forms, or no links, is told so by an error of the prompt: there is nothing to report then.
"""

from __future__ import annotations

from typing import Any

from acprt.acp.schema import v1
from acprt.testing.testy.sessions import refuse
from acprt.testing.testy.turn import Turn

__all__ = ["elicit_everything"]

_URL_ID = "testy-url-session"


async def elicit_everything(turn: Turn) -> None:
    """Three forms and two links, in both scopes. Raises RpcError -32602 for what the client does not offer."""
    offered = turn.cx.peer.capabilities.elicitation
    if offered is None or offered.form is None:
        refuse("client does not support form elicitation")
    id = turn.session.id
    await _form(
        turn,
        "session_accept",
        "Please accept this form",
        _every_field(),
        session_id=id,
        tool_call_id=turn.ids.call("testy-elicit-tool"),
    )
    reason = v1.ElicitationSchema(properties={"reason": v1.StringPropertySchema()})
    await _form(turn, "session_decline", "Please decline this form", reason, session_id=id)
    confirmed = v1.ElicitationSchema(properties={"confirmed": v1.BooleanPropertySchema()}, required=["confirmed"])
    await _form(turn, "request_cancel", "Please cancel this form", confirmed, request_id="testy-request-form-cancel")
    if offered.url is None:
        refuse("client does not support URL elicitation")
    await _url(turn, "session_accept", "Please accept this link", _URL_ID, "session", session_id=id)
    turn.cx.send_notification(v1.CompleteElicitationNotification(elicitation_id=_URL_ID))
    turn.report.append("elicitation/complete_session_url: sent")
    await _url(
        turn,
        "request_decline",
        "Please decline this link",
        "testy-url-request",
        "request",
        request_id="testy-request-url-decline",
    )
    turn.report.append("elicitations: completed")


async def _form(turn: Turn, label: str, message: str, schema: v1.ElicitationSchema, **scope: Any) -> None:
    request = v1.CreateElicitationRequest(mode="form", message=message, requested_schema=schema, **scope)
    await _elicit(turn, f"elicitation/form_{label}", request)


async def _url(turn: Turn, label: str, message: str, id: str, page: str, **scope: Any) -> None:
    request = v1.CreateElicitationRequest(
        mode="url", message=message, elicitation_id=id, url=f"https://example.com/testy/{page}", **scope
    )
    await _elicit(turn, f"elicitation/url_{label}", request)


async def _elicit(turn: Turn, label: str, request: v1.CreateElicitationRequest) -> None:
    """Ask, and report the action; of what was filled in only how many fields: the rest is the user's."""
    response = await turn.ask(request, label=label)
    if response is not None:
        action = response.action
        fields = f" content_fields={len(response.content or {})}" if action == "accept" else ""
        turn.report[-1] = f"{label}: ok {action}{fields}"


def _every_field() -> v1.ElicitationSchema:
    return v1.ElicitationSchema(
        title="Testy form",
        description="One field of each kind",
        properties={
            "name": v1.StringPropertySchema(),
            "email": v1.StringPropertySchema(format="email"),
            "homepage": v1.StringPropertySchema(format="uri"),
            "birthday": v1.StringPropertySchema(format="date"),
            "available_at": v1.StringPropertySchema(format="date-time"),
            "confidence": v1.NumberPropertySchema(minimum=0.0, maximum=1.0),
            "age": v1.IntegerPropertySchema(minimum=0, maximum=120),
            "confirmed": v1.BooleanPropertySchema(),
            "priority": v1.StringPropertySchema(enum=["low", "normal", "high"]),
            "tags": v1.MultiSelectPropertySchema(items=v1.StringMultiSelectItems(enum=["acp", "stdio", "testy"])),
        },
        required=["name", "confidence", "age", "confirmed"],
    )
