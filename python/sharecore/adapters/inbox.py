"""Jobs that a framework holds, locked until the framework decides on them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from sharecore._core import Record
from sharecore.client.errors import CorruptRecords, WakeupError
from sharecore.client.fetching.acknowledgements import Acknowledged
from sharecore.client.fetching.batch import Part, parts_of, work_on
from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.client.keeper import Kept
from sharecore.client.keeping import KeepingConsumer
from sharecore.client.workers.log import WorkerLog
from sharecore.client.workers.preparation import GroupLimits, Needs, prepare
from sharecore.errors import KafkaError

T = TypeVar("T")
logger = logging.getLogger("sharecore.adapters")

DELIVERY_COUNT = "sharecore_delivery_count"
"""Label, option or header that holds the delivery count of a job, this delivery included."""
LEASE_MAX_MS = 2**31 - 1
"""Locks are renewed as long as the framework's process lives, and run out soon after it has died."""
_FIXED = {
    "share.acknowledgement.mode": "explicit",
    "share.acquire.mode": "record_limit",
    "prefetch.records": 0,
}
_CLOSE_SECONDS = 10.0
_LOOK_SECONDS = 0.02


class Held:
    """One delivery of a job, whose lock is renewed until a method is called; later calls do nothing.

    Attributes:
        record: the job.
        lost: whether the lock was lost: the job is delivered again, to whoever is free.
    """

    def __init__(self, inbox: Inbox, record: Record, kept: Kept) -> None:
        self.record, self.lost = record, False
        self._inbox, self._kept = inbox, kept
        self._decided = False
        kept.when_lost = self._lose

    def accept(self) -> None:
        """End the job: it is done."""
        self._decide(AcknowledgeType.ACCEPT)

    def reject(self) -> None:
        """End the job: it goes to the group's dead-letter topic, if there is one."""
        self._decide(AcknowledgeType.REJECT)

    def release(self, after: float = 0.0) -> None:
        """Have the job delivered again, counted, after some seconds in which it stays locked."""
        if self._decided:
            return
        if after > 0:
            self._inbox.later(after, partial(self._decide, AcknowledgeType.RELEASE))
        else:
            self._decide(AcknowledgeType.RELEASE)

    def _decide(self, kind: AcknowledgeType) -> None:
        if not self._decided:
            self._decided = True
            self._inbox.decide(self, self._kept, kind)

    def _lose(self) -> None:
        if not self._decided:
            self.lost = self._decided = True
            self._inbox.lose(self)


class Inbox:
    """A member of a share group that acknowledges jobs individually and in any order, from one event loop.

    Args:
        config: settings of the share consumer, with `group.id`.
        topics: of the jobs.
        delivery_limit: the group's; None where it may not be seen.
    """

    def __init__(
        self, config: Mapping[str, object], topics: Sequence[str], delivery_limit: int | None = None
    ) -> None:
        self.delivery_limit = delivery_limit
        self._loop = asyncio.get_running_loop()
        self._consumer = KeepingConsumer({"lease.max.ms": LEASE_MAX_MS} | dict(config) | _FIXED)
        self._consumer.set_acknowledgement_commit_callback(_log_failure)
        self._consumer.subscribe(topics)
        self._held: set[Held] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._committing = self._closed = False

    async def take(self, count: int, timeout: float | None = None) -> list[Held]:
        """Return up to `count` jobs; wait at most `timeout` seconds for the first."""
        try:
            batch = await self._consumer.poll(count, timeout=timeout)
        except WakeupError:
            return []
        except CorruptRecords as error:
            logger.error("records that cannot be read were rejected: %s", error)
            return []
        taken = []
        for record in batch:
            parts = list(parts_of(record))
            # from here on, the next poll does not wait for this decision
            work_on(parts)
            held = Held(self, record, self._consumer.keep(parts))
            self._held.add(held)
            taken.append(held)
        return taken

    async def wait_until_joined(self, seconds: float) -> None:
        """Return once share partitions are assigned to this member, or when the time is over."""
        until = self._loop.time() + seconds
        while not self._consumer.assignment and self._loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Take jobs from these topics from now on."""
        self._consumer.subscribe(topics)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function after a delay in seconds, unless the inbox closes first."""

        def due() -> None:
            self._timers.discard(timer)
            call()

        timer = self._loop.call_later(seconds, due)
        self._timers.add(timer)

    def decide(self, held: Held, kept: Kept, kind: AcknowledgeType) -> None:
        """Send a decision, together with the others of this turn of the loop."""
        self._held.discard(held)
        self._consumer.drop(kept)
        if self._closed:
            return
        part: Part
        (part,) = kept.parts
        try:
            self._consumer.settle(part, kind)
        except KafkaError as error:
            logger.warning(
                "%s-%s@%s: %s", held.record.topic, held.record.partition, held.record.offset, error
            )
            return
        if not self._committing:
            self._committing = True
            self._loop.call_soon(self._commit)

    def lose(self, held: Held) -> None:
        """Note that the lock of a job is gone."""
        self._held.discard(held)
        if self._closed:
            return
        record = held.record
        logger.warning(
            "the lock of %s-%s@%s was lost: the job is delivered again",
            record.topic,
            record.partition,
            record.offset,
        )

    def _commit(self) -> None:
        self._committing = False
        if not self._closed:
            self._consumer.commit_async()

    async def close(self) -> None:
        """Send all decisions, release the other jobs, and leave the group."""
        if self._closed:
            return
        for timer in self._timers:
            timer.cancel()
        self._closed = True
        await self._consumer.close(_CLOSE_SECONDS)


