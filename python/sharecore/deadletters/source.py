"""Source records of dead letters, read from their log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sharecore.deadletters.letter import DeadLetter
from sharecore.errors import KafkaError
from sharecore.storage import Reader
from sharecore.waiting import CallLater

if TYPE_CHECKING:
    from sharecore.storage import Log

logger = logging.getLogger(__name__)

_READ_BYTES = 1 << 20
_RETRY_SECONDS = 1.0
_TRIES_MAX = 5


class Source:
    """Read the source records of letters.

    Args:
        ready: called when a thread read completes; a retry then returns the records.
        call_later: schedules retries.
    """

    def __init__(self, log: Log, ready: Callable[[], None], call_later: CallLater) -> None:
        self._log = log
        self._ready, self._call_later = ready, call_later
        self._tries = 0
        self._reader = Reader(log, ready, once=True)

    def read(self, letters: Sequence[DeadLetter]) -> tuple[bytes, int] | None:
        """Return batches with the first due records, and the offset up to which there are no others.

        None while a thread reads, and between retries of an unreadable log.
        """
        first, last = letters[0][:2]
        log = self._log
        if first < log.start_offset:
            return b"", log.start_offset
        for letter in letters:
            if letter.first < last:
                break
            last = letter.last
        try:
            found = self._reader.read(
                first, _READ_BYTES, limit=log.high_watermark, max_records=last - first + 1
            )
        except KafkaError as error:
            return self._failed(letters[0], str(error))
        if found is None:
            return None
        if not found.batches:
            return self._failed(letters[0], "the record does not exist")
        self._tries = 0
        return found.records, found.batches[-1][1] + 1

    def _failed(self, letter: DeadLetter, reason: str) -> tuple[bytes, int] | None:
        """Retry up to five times: a disk may recover, and the known end of the log may be outdated.

        The log may not be followed, as the group reads only committed records. After a takeover its next
        records may be delayed, and a new leader may not know its end yet.
        """
        if self._tries < _TRIES_MAX:
            self._tries += 1
            self._log.ask_limits(self._located)
            return None
        logger.warning(
            "cannot read %s-%d at offset %d: %s", self._log.topic, self._log.index, letter.first, reason
        )
        return b"", letter.last + 1

    def _located(self, error: KafkaError | None) -> None:
        """Retry after the log's end was determined, or that failed."""
        if error is not None:
            logger.warning("%s-%d is not read now: %s", self._log.topic, self._log.index, error)
            self._tries = 0
        # never at once: the reader must first learn that it waits
        self._call_later(0.0 if self._tries == 1 else _RETRY_SECONDS, self._ready)
