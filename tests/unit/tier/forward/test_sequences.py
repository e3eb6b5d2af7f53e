"""Which batches of an idempotent producer may follow others."""

from __future__ import annotations

from tests.harness.batches import keyed_batch

from sharecore.errors import ErrorCode
from sharecore.tier.forward.sequences import _REFUSED_MAX, Sequences

PLACE, WAY, NEXT = ("a", 0), (1, 0), (1, 1)
TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT


def batch(sequence: int, producer: int = 7, epoch: int = 0) -> bytes:
    return keyed_batch([(None, b"1")], producer_id=producer, producer_epoch=epoch, sequence=sequence)


def admits(sequences: Sequences, *numbers: int, way: tuple[int, int] = WAY) -> list[bool]:
    return [sequences.admit(PLACE, batch(number), way) for number in numbers]


def test_batches_on_one_way_follow_each_other_and_leave_nothing_behind() -> None:
    sequences = Sequences()
    assert admits(sequences, 0, 1, 2) == [True, True, True]
    for number in range(3):
        sequences.end(PLACE, batch(number), 0)
    assert sequences._partitions == {}


def test_a_batch_on_another_way_waits_for_the_answer_to_the_first() -> None:
    sequences = Sequences()
    assert admits(sequences, 0) == [True]
    assert admits(sequences, 1, 2, way=NEXT) == [False, False]
    sequences.end(PLACE, batch(0), TIMED_OUT)
    assert admits(sequences, 0, 1, 2, 3, way=NEXT) == [True, True, True, True]


def test_after_a_success_on_the_other_way_the_refused_batch_begins() -> None:
    sequences = Sequences()
    assert admits(sequences, 0) == [True]
    assert admits(sequences, 1, way=NEXT) == [False]
    sequences.end(PLACE, batch(0), 0)
    assert admits(sequences, 2, 1, 2, way=NEXT) == [False, True, True]


def test_numbers_wrap_around() -> None:
    sequences, last = Sequences(), 2**31 - 1
    assert admits(sequences, last) == [True]
    sequences.end(PLACE, batch(last), TIMED_OUT)
    assert admits(sequences, 0, last, 0) == [False, True, True]


def test_a_new_epoch_and_other_errors_begin_anew() -> None:
    sequences = Sequences()
    assert admits(sequences, 5) == [True]
    sequences.end(PLACE, batch(5), TIMED_OUT)
    assert sequences.admit(PLACE, batch(0, epoch=1), NEXT)
    sequences.end(PLACE, batch(0, epoch=1), ErrorCode.MESSAGE_TOO_LARGE)
    assert sequences._partitions == {}


def test_batches_of_other_producers_are_not_held() -> None:
    sequences = Sequences()
    assert sequences.admit(PLACE, batch(-1, producer=-1, epoch=-1), WAY)
    sequences.end(PLACE, batch(-1, producer=-1, epoch=-1), TIMED_OUT)
    assert sequences.admit(PLACE, batch(-1, producer=-1, epoch=-1), NEXT)
    assert sequences.admit(PLACE, None, WAY)
    assert sequences.admit(PLACE, b"short", WAY)
    assert sequences._partitions == {}


def test_few_unknown_partitions_are_remembered() -> None:
    """A client chooses the names of topics that this node does not know."""
    sequences, unknown = Sequences(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert admits(sequences, 0) == [True]
    for index in range(3 * _REFUSED_MAX):
        sequences.end(("none", index), batch(0), unknown)
        sequences.end((f"none-{index}", 0), batch(0), unknown)
        sequences.end(("x" * 10_000, index), batch(0), unknown)
    assert len(sequences._partitions) == 1 + _REFUSED_MAX
    last = ("none", 3 * _REFUSED_MAX - 1)
    assert not sequences.admit(last, batch(1), WAY), "the first batch comes again before"
    assert sequences.admit(last, batch(0), WAY)
    sequences.end(last, batch(0), 0)
    sequences.end(PLACE, batch(0), 0)
    assert len(sequences._partitions) == len(sequences._refused) == _REFUSED_MAX - 1


def test_partitions_with_forwarded_batches_are_not_forgotten() -> None:
    sequences, unknown = Sequences(), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    sequences.end(PLACE, batch(0), unknown)
    assert admits(sequences, 0) == [True]
    for index in range(_REFUSED_MAX):
        sequences.end(("none", index), batch(0), unknown)
    assert admits(sequences, 1, way=NEXT) == [False], "the answer to the first is missing"
