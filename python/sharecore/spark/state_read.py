"""What an executor does for `format("sharestate")`: decodes one partition of the state topic."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa

from sharecore._core import ShareStateFold, decode_share_state
from sharecore.errors import ErrorCode, KafkaError
from sharecore.spark.state_columns import state_rows, topic_ids, unreadable_row, with_names
from sharecore.spark.state_options import FAILFAST, LIVE, PERMISSIVE, StateOptions
from sharecore.spark.state_parts import Moved, NoBatch, StateLog, StatePartition

logger = logging.getLogger(__name__)

UNREADABLE_ROWS_MAX = 10_000
"""Rows about what a fold could not read; a history has one for each thing."""
_ATTEMPTS = 5


def read_state(part: StatePartition, log: StateLog, options: StateOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task.

    Raises:
        KafkaError: CORRUPT_MESSAGE for what cannot be read, unless the mode lets it pass; others when the log
            cannot be had.
        OSError: a file cannot be read.
    """
    names: dict[str, str | None] = {}
    try:
        read = _live if options.view == LIVE else _history
        for batch in read(part, log, options):
            unknown = [each for each in topic_ids(batch) if each not in names]
            if unknown:
                names |= dict.fromkeys(unknown) | log.names(unknown)
            yield with_names(batch, names)
    finally:
        log.close()


def _history(part: StatePartition, log: StateLog, options: StateOptions) -> Iterator[pa.RecordBatch]:
    first, end = part.first, part.end
    keep = options.mode == PERMISSIVE
    for attempt in range(_ATTEMPTS):
        try:
            for records in log.chunks(first, end):
                position = 0
                while position < len(records):
                    (rows, buffers), position, following, problem = decode_share_state(
                        records, first, end, position=position, keep_unreadable=keep, group=options.group
                    )
                    if following is None:
                        break
                    _judge(part, problem, options)
                    first = max(first, following)
                    if rows:
                        yield state_rows(rows, buffers, part.partition)
            return
        except NoBatch as error:
            _judge(part, (error.offset, str(error)), options)
            if keep:
                yield unreadable_row(part.partition, error.offset, str(error))
            return
        except Moved:
            # deleted records were redundant: the history begins later now
            if attempt == _ATTEMPTS - 1:
                raise _restless(part) from None
            first = max(first, log.bounds()[0])


def _live(part: StatePartition, log: StateLog, options: StateOptions) -> Iterator[pa.RecordBatch]:
    first, end = part.first, part.end
    for attempt in range(_ATTEMPTS):
        most = UNREADABLE_ROWS_MAX if options.mode == PERMISSIVE else None
        fold = ShareStateFold(first, end, unreadable_max=most, group=options.group)
        broken: tuple[int, str] | None = None
        try:
            for records in log.chunks(first, end):
                _judge(part, fold.take(records)[1], options)
        except NoBatch as error:
            broken = (error.offset, str(error))
            _judge(part, broken, options)
        except Moved:
            if attempt == _ATTEMPTS - 1:
                raise _restless(part) from None
            first, end = log.bounds()
            continue
        yield from _drained(fold, part, options)
        if broken is not None and options.mode == PERMISSIVE:
            yield unreadable_row(part.partition, *broken)
        return


def _drained(fold: ShareStateFold, part: StatePartition, options: StateOptions) -> Iterator[pa.RecordBatch]:
    while True:
        (rows, buffers), problem = fold.drain()
        _judge(part, problem, options)
        if not rows:
            return
        yield state_rows(rows, buffers, part.partition)


def _judge(part: StatePartition, problem: tuple[int, str] | None, options: StateOptions) -> None:
    if problem is None or options.mode != FAILFAST:
        return
    offset, reason = problem
    raise KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"{part.name} at offset {offset}: {reason}; mode=PERMISSIVE has it as a row with the reason in the "
        "column error, mode=DROPMALFORMED leaves it out",
    )


def _restless(part: StatePartition) -> KafkaError:
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"{part.name}: its beginning was let go of {_ATTEMPTS} times while it was read; try again",
    )
