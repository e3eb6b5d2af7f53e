"""The tasks of a share consumer, and their shared state."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore.client.errors import AuthenticationFailed
from sharecore.client.fetching.acknowledgements import Results, TopicPartition
from sharecore.client.fetching.batch import Part
from sharecore.client.fetching.buffer import Buffer, Fetched
from sharecore.client.fetching.host import Demand
from sharecore.client.fetching.intake import take_in
from sharecore.client.fetching.lease import AcknowledgeType, Lease
from sharecore.client.fetching.link import BrokerLink
from sharecore.client.fetching.refusals import Refusal, Refusals
from sharecore.client.keeper import Keeper
from sharecore.client.membership import Membership
from sharecore.client.metrics import Metrics
from sharecore.client.settings import Settings
from sharecore.client.telemetry import Telemetry
from sharecore.client.wire.cluster import Backoff, Cluster, TopicIdPartition
from sharecore.clock import Clock
from sharecore.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from sharecore.client.fetching.host import TakeIn

logger = logging.getLogger(__name__)

_ERRORS_MAX = 100
_FETCH_WAIT_MIN_MS = 10
_PREFETCH_POLLS_A_LOCK = 10
"""Records are prefetched only for an application that polls at least this often per lock."""


class Runtime:
    """Connects membership, links, buffer and keeper of one consumer, and owns their tasks.

    Args:
        settings: of the consumer.
        clock: measures locks and polls.
        intake: turns responses into records.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        intake: TakeIn = take_in,
    ) -> None:
        self.settings = settings
        self.take_in = intake
        self.on_lost: Callable[[Lease], None] | None = None
        """Called with each lost lease."""
        self.lock_ms = 0
        self.poll_gap_ms = 0.0
        self.final: Exception | None = None
        self.errors: deque[Exception] = deque(maxlen=_ERRORS_MAX)
        self.closing = False
        self.buffer = Buffer()
        self.metrics = Metrics(lambda: clock.monotonic_ms() / 1000, settings.client_id)
        self.results = Results()
        self.cluster: Cluster[Settings] = Cluster(settings)
        self.cluster.watch = self.metrics
        self.now_ms = clock.monotonic_ms
        self.refusals = Refusals(self.now_ms)
        self.polled_ms = clock.monotonic_ms()
        self.keeper = Keeper(self)
        self.results.refused = self.keeper.refused
        self.membership = Membership(self.cluster, self.metrics, self._assigned, self.fail, self.idle_ms)
        self.telemetry = self._telemetry() if settings.enable_metrics_push else None
        self.links: dict[int, BrokerLink] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stale = asyncio.Event()
        self._names: tuple[str, ...] = ()
        self._look_up = False
        """Whether to look up the topics by name."""
        self._flushing: set[asyncio.Future[None]] = set()
        """Completed when a flush is interrupted."""

    @property
    def member_id(self) -> str:
        return self.membership.member_id

    @property
    def leased(self) -> bool:
        """Whether any record is held."""
        return any(link.leases for link in self.links.values())

    def refused(self) -> dict[TopicPartition, Refusal]:
        """Return the currently refused share partitions, by topic name."""
        topics = self.cluster.topics
        return {
            TopicPartition(topics[key.topic_id].name, key.partition): refusal
            for key, refusal in self.refusals.now().items()
            if key.topic_id in topics
        }

    def start(self) -> None:
        """Start the tasks; idempotent."""
        if not self._tasks:
            self.spawn(self.membership.run(), "membership")
            self.spawn(self._watch(), "metadata")
            self.spawn(self.keeper.run(), "keeper")
            if self.telemetry is not None:
                self.spawn(self.telemetry.run(), "telemetry")

    def _telemetry(self) -> Telemetry:
        settings = self.settings
        about = {
            "group_id": settings.group_id,
            "group_member_id": self.member_id,
            "client_rack": settings.client_rack,
        }
        return Telemetry(self.cluster, self.metrics.read, about)

    def subscribe(self, names: tuple[str, ...]) -> None:
        """Set the subscribed topics."""
        self.polled_ms = self.now_ms()
        self.membership.subscribe(names)
        self._names, self._look_up = names, True
        self.refresh()
        self.start()

    def spawn(self, work: Coroutine[object, None, None], name: str) -> object:
        """Run a task that ends with the consumer at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=f"sharecore {name}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            logger.error("the task %s ended", task.get_name(), exc_info=error)
            self.fail(error, True)

    def idle_ms(self) -> float:
        """Return how long the application has neither polled nor held a lease."""
        return 0 if self.keeper.busy or self.buffer.waiting_for else self.now_ms() - self.polled_ms

    # calls by links

    def demand(self, *, requested: int, drained: bool) -> Demand | None:
        """Return the fetch that is due.

        `requested`: records in flight from the broker of the asking link; `drained`: it had none the last
        time.
        """
        settings, buffer = self.settings, self.buffer
        if self.closing or self.final is not None:
            return None
        if buffer.waiting_for and not buffer.records and not requested:
            left_ms = buffer.waiting_until_ms - self.now_ms()
            if left_ms < _FETCH_WAIT_MIN_MS:
                # records arriving after the poll timed out would wait for the next one under a lock
                return None
            return Demand(int(min(settings.fetch_wait_max_ms, left_ms)), buffer.waiting_for)
        # unpolled records are released, and fetching them again would use up their deliveries
        gap_ms = max(self.poll_gap_ms, self.idle_ms())
        quick = gap_ms * _PREFETCH_POLLS_A_LOCK < self.lock_ms
        if quick and not drained and buffer.records + requested < settings.prefetch_records:
            return Demand(0, settings.max_poll_records)
        return None

    def deliver(self, fetched: Fetched) -> None:
        self.keeper.kick()
        self.buffer.add(fetched)

    def lose(self, lease: Lease) -> None:
        if self.on_lost is not None:
            self.on_lost(lease)
        self.buffer.drop(lambda other: other is lease)
        if lease.lost is not None:
            self.keeper.lose(lease, lease.lost)

    def fail(self, error: Exception, final: bool) -> None:
        """Make the application's next call raise an error; a permanent one, every later call too."""
        if final and self.final is None:
            self.final = error
        else:
            self.errors.append(error)
        self.buffer.wake()

    def refresh(self) -> None:
        """Refresh the metadata."""
        self._stale.set()

    # calls by the keeper and the application

    def acknowledge_parts(self, parts: Iterable[Part], kind: AcknowledgeType) -> None:
        for lease, low, high in parts:
            lease.owner.mark(lease, low, high, kind)

    def send(self, leases: Iterable[Lease]) -> None:
        """Send the marks of these leases, without waiting for the response."""
        for owner in {lease.owner for lease in leases}:
            owner.commit()

    def expire(self) -> None:
        now_ms = self.now_ms()
        for link in self.links.values():
            link.expire(now_ms)

    def advance(self) -> None:
        """Fetch if that is due: the application took records or waits for some."""
        for link in self.links.values():
            link.advance()

    def commit(self) -> None:
        """Send the marks of all links, with a fetch if one is due."""
        for link in self.links.values():
            link.commit()

    def unsettled(self) -> set[Lease]:
        """Return the leases with unanswered acknowledgements."""
        return {lease for link in self.links.values() for lease in link.leases if lease.unsettled}

    def interrupt(self) -> None:
        """Wake everything that waits for the application."""
        self.buffer.wake()
        for interrupted in self._flushing:
            if not interrupted.done():
                interrupted.set_result(None)

    async def flush(self) -> None:
        """Return when all marks were answered or have failed."""
        await asyncio.gather(*(link.flush() for link in self.links.values()))

    async def flush_until(self, deadline: float | None) -> bool:
        """Return whether all marks were answered or failed before `interrupt` and the deadline.

        Args:
            deadline: in loop time; None for no limit.
        """
        loop = asyncio.get_running_loop()
        # before any task starts: `interrupt` may be due in this turn of the loop
        interrupted: asyncio.Future[None] = loop.create_future()
        self._flushing.add(interrupted)
        flushed = asyncio.ensure_future(self.flush())
        try:
            done, _ = await asyncio.wait(
                (flushed, interrupted),
                timeout=None if deadline is None else max(0.0, deadline - loop.time()),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            self._flushing.discard(interrupted)
            flushed.cancel()
            interrupted.cancel()
        return flushed in done

    async def client_instance_id(self, seconds: float) -> UUID:
        """Return the ID that the cluster assigned to this client; raise RuntimeError without metrics."""
        if self.telemetry is None:
            raise RuntimeError("client_instance_id needs enable.metrics.push=true")
        self.start()
        try:
            async with asyncio.timeout(seconds):
                return await self.telemetry.instance_id()
        except TimeoutError:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"no ID within {seconds} s") from None

    # partitions and their leaders

    def _assigned(self, partitions: frozenset[TopicIdPartition]) -> None:
        if self.closing:
            return
        logger.info("%d share partitions are assigned", len(partitions))
        dropped = self.buffer.drop(lambda lease: lease.key not in partitions)
        self.acknowledge_parts(dropped, AcknowledgeType.RELEASE)
        self.send({part.lease for part in dropped})
        self._spread()
        if any(self.cluster.leader(key) < 0 for key in partitions):
            self.refresh()

    def _spread(self) -> None:
        """Assign each partition to the link of its leader, if known."""
        found: dict[int, set[TopicIdPartition]] = defaultdict(set)
        for key in self.membership.assignment:
            node = self.cluster.leader(key)
            if node >= 0:
                found[node].add(key)
        for node in found.keys() - self.links.keys():
            self.links[node] = BrokerLink(node, self)
        for node, link in self.links.items():
            link.want(frozenset(found.get(node, ())))

    async def _watch(self) -> None:
        """Refresh the metadata when it is outdated."""
        settings = self.settings
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        while True:
            try:
                async with asyncio.timeout(settings.metadata_max_age_ms / 1000):
                    await self._stale.wait()
            except TimeoutError:
                self._look_up = True
            self._stale.clear()
            try:
                if self._names and self._look_up:
                    await self._look_up_names()
                assigned = self.membership.assignment
                if assigned:
                    await self.cluster.refresh(topic_ids={key.topic_id for key in assigned})
            except AuthenticationFailed as error:
                self.fail(error, True)
                return
            except KafkaError as error:
                logger.info("metadata: %s", error)
                self._stale.set()
            self._spread()
            if any(self.cluster.leader(key) < 0 for key in self.membership.assignment):
                self._stale.set()
            if self._stale.is_set():
                await asyncio.sleep(backoff.seconds())
            else:
                backoff.reset()

    async def _look_up_names(self) -> None:
        """Look up the topics' leaders, which the assignment will need; report invalid names."""
        self._look_up = False
        try:
            refused = await self.cluster.refresh(names=self._names)
        except KafkaError:
            self._look_up = True
            raise
        invalid = [name for name, code in refused.items() if code == ErrorCode.INVALID_TOPIC_EXCEPTION]
        if invalid:
            shown = ", ".join(map(repr, invalid))
            self.fail(KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"invalid topic name: {shown}"), False)

    # the end

    async def close(self, timeout: float) -> None:
        """Send the marks, close the share sessions, leave the group; give up after `timeout` seconds."""
        self.closing = True
        self.buffer.wake()
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        try:
            for link in self.links.values():
                link.close()
            if self.links:
                await asyncio.wait([link.closed for link in self.links.values()], timeout=timeout)
            await self._stop_tasks()
            async with asyncio.timeout_at(until):
                await self.membership.close()
                if self.telemetry is not None:
                    await self.telemetry.finish()
        except TimeoutError:
            logger.warning("could not leave the group within %.1f s", timeout)
        except KafkaError as error:
            logger.info("while leaving: %s", error)
        finally:
            for link in self.links.values():
                link.abandon()
            for task in self._tasks:
                task.cancel()
            await self.cluster.close()

    async def vanish(self) -> None:
        """Stop like a killed process: send nothing to the brokers."""
        self.closing = True
        self.buffer.wake()
        for link in self.links.values():
            link.abandon()
        await self._stop_tasks()
        await self.cluster.close()

    async def _stop_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
