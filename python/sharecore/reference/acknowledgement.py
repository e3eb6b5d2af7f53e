"""The records covered by an acknowledgement, and whether it is allowed."""

from __future__ import annotations

from collections.abc import Iterator

from sharecore.errors import ErrorCode, KafkaError
from sharecore.reference.record import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE, Record
from sharecore.reference.window import Window

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
STATE_AFTER = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}


def acknowledged(window: Window, first: int, last: int, types: bytes) -> Iterator[tuple[int, int]]:
    """Yield the in-flight offsets of an acknowledged batch, each with its acknowledge type.

    Offsets below the start offset are finished, and those in a gap do not exist: both are skipped.

    Raises:
        KafkaError: INVALID_REQUEST for a batch that is malformed or ends after the in-flight records;
            INVALID_RECORD_STATE for one that begins before them.
    """
    if first > last or len(types) not in (1, last - first + 1):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"offsets {first} to {last} with {len(types)} acknowledge types"
        )
    if any(kind > RENEW for kind in types):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"acknowledge types are 0 to {RENEW}, not {list(types)}")
    if last < window.start_offset:
        return
    if window.batch_at_or_before(max(first, window.start_offset)) is None:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"offset {first} is not in flight")
    if last > max(batch.last for batch in window.batches if batch.first <= last):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"offset {last} is past the records in flight")
    for offset, _ in window.items(max(first, window.start_offset), last):
        yield offset, types[0] if len(types) == 1 else types[offset - first]


def check_owned(offset: int, record: Record, member: str) -> None:
    """Refuse records that `member` does not hold.

    Raises:
        KafkaError: INVALID_RECORD_STATE.
    """
    if record.state != ACQUIRED:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"offset {offset} is not acquired")
    if record.member != member:
        raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"offset {offset} is acquired by another member")
