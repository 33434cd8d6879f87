"""What `block_task()` returns ends once, like every coroutine, and cancels when it never began."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import pytest

import acprt
from tests.rawpeer import raw_server_for
from tests.runtime.ordered import sent_by


def test_one_that_was_never_awaited_cancels_where_warnings_are_errors(run, monkeypatch):
    """DEC-19: the warning about it may be an error, which must not keep the cancel from being sent."""
    warned: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", warned.append)

    async def main():
        async with raw_server_for(acprt.Endpoint("client")) as (cx, server):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                waiting = cx.send_request("work").block_task()
                del waiting
            assert await sent_by(server) == ["work", "$/cancel_request"]

    run(main())
    assert [unraisable.exc_type for unraisable in warned] == [RuntimeWarning]


def test_a_second_await_is_refused_and_maps_nothing(run):
    """SR-09: a `map` is called once."""

    async def main():
        mapped: list[Any] = []
        async with raw_server_for(acprt.Endpoint("client")) as (cx, server):
            waiting = cx.send_request("work").map(mapped.append).block_task()
            server.send('{"jsonrpc":"2.0","id":1,"result":1}')
            await waiting
            with pytest.raises(RuntimeError, match="has ended"):
                await waiting
            assert mapped == [1]

    run(main())
