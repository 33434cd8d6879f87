"""Modes and options of a session: set by the user, changed by the agent."""

from __future__ import annotations

import pytest

import acprt
from tests.acp.sessions.scripted import (
    FAST,
    MODES,
    begin,
    current_mode,
    failed,
    in_session,
    received,
    update,
)


class TestConfiguration:
    """Modes and options are known at every moment."""

    def test_set_mode_changes_what_is_known(self, run):
        async def main():
            async with in_session(result={"modes": MODES}) as (session, peer):
                setting = begin(session.set_mode("code"))
                request = await received(peer, "session/set_mode")
                assert request["params"] == {"sessionId": "s", "modeId": "code"}
                peer.respond(request["id"], {})
                await setting
                assert current_mode(session) == "code"

        run(main())

    def test_an_update_behind_the_answer_wins(self, run):
        """The answer is taken in its place in the order of messages, not when the waiting task wakes up."""

        async def main():
            async with in_session(result={"modes": MODES}) as (session, peer):
                setting = begin(session.set_mode("code"))
                request = await received(peer, "session/set_mode")
                back = update({"sessionUpdate": "current_mode_update", "currentModeId": "ask"})
                peer.send({"jsonrpc": "2.0", "id": request["id"], "result": {}}, back)
                await setting
                await peer.settled()
                assert current_mode(session) == "ask"

        run(main())

    def test_options_are_replaced_by_answers_and_updates(self, run):
        async def main():
            async with in_session(result={"configOptions": [FAST]}) as (session, peer):
                setting = begin(session.set_config_option("fast", True))
                request = await received(peer, "session/set_config_option")
                assert request["params"] == {"sessionId": "s", "configId": "fast", "type": "boolean", "value": True}
                peer.respond(request["id"], {"configOptions": [FAST | {"currentValue": True}]})
                (option,) = await setting
                assert option.current_value is True
                assert session.config_options == [option]
                setting = begin(session.set_config_option("model", "large"))
                request = await received(peer, "session/set_config_option")
                assert request["params"] == {"sessionId": "s", "configId": "model", "value": "large"}
                peer.send(failed(request, -32602, "no such option"))
                with pytest.raises(acprt.RpcError):
                    await setting
                peer.send(update({"sessionUpdate": "config_option_update", "configOptions": []}))
                await peer.settled()
                assert session.config_options == []

        run(main())
