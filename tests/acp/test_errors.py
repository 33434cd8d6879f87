"""Errors whose shape is ACP's own, as a client hears them."""

from __future__ import annotations

import msgspec
import pytest

import acprt
from acprt import acp
from acprt.acp import v1, v2

agent = acp.Agent("forgetful", version="1")


@agent.method
async def load_session(request: v1.LoadSessionRequest) -> v1.LoadSessionResponse:
    raise acp.session_not_found(request.session_id)


def test_a_session_that_is_not_there_is_named(run) -> None:
    """-32002, with the session's id where version 2 has it too."""

    async def main() -> None:
        async with acp.Client("caller", version="1").connect(agent) as cx:
            await acp.initialize(cx)
            with pytest.raises(acprt.RpcError) as refused:
                await acp.load_session(cx, "lost")
            error = refused.value
            assert (error.code, error.message) == (acprt.ErrorCode.RESOURCE_NOT_FOUND, "Resource not found")
            assert msgspec.convert(error.data, v2.SessionNotFoundErrorData).session_id == "lost"

    run(main())
