"""Which records of a slot are valid: those of the last claimer, after its claim."""

from __future__ import annotations

import pytest
from tests.unit.tier.partition import Partition

from sharecore.coordinator_log.topic_log import Record
from sharecore.tier.slots.claims import Claim, SlotHistory, claim_record
from sharecore.upstream import Producer

A, B = Producer(7, 0), Producer(7, 1)
STRANGER = Producer(-1, -1)


def claim(epoch: int, node: int = 1) -> list[Record]:
    return [claim_record(3, epoch, node, 1_000)]


def write(partition: Partition, producer: Producer, *values: bytes) -> None:
    partition.append([(b"\0\0k", value) for value in values], 1_000, producer)


def counted(partition: Partition) -> tuple[SlotHistory, list[bytes | None]]:
    history = SlotHistory("state-3")
    records = history.take(b"".join(data for _, _, data in partition.batches))
    return history, [value for _, _, _, value in records]


def test_records_behind_a_claim_count() -> None:
    partition = Partition()
    partition.append(claim(0), 1_000, A)
    write(partition, A, b"1", b"2")
    write(partition, A, b"3")
    history, values = counted(partition)
    assert values == [b"1", b"2", b"3"]
    assert history.claim == Claim(0, 1, (A.id, A.epoch), 0)
    assert history.void == 0


def test_what_comes_behind_the_next_claim_from_the_one_before_is_void() -> None:
    partition = Partition()
    partition.append(claim(0), 1_000, A)
    write(partition, A, b"in time")
    partition.append(claim(1, node=2), 1_000, B)
    write(partition, A, b"too late")
    write(partition, B, b"theirs")
    write(partition, A, b"much too late")
    history, values = counted(partition)
    assert values == [b"in time", b"theirs"]
    assert history.void == 2
    assert history.claim is not None
    assert (history.claim.epoch, history.claim.node_id, history.claim.offset) == (1, 2, 2)


def test_a_late_claim_of_an_epoch_that_has_passed_is_void_with_all_behind_it() -> None:
    partition = Partition()
    partition.append(claim(5), 1_000, B)
    write(partition, B, b"1")
    partition.append(claim(4), 1_000, A)
    write(partition, A, b"void")
    write(partition, B, b"2")
    history, values = counted(partition)
    assert values == [b"1", b"2"]
    assert history.void == 2


def test_of_two_claims_of_one_epoch_the_first_holds() -> None:
    """The other may have been under way for long, and its writer be no member any more."""
    partition = Partition()
    partition.append(claim(5, node=1), 1_000, A)
    partition.append(claim(5, node=2), 1_000, B)
    write(partition, A, b"1")
    write(partition, B, b"void")
    assert counted(partition)[1] == [b"1"]


@pytest.mark.parametrize("batch", [[(b"\0\0k", b"v")], [(None, None)], [(b"\x03\xe8bad", b"\0\0bad")]])
def test_what_strangers_write_is_void(batch: list[Record]) -> None:
    partition = Partition()
    partition.append(batch, 1_000, STRANGER)
    partition.append(claim(0), 1_000, A)
    partition.append(batch, 1_000, STRANGER)
    write(partition, A, b"1")
    history, values = counted(partition)
    assert values == [b"1"]
    assert history.void == 2


def test_bytes_that_are_damaged_are_void_from_a_stranger_and_told_from_the_owner() -> None:
    partition = Partition()
    partition.append(claim(0), 1_000, A)
    write(partition, STRANGER, b"damaged")
    write(partition, A, b"damaged")
    base, end, data = partition.batches[1]
    partition.batches[1] = base, end, data[:-2] + b"xx"
    assert counted(partition)[1] == [b"damaged"]
    base, end, data = partition.batches[2]
    partition.batches[2] = base, end, data[:-2] + b"xx"
    with pytest.raises(ValueError, match="state-3: offsets 2 to 2 cannot be read"):
        counted(partition)


def test_late_copies_of_what_the_owner_has_written_are_void() -> None:
    """A cluster that has lost the producer's state appends them after later confirmed writes of the owner."""
    partition = Partition()
    partition.append(claim(0), 1_000, A)
    write(partition, A, b"1", b"2")
    write(partition, A, b"3")
    again = [(b"\0\0k", b"1"), (b"\0\0k", b"2")]
    partition.append_again(again, 1_000, A, 1)
    partition.append_again(claim(0), 1_000, A, 0)
    partition.append_again([(b"\0\0k", b"3")], 1_000, A, 3)
    write(partition, A, b"4")
    partition.append(claim(1, node=2), 1_000, B)
    partition.append_again(again, 1_000, A, 1)
    write(partition, B, b"theirs")
    history, values = counted(partition)
    assert values == [b"1", b"2", b"3", b"4", b"theirs"]
    assert history.void == 4
    assert history.claim == Claim(1, 2, (B.id, B.epoch), 9)


def test_the_sequences_of_a_producer_begin_again_at_zero() -> None:
    partition = Partition()
    last = 2**31 - 1
    partition.append_again(claim(0), 1_000, A, last - 1)
    partition.append_again([(b"\0\0k", b"last")], 1_000, A, last)
    partition.append_again([(b"\0\0k", b"first")], 1_000, A, 0)
    partition.append_again([(b"\0\0k", b"last")], 1_000, A, last)
    history, values = counted(partition)
    assert values == [b"last", b"first"]
    assert history.void == 1


def test_a_renewed_claim_is_enough_where_all_before_it_was_deleted() -> None:
    """A batch is delivered whole even if the log begins within it."""
    partition = Partition()
    partition.append(claim(3), 1_000, A)
    write(partition, A, b"deleted")
    partition.append([(b"\0\0k", b"deleted too"), *claim(3), (b"\0\0k", b"kept")], 1_000, A)
    write(partition, A, b"1")
    partition.batches = partition.batches[2:]
    history, values = counted(partition)
    assert values == [b"kept", b"1"]
    assert history.claim is not None
    assert history.claim.offset == 3


def test_a_renewed_claim_does_not_hide_what_is_before_it() -> None:
    partition = Partition()
    partition.append(claim(3), 1_000, A)
    partition.append([(b"\0\0k", b"1"), *claim(3), (b"\0\0k", b"2")], 1_000, A)
    history, values = counted(partition)
    assert values == [b"1", b"2"]
    assert history.claim is not None
    assert history.claim.offset == 2
