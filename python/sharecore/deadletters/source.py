"""The records that dead letters are about, read from their log."""

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
    """Reads a log for letters.

    Args:
        ready: called when a thread has read, so that reading again gets it.
        call_later: for what is tried again.
    """

    def __init__(self, log: Log, ready: Callable[[], None], call_later: CallLater) -> None:
        self._log = log
        self._ready, self._call_later = ready, call_later
        self._tries = 0
        self._reader = Reader(log, ready, once=True)

    def read(self, letters: Sequence[DeadLetter]) -> tuple[bytes, int] | None:
        """Record batches with the first records of the letters that are due, and the offset up to which there
        are no others; None while a thread reads, and while a log that cannot be read is tried again.
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
            return self._failed(letters[0], "there is no record")
        self._tries = 0
        return found.records, found.batches[-1][1] + 1

    def _failed(self, letter: DeadLetter, reason: str) -> tuple[bytes, int] | None:
        """Try again, up to five times until something is read: a disk may recover, and where the log ends
        is asked again: it may not be followed, as the group reads what is committed only, its next records
        may be long under way to who has taken over from another that had read them, and who leads it since a
        moment may not know that yet.
        """
        if self._tries < _TRIES_MAX:
            self._tries += 1
            self._log.ask_limits(self._told)
            return None
        logger.warning(
            "%s-%d cannot be read at %d: %s", self._log.topic, self._log.index, letter.first, reason
        )
        return b"", letter.last + 1

    def _told(self, error: KafkaError | None) -> None:
        """The ends of the log are known, or could not be asked for."""
        if error is not None:
            logger.warning("%s-%d is not read now: %s", self._log.topic, self._log.index, error)
            self._tries = 0
        # never at once: who reads has to be told first that it waits
        self._call_later(0.0 if self._tries == 1 else _RETRY_SECONDS, self._ready)
