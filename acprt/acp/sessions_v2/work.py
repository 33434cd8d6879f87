"""`Work`: one piece of foreground work of an agent, as its handler sees it.

It says what may be said while the work goes on, and nothing afterwards. What the state of the session is, and when
that is told, is the business of `agent_session`.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

from acprt.acp import v2
from acprt.runtime.results import Ok, Result
from acprt.runtime.sent import SentRequest

if TYPE_CHECKING:
    from acprt.acp.sessions_v2.agent_session import AgentSession

__all__ = ["Work", "new_id"]

logger = logging.getLogger("acprt.acp")

Answer = Result[v2.RequestPermissionResponse]


class Work:
    """What a prompt handler gets: the prompt, and the ways to report, until the handler returns.

    `prompt` and `message_id` are those of the user's message; empty and None for work that the agent began itself.
    `usage` may be set, for the update that tells the end (unstable).
    """

    def __init__(self, session: AgentSession, prompt: list[v2.ContentBlock], message_id: str | None) -> None:
        self.session = session
        self.prompt = prompt
        self.message_id = message_id
        self.usage: v2.Usage | None = None
        self.is_cancelled = False
        """Whether the client asked to stop. The handler's task is cancelled too; this is for what it began beside."""
        self.has_ended = False
        """Whether its end was told: what is said from now on is dropped."""
        self._reply_id: str | None = None
        self._asking: dict[SentRequest[v2.RequestPermissionResponse], asyncio.Future[Answer | None]] = {}

    @property
    def text(self) -> str:
        """The text blocks of the prompt, joined."""
        return "".join(block.text for block in self.prompt if isinstance(block, v2.TextContent))

    def update(self, update: v2.SessionUpdate) -> None:
        """Send a session update. After the end it is dropped: nothing may follow the idle update of cancelled work.
        What runs in the background reports through `work.session.update`.
        """
        if self.has_ended:
            logger.debug("session %s: dropped an update of work that has ended", self.session.id)
        else:
            self.session.update(update)

    def say(self, text: str, *, message_id: str | None = None) -> None:
        """Send a piece of the agent's message. Pieces without `message_id` belong to one message of this work."""
        if message_id is None:
            message_id = self._reply_id = self._reply_id or new_id()
        self.update(v2.AgentMessageChunk(message_id=message_id, content=v2.TextContent(text=text)))

    async def ask(
        self,
        title: str,
        options: Iterable[v2.PermissionOption],
        *,
        description: str | None = None,
        subject: v2.RequestPermissionSubject | None = None,
        blocks: bool = True,
    ) -> str | None:
        """Ask the user's permission; the id of the option that was chosen.

        None means not approved: dismissed, cancelled, an outcome or an option that was not offered. Meanwhile the
        session is in the state `requires_action`; with `blocks=False` it is not, for work that goes on beside. Raises
        the client's RpcError when it cannot ask.
        """
        if self.is_cancelled or self.has_ended:
            return None
        session, offered = self.session, list(options)
        request = v2.RequestPermissionRequest(
            session_id=session.id, title=title, description=description, subject=subject, options=offered
        )
        answer: asyncio.Future[Answer | None] = session.cx.loop.create_future()

        async def answered(result: Answer) -> None:
            if not answer.done():  # else it comes too late, which is to be ignored
                answer.set_result(result)

        if blocks:
            session.blocked_by(answer)
        sent = session.cx.send_request(request)
        self._asking[sent] = answer
        try:
            sent.on_receiving_result(answered)
            result = await answer
        except asyncio.CancelledError:
            sent.cancel()
            raise
        finally:
            self._asking.pop(sent, None)
            session.unblocked_by(answer)
        return None if result is None else _chosen(result, offered)

    def cancel(self) -> None:
        """The client asked to stop: no permission is waited for any more, and each request for one is cancelled."""
        self.is_cancelled = True
        self._stop_asking()

    def end(self) -> None:
        """The handler is done; what it left behind may say nothing more."""
        self.has_ended = True
        self._stop_asking()

    def _stop_asking(self) -> None:
        asking, self._asking = self._asking, {}
        for sent, answer in asking.items():
            sent.cancel()
            if not answer.done():
                answer.set_result(None)


def new_id() -> str:
    """An id that no other message, here or in an earlier life of the session, has."""
    return uuid.uuid4().hex


def _chosen(result: Answer, offered: list[v2.PermissionOption]) -> str | None:
    if not isinstance(result, Ok):
        raise result.error
    outcome = result.value.outcome
    if isinstance(outcome, v2.SelectedPermissionOutcome) and any(
        option.option_id == outcome.option_id for option in offered
    ):
        return outcome.option_id
    return None
