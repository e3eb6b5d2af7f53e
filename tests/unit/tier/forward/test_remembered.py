"""A node's cache for clients stays within its limit."""

from __future__ import annotations

from sharecore.tier.forward.remembered import Remembered


def test_the_least_recently_used_go_first() -> None:
    known: Remembered[str, int] = Remembered(100)
    for number, name in enumerate("abcd"):
        known.put(name, number, 25)
    assert known.get("a") == 0
    known.put("e", 4, 25)
    assert [known.get(name) for name in "abcde"] == [0, None, 2, 3, 4]
    known.put("f", 5, 60)
    assert [known.get(name) for name in "abcdef"] == [None, None, None, None, 4, 5]


def test_what_is_put_again_or_taken_away_counts_once() -> None:
    known: Remembered[str, int] = Remembered(100)
    for number in range(10):
        known.put("a", number, 40)
        known.put("b", number, 40)
    assert (known.get("a"), known.get("b")) == (9, 9)
    known.pop("a")
    known.pop("a")
    known.put("c", 1, 60)
    assert (known.get("b"), known.get("c"), len(known)) == (9, 1, 2)


def test_what_is_too_large_is_not_kept_and_takes_nothing_from_others() -> None:
    known: Remembered[str, int] = Remembered(100)
    known.put("a", 1, 50)
    known.put("b", 2, 101)
    assert (known.get("a"), known.get("b")) == (1, None)
    known.put("a", 3, 101)
    assert known.get("a") is None
