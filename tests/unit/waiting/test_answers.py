from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Gather, Later, promise, reply


def test_what_is_known_is_answered_at_once() -> None:
    gather: Gather[str] = Gather()
    gather.part("a")(5)
    assert reply(gather, lambda: gather.outcomes["a"]) == 5


def test_what_is_not_known_is_answered_when_it_is() -> None:
    async def main() -> None:
        gather: Gather[str] = Gather()
        done = gather.part("a")
        answer = reply(gather, lambda: gather.outcomes["a"])
        assert isinstance(answer, Later)
        assert not answer.done()
        done(5)
        assert await answer == 5

    asyncio.run(main())


def test_an_answer_that_cannot_be_made_is_an_error_of_the_request() -> None:
    async def main() -> None:
        def refuse(_outcome: int) -> int:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

        waiting: list[Callable[[int], None]] = []
        answer = promise(waiting.append, refuse)
        waiting[0](1)
        with pytest.raises(KafkaError, match="UNKNOWN_MEMBER_ID"):
            await answer

    asyncio.run(main())


def test_a_client_that_has_gone_gets_no_answer() -> None:
    async def main() -> None:
        waiting: list[Callable[[int], None]] = []
        answers: list[int] = []
        answer = promise(waiting.append, answers.append)
        answer.cancel()
        waiting[0](1)
        assert answers == []

    asyncio.run(main())


def test_what_does_not_begin_is_the_callers() -> None:
    async def main() -> None:
        def start(_done: Callable[[int], None]) -> None:
            raise KafkaError(ErrorCode.INVALID_REQUEST)

        with pytest.raises(KafkaError, match="INVALID_REQUEST"):
            promise(start, lambda outcome: outcome)

    asyncio.run(main())


def test_who_waits_for_an_answer_is_called_at_once_and_once() -> None:
    later: Later[int] = Later()
    heard: list[int] = []
    later.add_done_callback(lambda done: heard.append(done.result()))
    later.set_result(5)
    assert heard == [5]
    later.set_result(6)
    assert not later.cancel()
    later.add_done_callback(lambda done: heard.append(done.result()))
    assert heard == [5, 5]
    assert not later.cancelled()


def test_an_answer_that_nobody_wants_is_cancelled() -> None:
    later: Later[int] = Later()
    heard: list[bool] = []
    later.add_done_callback(lambda done: heard.append(done.cancelled()))
    assert later.cancel()
    later.set_result(5)
    assert heard == [True]
    with pytest.raises(asyncio.CancelledError):
        later.result()


def test_the_trouble_of_one_who_waits_is_not_anothers() -> None:
    later: Later[int] = Later()
    heard: list[int] = []

    def fail(_done: Later[int]) -> None:
        raise RuntimeError("trouble")

    later.add_done_callback(fail)
    later.add_done_callback(lambda done: heard.append(done.result()))
    later.set_result(5)
    assert heard == [5]