class ThreadedInbox:
    """An `Inbox` for frameworks without an event loop: it runs in a thread of its own.

    Calls may come from any thread. Decisions are sent without waiting: `run(held.accept)`.
    """

    def __init__(self, config: Mapping[str, object], topics: Sequence[str], needs: Needs) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sharecore inbox", daemon=True)
        self._thread.start()
        try:
            self._inbox = self._wait(open_inbox(config, topics, needs))
        except BaseException:
            self._stop()
            raise

    def take(self, count: int, timeout: float) -> list[Held]:
        """Return up to `count` jobs; wait at most `timeout` seconds for the first."""
        return self._wait(self._inbox.take(count, timeout))

    def wait_until_joined(self, seconds: float) -> None:
        """Return once share partitions are assigned to this member, or when the time is over."""
        self._wait(self._inbox.wait_until_joined(seconds))

    def subscribe(self, config: Mapping[str, object], topics: Sequence[str], needs: Needs) -> None:
        """Subscribe to topics; create those that do not exist."""
        self._wait(provide(config, topics, needs))
        self.run(self._inbox.subscribe, topics)

    def run(self, decide: Callable[..., None], *arguments: object) -> None:
        """Call a method of a `Held` in the thread of the inbox; nothing happens after `close`."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(decide, *arguments)

    def close(self) -> None:
        """Send all decisions, release the other jobs, and leave the group."""
        if self._thread.is_alive():
            try:
                self._wait(self._inbox.close())
            finally:
                self._stop()

    def _wait(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def provide(config: Mapping[str, object], topics: Sequence[str], needs: Needs) -> GroupLimits:
    """Wait for a broker, and make topics and the group's settings as needed.

    Returns:
        The group's limits.

    Raises:
        KafkaError: a right is missing, or a setting is refused.
    """
    log = WorkerLog(str(config["group.id"]))
    return await prepare(dict(config) | _FIXED, topics, needs, log, lambda _: None)


async def open_inbox(config: Mapping[str, object], topics: Sequence[str], needs: Needs) -> Inbox:
    """Return an inbox of topics and a group that are as `needs` says."""
    limits = await provide(config, topics, needs)
    return Inbox(config, topics, limits.delivery_limit)


def pause_seconds(delivery_count: int, first: float, most: float) -> float:
    """Return how long a job waits after it has failed: twice as long each time."""
    return min(first * float(1 << min(delivery_count - 1, 30)), most)


def _log_failure(answer: Acknowledged) -> None:
    if answer.error is not None:
        logger.warning(
            "%s-%s: decisions were not confirmed, jobs may be delivered again: %s",
            answer.topic,
            answer.partition,
            answer.error,
        )
