from __future__ import annotations

import pytest

from sharecore.rates import Rate, Recent, TokenBucket, Window


def test_a_window_that_has_just_begun_counts_as_a_whole_one() -> None:
    rate = Rate(Window(11, 1000))
    rate.record(1000, 5_000)
    assert rate.measure(5_000) == 100
    assert rate.measure(5_900) == pytest.approx(1000 / 10.9)


def test_who_waits_as_told_is_back_at_the_bound() -> None:
    rate = Rate(Window(11, 1000))
    rate.record(1500, 0)
    waits_ms = rate.throttle_ms(100, 0)
    assert waits_ms == 5000
    rate = Rate(Window(3, 1000))
    for second in range(10):
        rate.record(250, second * 1000)
    assert rate.throttle_ms(100, 9_000) > 0
    assert rate.throttle_ms(400, 9_000) == 0


def test_what_is_older_than_the_window_is_forgotten() -> None:
    rate = Rate(Window(3, 1000))
    rate.record(900, 0)
    assert rate.measure(2_999) > 0
    assert rate.measure(3_000) == 0


def test_what_is_taken_back_does_not_count() -> None:
    rate = Rate(Window())
    rate.record(10_000, 0)
    rate.record(-10_000, 10)
    assert rate.throttle_ms(1, 20) == 0


def test_a_bucket_is_full_at_first_and_may_be_overdrawn() -> None:
    bucket = TokenBucket(Window(11, 1000))
    bucket.take(22, 2, 0)
    assert bucket.throttle_ms(2, 0) == 0
    bucket.take(3, 2, 0)
    assert bucket.throttle_ms(2, 0) == 1500
    assert bucket.throttle_ms(2, 1000) == 500
    assert bucket.throttle_ms(2, 1500) == 0
    bucket.take(22, 2, 13_000)
    assert bucket.throttle_ms(2, 13_000) == 0


def test_what_was_not_used_for_longest_is_forgotten_first() -> None:
    made: list[int] = []

    def make() -> int:
        made.append(len(made) + 1)
        return made[-1]

    recent: Recent[str, int] = Recent(make, 2)
    assert [recent["a"], recent["b"], recent["a"], recent["c"]] == [1, 2, 1, 3]
    assert [recent["a"], recent["c"]] == [1, 3]
    assert recent["b"] == 4
    assert len(recent) == 2


@pytest.mark.parametrize("bound", [1e-7, 1e-300, 5e-324])
def test_a_wait_fits_an_answer_however_small_the_quota(bound: float) -> None:
    rate = Rate(Window(11, 1000))
    rate.record(4_000_000, 0)
    assert rate.throttle_ms(bound, 0) == 2**31 - 1
    bucket = TokenBucket(Window(11, 1000))
    bucket.take(1, bound, 0)
    assert bucket.throttle_ms(bound, 0) == 2**31 - 1
