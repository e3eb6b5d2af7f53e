from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sharecore.spark.ranges import Ranges, split

EDGES = st.tuples(st.integers(0, 30), st.integers(0, 8), st.integers(1, 3)).map(
    lambda each: (each[0], each[0] + each[1], each[2])
)
STEPS = st.lists(st.tuples(st.booleans(), EDGES), max_size=20)


@given(STEPS, EDGES)
def test_ranges_are_what_a_dictionary_of_offsets_is(
    steps: list[tuple[bool, tuple[int, int, int]]], asked: tuple[int, int, int]
) -> None:
    ranges, known = Ranges(), dict[int, int]()
    for puts, (first, last, number) in steps:
        if puts:
            ranges.put(first, last, number)
            known |= dict.fromkeys(range(first, last + 1), number)
        else:
            ranges.cut(first, last)
            known = {offset: tag for offset, tag in known.items() if not first <= offset <= last}
    found = {offset: number for first, last, number in ranges for offset in range(first, last + 1)}
    assert found == known
    assert ranges.offsets == len(known)
    edges = list(ranges)
    assert all(one[1] < two[0] for one, two in pairwise(edges))
    assert all(one[1] + 1 < two[0] or one[2] != two[2] for one, two in pairwise(edges))
    first, last, _ = asked
    within = {
        offset: number for low, high, number in ranges.overlap(first, last) for offset in range(low, high + 1)
    }
    assert within == {offset: number for offset, number in known.items() if first <= offset <= last}
    missing = [offset for low, high in ranges.missing(first, last) for offset in range(low, high + 1)]
    assert missing == [offset for offset in range(first, last + 1) if offset not in known]


@given(st.lists(EDGES, max_size=10), st.integers(1, 7))
def test_portions_hold_everything_in_order(edges: list[tuple[int, int, int]], wanted: int) -> None:
    ranges = Ranges(edges)
    portions = list(split(ranges, wanted))
    assert Ranges(each for portion in portions for each in portion) == ranges
    sizes = [sum(last - first + 1 for first, last, _ in portion) for portion in portions]
    assert len(sizes) == min(wanted, ranges.offsets)
    assert not sizes or max(sizes) - min(sizes) <= 1
