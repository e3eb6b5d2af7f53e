"""Waiting share fetches, and their timeouts."""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.partition.bench import LIMITS, Bench

from sharecore._core import PartitionFetch, Timeouts


class Timer:
    def cancel(self) -> None:
        raise AssertionError("one that is due earlier serves the others, too")


def test_one_timer_serves_all_and_each_fetch_is_answered_in_its_time() -> None:
    bench = Bench()
    set_for: list[tuple[int, float]] = []

    def call_later(seconds: float, callback: Callable[[], None]) -> Timer:
        if seconds:
            set_for.append((bench.world.monotonic_ms(), seconds))
        bench.world.call_later(seconds, callback)
        return Timer()

    bench.timeouts = Timeouts(bench.world.monotonic_ms, call_later)
    began_ms = bench.world.monotonic_ms()
    waits = {"a": 300, "b": 500, "c": 300, "d": 900}
    fetches = {name: bench.fetch(name, LIMITS._replace(max_wait_ms=ms)) for name, ms in waits.items()}
    bench.world.run(100)
    fetches["b"].cancel()
    answered: list[tuple[int, str]] = []
    for _ in range(1000):
        bench.world.run(1)
        at_ms = bench.world.monotonic_ms() - began_ms
        answered += [(at_ms, name) for name in bench.answers.keys() - {name for _, name in answered}]
    assert sorted(answered) == [(300, "a"), (300, "c"), (900, "d")]
    assert [bench.answers[name] for name in "acd"] == [[], [], []]
    assert [(at_ms - began_ms, seconds) for at_ms, seconds in set_for] == [(0, 0.3), (300, 0.6)]


def test_a_fetch_that_is_due_before_the_others_is_answered_before_them() -> None:
    bench = Bench()
    bench.fetch("late", LIMITS._replace(max_wait_ms=800))
    bench.fetch("early", LIMITS._replace(max_wait_ms=200))
    bench.world.run(200)
    assert bench.answers == {"early": []}
    bench.world.run(599)
    assert "late" not in bench.answers
    bench.world.run(1)
    assert bench.answers == {"early": [], "late": []}


class Answers(dict[str, list[PartitionFetch]]):
    """Ignores answers, and records whose they were."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    def __setitem__(self, member: str, answer: list[PartitionFetch]) -> None:
        self.refused.append(member)
        raise ValueError(member)


def test_a_fetch_whose_answer_fails_keeps_no_other_waiting() -> None:
    bench = Bench()
    bench.answers = answers = Answers()
    fetches = [bench.fetch(member) for member in "ab"]
    bench.world.run(500)
    assert answers.refused == ["a", "b"]
    assert not any(fetch.waiting for fetch in fetches)
