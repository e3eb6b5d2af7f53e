from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Gather, settle


def test_everyone_hears_though_one_of_them_raises(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def raising(_outcome: str) -> None:
        raise RuntimeError("of its own")

    settle([heard.append, raising, heard.append], "done")
    assert heard == ["done", "done"]
    assert "of its own" in caplog.text


def test_outcomes_come_in_the_order_of_the_names() -> None:
    gather: Gather[str] = Gather(["a", "b", "c"])
    ends: list[str] = []
    first, second = gather.part("b"), gather.part("a")
    gather.put("c", 3)
    gather.when_ended(lambda: ends.append("all"))
    assert gather.pending
    first(2)
    assert (gather.pending, ends) == (True, [])
    second(1)
    assert (gather.pending, ends) == (False, ["all"])
    assert gather.outcomes == {"a": 1, "b": 2, "c": 3}
    assert list(gather.outcomes) == ["a", "b", "c"]


def test_who_asks_when_all_have_ended_is_told_at_once() -> None:
    gather: Gather[str] = Gather()
    ends: list[str] = []
    gather.part("a")(None)
    gather.when_ended(lambda: ends.append("all"))
    assert ends == ["all"]


def test_an_operation_ends_once() -> None:
    gather: Gather[str] = Gather()
    ends: list[str] = []
    done, other = gather.part("a"), gather.part("b")
    gather.when_ended(lambda: ends.append("all"))
    done(1)
    done(2)
    assert gather.outcomes["a"] == 1
    assert ends == [], "the second call is not the other operation's"
    other(3)
    assert ends == ["all"]


def test_a_refusal_is_an_outcome_and_a_defect_is_not() -> None:
    gather: Gather[str] = Gather()
    refusal = KafkaError(ErrorCode.INVALID_REQUEST)

    def refuse(error: Exception, done: Callable[[Any], None]) -> None:
        raise error

    gather.run("a", refuse, refusal)
    assert gather.outcomes == {"a": refusal}
    with pytest.raises(ZeroDivisionError):
        gather.run("b", refuse, ZeroDivisionError())
