"""One response from several possible brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.client.virtual import in_virtual_time

from sharecore.client.errors import AuthenticationFailed, Disconnected
from sharecore.upstream.asking import drop, first_answer

Ask = Callable[[], Awaitable[str]]


class Asked:
    """The brokers asked, with the start time of each request."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}
        self.given_up: list[str] = []

    def who(self, name: str, seconds: float, error: Exception | None = None) -> Ask:
        """Respond with the name, or fail, after a delay."""

        async def ask() -> str:
            self.began[name] = asyncio.get_running_loop().time()
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                self.given_up.append(name)
                raise
            if error is not None:
                raise error
            return name

        return ask


@in_virtual_time
async def test_the_next_is_asked_when_one_is_silent_or_fails() -> None:
    asked, now = Asked(), asyncio.get_running_loop().time
    began = now()
    answer = await first_answer(
        [
            asked.who("silent", 60),
            asked.who("gone", 0.25, Disconnected("gone")),
            asked.who("slow", 5),
            asked.who("here", 0.5),
            asked.who("spare", 0),
        ],
        1.0,
    )
    assert answer == "here"
    assert {name: at - began for name, at in asked.began.items()} == {
        "silent": 0,
        "gone": 1,
        "slow": 1.25,
        "here": 2.25,
    }
    await asyncio.sleep(0)
    assert asked.given_up == ["silent", "slow"]


@in_virtual_time
async def test_who_was_asked_first_may_answer_late() -> None:
    asked = Asked()
    assert await first_answer([asked.who("slow", 3), asked.who("silent", 60)], 1.0) == "slow"


@in_virtual_time
async def test_the_last_error_is_told_where_all_fail() -> None:
    asked = Asked()
    errors = [Disconnected("first"), Disconnected("second")]
    with pytest.raises(Disconnected, match="second"):
        await first_answer([asked.who(str(each), 0.1, each) for each in errors], 1.0)
    with pytest.raises(Disconnected, match="no known brokers"):
        await first_answer(list[Ask](), 1.0)


@in_virtual_time
async def test_who_is_not_let_in_asks_nobody_else() -> None:
    asked = Asked()
    refused = asked.who("strict", 0.1, AuthenticationFailed("wrong password"))
    with pytest.raises(AuthenticationFailed):
        await first_answer([asked.who("silent", 60), refused, asked.who("other", 0)], 1.0)
    assert "other" not in asked.began


@in_virtual_time
async def test_an_answer_that_nobody_waits_for_is_dropped_with_its_error() -> None:
    under_way = asyncio.ensure_future(asyncio.sleep(60))
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    failed.set_exception(Disconnected("gone"))
    for each in (under_way, failed):
        drop(each)
    await asyncio.sleep(0)
    assert under_way.cancelled()
