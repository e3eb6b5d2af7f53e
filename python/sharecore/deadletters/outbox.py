"""Pending dead letters of one share partition."""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from sharecore._core import DeadLetterBatch
from sharecore.clock import Clock
from sharecore.deadletters.counts import GroupCounts
from sharecore.deadletters.destination import Destinations, Unavailable
from sharecore.deadletters.letter import DeadLetter, spans
from sharecore.deadletters.source import Source
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import CallLater, Timer

if TYPE_CHECKING:
    from sharecore.storage import Log, Topic

logger = logging.getLogger(__name__)

_ATTEMPTS_MAX = 5
_FIRST_WAIT_SECONDS = 2.0
_JITTER = 0.2
_HELD_SECONDS = 5.0
_RETRIABLE = frozenset(
    {
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class Outbox:
    """Write dead-letter records in due order, one record batch at a time.

    A rejected write is retried a few times if that may help (KIP-1191). Then the records are archived without
    a dead-letter record, or wait if `errors.deadletterqueue.required` is set.

    Args:
        archive: called with the offsets whose letters are written, or never will be.
        leads: returns whether this broker may act as the leader of the share partition.
        waiting: the set of outboxes that wait for a topic.
        counts: returns the counters of a group.
        may_say: returns whether a cause may be logged for a group again.
    """

    def __init__(
        self,
        group_id: str,
        source: Log,
        archive: Callable[[Sequence[tuple[int, int]]], None],
        *,
        leads: Callable[[], bool],
        destinations: Destinations,
        counts: Callable[[str], GroupCounts],
        may_say: Callable[[str, str], bool],
        waiting: dict[Outbox, None],
        clock: Clock,
        call_later: CallLater,
    ) -> None:
        self._group_id = group_id
        self._log = source
        self._source = Source(source, self._read, call_later)
        self._archive = archive
        self._leads = leads
        self._destinations = destinations
        self._counts = counts
        self._may_say = may_say
        self._all_waiting = waiting
        self._clock = clock
        self._call_later = call_later
        self._due: deque[DeadLetter] = deque()
        self._writing = False
        self._reading = False
        self._closed = False
        self._attempts = 0
        self._tried = 0  # number of due letters covered by the attempts
        self._one_by_one = 0
        self._timer: Timer | None = None
        self._held_for = ""

    @property
    def busy(self) -> bool:
        """Whether a dead-letter write is pending."""
        return self._writing

    def send(self, letters: Iterable[DeadLetter]) -> None:
        """Queue letters that have become due."""
        self._due += letters
        if self._due and not self._writing:
            self._writing = True
            self._go_on()

    def try_again(self) -> None:
        """Retry at once if the outbox waits for a topic, which may have changed."""
        if self in self._all_waiting:
            self._resume()

    def close(self) -> None:
        """Stop waiting: the share partition is no longer led, and the next loaded state names the letters
        again.
        """
        self._closed = True
        if self in self._all_waiting:
            self._leave_waiting()
            self._stop()

    def _stop(self) -> None:
        self._due.clear()
        self._writing = False

    def _read(self) -> None:
        if self._reading:
            self._reading = False
            if self._closed:
                self._stop()
            else:
                self._go_on()

    def _go_on(self) -> None:
        if not self._due:
            self._writing = False
            return
        if not self._leads():
            # another broker may lead by now: it finds the due records in the state that it loads
            self._wait()
            return
        try:
            topic = self._destinations.find(self._group_id)
        except Unavailable as refusal:
            letters = list(self._due)
            self._counts(self._group_id).undeliverable += _records(letters)
            self._failed(letters, str(refusal))
            return
        if topic is None:
            creating = self._destinations.create(self._group_id)
            creating.add_done_callback(lambda made: None if made.cancelled() else self._made(made.result()))
        else:
            self._write(topic)

    def _made(self, error: KafkaError | None) -> None:
        if error is None:
            self._attempts = self._tried = 0
            self._go_on()
        else:
            tried = list(self._due)[: self._tried or None]
            self._refused(tried, error, "cannot create the topic")

    def _write(self, topic: Topic) -> None:
        log = topic.partitions[self._log.index % len(topic.partitions)]
        config, now_ms = self._destinations.group_config(self._group_id), self._clock.now_ms()
        batch = DeadLetterBatch(
            self._group_id,
            self._log.topic,
            self._log.index,
            copy=config.errors_deadletterqueue_copy_record_enable,
            now_ms=now_ms,
            max_bytes=self._destinations.max_bytes(topic),
        )
        letters = self._fill(batch)
        if not letters:
            self._reading = True
            return
        count = batch.count
        if not count:
            self._done(letters)
            return
        if self._one_by_one:
            self._one_by_one -= 1
        counts = self._counts(self._group_id)
        counts.writes += len(letters)
        try:
            appended = log.append(batch.finish(), now_ms=now_ms)
        except KafkaError as error:
            self._due.extendleft(reversed(letters))
            self._not_appended(letters, count, error)
            return

        def durable(error: KafkaError | None) -> None:
            if error is None:
                counts.letters += count
                self._done(letters)
            else:
                self._due.extendleft(reversed(letters))
                self._refused(letters, error, "cannot write the dead-letter record")

        appended.ticket.add_done_callback(lambda ticket: durable(ticket.error))

    def _fill(self, batch: DeadLetterBatch) -> list[DeadLetter]:
        """Fill a batch with letters, and return those in it; empty while the disk is read."""
        filled: list[DeadLetter] = []
        while self._due and not (self._tried and len(filled) >= self._tried):
            found = self._source.read(self._due)
            if found is None:
                break
            records, read_to = found
            ranges = self._together(read_to, self._tried - len(filled))
            done, following = batch.add(ranges, records, read_to)
            filled += [self._due.popleft() for _ in range(done)]
            if self._one_by_one and filled:
                break
            if done < len(ranges):
                letter = self._due[0]
                if following > letter.first:
                    filled.append(letter._replace(last=following - 1))
                    self._due[0] = letter._replace(first=following)
                if following < read_to:
                    break
        return filled

    def _together(self, read_to: int, most: int) -> list[DeadLetter]:
        """Return up to `most` ascending letters covered by the read (all if 0)."""
        if self._one_by_one:
            letter = self._due.popleft()
            if letter.last > letter.first:
                self._due.appendleft(letter._replace(first=letter.first + 1))
            self._due.appendleft(letter._replace(last=letter.first))
            return [self._due[0]]
        chosen: list[DeadLetter] = []
        for letter in self._due:
            if letter.first >= read_to or (chosen and letter.first <= chosen[-1].last):
                break
            if 0 < most <= len(chosen):
                break
            chosen.append(letter)
        return chosen

    def _done(self, letters: list[DeadLetter]) -> None:
        """Archive written letters, and those without records."""
        self._attempts = self._tried = 0
        if self._held_for:
            self._held_for = ""
            logger.warning("%s: writing dead-letter records again", self._name())
        self._archive(spans(letters, list(self._due)))
        self._go_on()

    def _not_appended(self, letters: list[DeadLetter], count: int, error: KafkaError) -> None:
        if count > 1 and error.code not in _RETRIABLE:
            self._one_by_one = count  # the topic rejects a batch as a whole: send its letters one by one
            self._go_on()
        else:
            self._refused(letters, error, "the topic rejects the dead-letter record")

    def _refused(self, letters: list[DeadLetter], error: KafkaError, what: str) -> None:
        """Retry or abandon the first due letters after an error of the topic."""
        reason = f"{what}: {error.code.name} {error.message}".rstrip()
        if error.code in _RETRIABLE:
            self._attempts += 1
            if self._attempts < _ATTEMPTS_MAX:
                self._tried = len(letters)
                wait = _FIRST_WAIT_SECONDS * 2 ** (self._attempts - 1)
                logger.info("%s: retrying in about %.0f s: %s", self._name(), wait, reason)
                self._later(wait * random.uniform(1 - _JITTER, 1 + _JITTER))
                return
        self._counts(self._group_id).failed_writes += len(letters)
        self._failed(letters, reason)

    def _failed(self, letters: list[DeadLetter], reason: str) -> None:
        """Abandon the first due letters, or keep them waiting."""
        self._attempts = self._tried = 0
        if self._destinations.group_config(self._group_id).errors_deadletterqueue_required:
            self._hold(reason)
            return
        self._held_for = ""
        for _ in letters:
            self._due.popleft()
        counts = self._counts(self._group_id)
        counts.without_letter += _records(letters)
        if letters and self._may_say(self._group_id, reason):
            logger.error(
                "%s, offsets %d to %d (%s): archived without a dead-letter record (%d in the group): %s",
                self._name(),
                letters[0].first,
                letters[0].last,
                letters[0].cause,
                counts.without_letter,
                reason,
                extra=self._about(),
            )
        self._archive(spans(letters, list(self._due)))
        self._go_on()

    def _hold(self, reason: str) -> None:
        if reason != self._held_for:
            self._held_for = reason
            waiting = _records(self._due)
            logger.warning(
                "%s: %d records wait for their dead-letter records (errors.deadletterqueue.required): %s",
                self._name(),
                waiting,
                reason,
                extra=self._about(),
            )
        self._wait()

    def _wait(self) -> None:
        if self._closed:
            self._stop()
        else:
            self._all_waiting[self] = None
            self._later(_HELD_SECONDS)

    def _later(self, seconds: float) -> None:
        self._timer = self._call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._leave_waiting()
        self._go_on()

    def _leave_waiting(self) -> None:
        self._all_waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _about(self) -> dict[str, object]:
        return {"group": self._group_id, "topic": self._log.topic, "partition": self._log.index}

    def _name(self) -> str:
        return f"group {self._group_id}, {self._log.topic}-{self._log.index}"


def _records(letters: Iterable[DeadLetter]) -> int:
    return sum(letter.last - letter.first + 1 for letter in letters)
