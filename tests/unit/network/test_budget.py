from __future__ import annotations

from sharecore.network import MemoryBudget


def test_who_waits_is_called_once_there_is_room() -> None:
    budget = MemoryBudget(100)
    called: list[object] = []
    budget.take(60)
    assert not budget.exhausted
    budget.take(60)
    assert budget.exhausted
    budget.wait(lambda: called.append("first"))
    budget.wait(lambda: called.append("second"))
    budget.release(20)
    assert called == []
    budget.release(1)
    assert called == ["first", "second"]
    assert (budget.used_bytes, budget.released_bytes) == (99, 21)


def test_those_who_wait_go_on_waiting_when_the_first_takes_the_room() -> None:
    budget = MemoryBudget(100)
    called: list[object] = []
    budget.take(100)
    budget.wait(lambda: budget.take(50))
    budget.wait(lambda: called.append("second"))
    budget.release(50)
    assert called == []
    budget.release(50)
    assert called == ["second"]


def test_who_gives_up_is_not_called() -> None:
    budget = MemoryBudget(100)
    called: list[object] = []

    def room() -> None:
        called.append(1)

    budget.take(100)
    budget.wait(room)
    budget.withdraw(room)
    budget.withdraw(room)
    budget.release(100)
    assert called == []


def test_no_bound() -> None:
    budget = MemoryBudget(-1)
    budget.take(10**12)
    assert not budget.exhausted
