"""The driver's side of a query: one group member, its leases, and pending acknowledgements."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Mapping, Sequence

from sharecore.admin import Admin
from sharecore.admin import TopicPartition as AdminPartition
from sharecore.client.errors import CorruptRecords
from sharecore.client.fetching.acknowledgements import TopicPartition
from sharecore.client.fetching.lease import AcknowledgeType, Lease, Span
from sharecore.client.keeper import Kept
from sharecore.client.leases import LeaseConsumer, Leased
from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.spark.offset import Leases, Offset, Outcome, SharePartition, kinds_of
from sharecore.spark.options import Options
from sharecore.spark.ranges import Ranges

logger = logging.getLogger(__name__)

LATEST = -1
_LINGER_SECONDS = 0.05
"""A batch ends when nothing more came for this long."""
_IDLE_SECONDS = 10.0
"""Trigger.AvailableNow ends when nothing came for this long, even where others still hold records."""
_BEGIN_SECONDS = 45.0
"""The same for a group that has not begun to read a partition."""
_ORDERING, _RUN_MAX = "share.ordering", "share.ordering.run.max"
_OWED_RANGES_MAX = 10_000
_OWED_LOOK_SECONDS = 10.0
_FIRST_CONTACT_MS = 20_000
_RECORD_BYTES = 1_000.0
_REFUSED = (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_PASSING = frozenset(
    {
        ErrorCode.INVALID_RECORD_STATE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""Failures of an acknowledgement that the next delivery makes good; after any other it would fail again."""
_FINAL = re.compile(rb"[\x01\x03]+")


class Member:
    """Leases batches, keeps their locks, and acknowledges them.

    Args:
        options: the source's.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.batch: Offset | None = None
        self.owed: Leases = {}
        self.record_bytes: dict[SharePartition, float] = {}
        self._targets: dict[TopicPartition, int] | None = None
        self._held: list[tuple[SharePartition, Leased]] = []
        """Leases of the batch that runs."""
        self._fresh: Leases = {}
        self._fresh_held: list[tuple[SharePartition, Leased]] = []
        """Leases for the batch after it."""
        self._kept: Kept | None = None
        self._finished = -1
        self._unsettled: KafkaError | None = None
        """Why acknowledgements failed last."""
        self._failed: KafkaError | None = None
        """The same, where the next delivery will not make it good."""
        self._looked = 0.0
        self._loop = asyncio.get_running_loop()
        self._consumer: LeaseConsumer | None = None
        settings = read_connection_settings(
            {"default.api.timeout.ms": str(_FIRST_CONTACT_MS), **options.connection}
        )
        self._transport = Transport(settings)
        self._admin = Admin({"default.api.timeout.ms": str(_FIRST_CONTACT_MS), **options.connection})

    async def start(self) -> None:
        """Join the group; nothing happens the second time.

        Raises:
            KafkaError: no broker can be reached, a topic does not exist, or the broker refuses.
            ConfigError: the group's configuration is not the user's to change, or its order allows one task.
        """
        if self._consumer is not None:
            return
        await self._partitions()
        group = self.options.client.group_id
        await self._check_order(group)
        if self.options.starting_offsets is not None:
            await self._set_reset(group, self.options.starting_offsets)
        self._consumer = LeaseConsumer(self.options.member)
        self._consumer.when_answered(self._answered)
        self._consumer.subscribe(self.options.topics)

    async def aim(self) -> None:
        """Limit further leases to the topics' current ends."""
        partitions = await self._partitions()
        ends = await self._transport.offsets_for(partitions, LATEST)
        self._targets = {TopicPartition(*each): end for each, end in ends.items()}

    async def ends(self) -> dict[str, dict[str, int]]:
        """Return the end of each partition, by topic."""
        found: dict[str, dict[str, int]] = {}
        ends = await self._transport.offsets_for(await self._partitions(), LATEST)
        for (topic, partition), end in sorted(ends.items()):
            found.setdefault(topic, {})[str(partition)] = end
        return found

    def adopt(self, batch: Offset) -> None:
        """Adopt a batch of an earlier run, without leases at first."""
        if batch.group != self.options.client.group_id:
            logger.warning("the batch that is run again was leased in group %s", batch.group)
        self.batch, self._held = batch, []
        self.owed = {key: Ranges(ranges) for key, ranges in batch.owed.items()}

    async def finish(self, start: Offset, outcomes: Sequence[Outcome]) -> bool:
        """Acknowledge the batch that ends at `start`, which Spark has committed; return False if it was done
        before.

        What is not leased now is owed, and acknowledged when it is delivered again.
        """
        if self._finished == start.sequence:
            return False
        if self.batch is None or self.batch.sequence != start.sequence:
            self.adopt(start)
        self._finished = start.sequence
        if start.group not in ("", self.options.client.group_id):
            self.batch, self.owed = None, {}
            return True
        for each in await self._acquire(self.options.records_max, 0):
            self._place(each)
        self._drop_kept()
        kinds = kinds_of(start.leased, outcomes)
        for key, ranges in kinds.items():
            owed = self.owed.setdefault(key, Ranges())
            for first, last, kind in ranges:
                if kind == AcknowledgeType.RELEASE:
                    owed.cut(first, last)
                else:
                    owed.put(first, last, kind)
        for key, leased in self._held:
            for first, last, kind in kinds.get(key, Ranges()).overlap(leased.first, leased.last):
                self._settle(leased, first, last, kind)
        self._held = []
        self.batch = None
        return True

    async def lease(self, start: Offset, records_max: int) -> Offset | None:
        """Return the next batch after `start`, or None.

        Raises:
            KafkaError: acknowledgements failed for good, or too many of them are owed: the query must not
                end as if all were settled.
        """
        consumer = self._consumer_()
        try:
            await self._gather(records_max)
        finally:
            await self._flush()
        await self._forget_settled()
        if self._failed is not None:
            raise self._failed
        fresh, self._fresh = self._fresh, {}
        self._held, self._fresh_held = self._fresh_held, []
        if not fresh:
            return None
        if self.options.lock_renew:
            self._kept = consumer.keep([each.part(each.first, each.last) for _, each in self._held])
        self.batch = Offset(
            start.sequence + 1,
            self.options.client.group_id,
            fresh,
            {key: Ranges(ranges) for key, ranges in self.owed.items() if len(ranges)},
        )
        return self.batch

    async def close(self, timeout: float) -> None:
        """Send acknowledgements, release the rest, and leave the group."""
        self._drop_kept()
        if self._consumer is not None:
            await self._consumer.close(timeout)
        await self._transport.close()
        await self._admin.close()

    async def _partitions(self) -> list[AdminPartition]:
        topics = self.options.topics
        return [each for topic in topics for each in await self._transport.partitions_of(topic)]

    def _consumer_(self) -> LeaseConsumer:
        assert self._consumer is not None, "started"
        return self._consumer

    async def _check_order(self, group: str) -> None:
        """Refuse tasks that would read a run of an order at the same time, if the order may be read."""
        if self.options.partitions_min <= 1:
            return
        try:
            found = await self._admin.configs(group, [_ORDERING, _RUN_MAX])
        except KafkaError as error:
            if error.code not in _REFUSED:
                raise
            return
        values = {name: entry.value for name, entry in found.items()}
        ordering, run_max = values.get(_ORDERING) or "none", values.get(_RUN_MAX) or "1"
        if ordering != "none" and run_max != "1":
            raise ConfigError(
                f"group {group} has {_ORDERING}={ordering} with {_RUN_MAX}={run_max}, and "
                f"minPartitions={self.options.partitions_min} tasks would read such a run at the same time: "
                f"set minPartitions=1, or {_RUN_MAX}=1"
            )

    async def _set_reset(self, group: str, where: str) -> None:
        try:
            await self._admin.alter_configs(group, {"share.auto.offset.reset": where})
        except KafkaError as error:
            if error.code not in _REFUSED:
                raise
            raise ConfigError(
                f"startingOffsets sets share.auto.offset.reset of group {group}, which the broker refuses "
                f"({error}): grant ALTER_CONFIGS on the group, or leave the option out and "
                "have it set by whoever may"
            ) from error

    # leasing

    async def _gather(self, records_max: int) -> None:
        count = sum(ranges.offsets for ranges in self._fresh.values())
        wait = self.options.client.fetch_wait_max_ms / 1000 + 0.1
        idle_since = self._loop.time()
        while count < records_max:
            leased = await self._acquire(records_max - count, _LINGER_SECONDS if count else wait)
            for each in leased:
                count += self._place(each)
            if leased:
                idle_since = self._loop.time()
            elif count or self._targets is None or await self._at_the_end(idle_since):
                return

    async def _at_the_end(self, idle_since: float) -> bool:
        """Whether everything that Trigger.AvailableNow is to bring is settled, or nothing came for long."""
        consumer, targets = self._consumer_(), self._targets or {}
        await self._flush()
        if not any(targets.values()):
            return True
        begun = False
        with contextlib.suppress(KafkaError):
            found = await self._admin.offsets(self.options.client.group_id)
            starts = {TopicPartition(*each.partition): each.start_offset for each in found}
            # Apache's start offset stays until a later record is acknowledged
            settled = {TopicPartition(*each.partition) for each in found if each.lag == 0}
            if all(key in settled or (starts.get(key) or 0) >= end for key, end in targets.items()):
                return True
            begun = all(starts.get(key) is not None for key, end in targets.items() if end)
            for each, ranges in self.owed.items():
                ranges.cut(0, (starts.get(TopicPartition(each.topic, each.partition)) or 0) - 1)
        # a broker's first share group waits until its state topic is created
        patience = _IDLE_SECONDS if consumer.joined and begun else _BEGIN_SECONDS
        if self._loop.time() - idle_since <= patience:
            return False
        await self._warn_of_the_rest()
        owed = sum(ranges.offsets for ranges in self.owed.values())
        if owed and self._unsettled is not None and self._failed is None:
            self._failed = KafkaError(
                self._unsettled.code,
                f"{owed} records that Spark has are not settled: {self._unsettled.message}. Start the query "
                "again: it settles them as they are delivered again, and does not process them twice",
            )
        return True

    async def _warn_of_the_rest(self) -> None:
        """Say why records remain that existed when the query began."""
        group, partitions = (
            self.options.client.group_id,
            [AdminPartition(*each) for each in self._targets or ()],
        )
        waiting = await self._admin.waiting_of(group, partitions)
        reasons = [*waiting.of_group(), *waiting.of_partitions(), *waiting.gaps()]
        logger.warning(
            "the query ends before group %s has finished all records: %s",
            group,
            "; ".join(reasons) or "other members hold the rest",
        )

    async def _acquire(self, records_max: int, timeout: float) -> list[Leased]:
        while True:
            try:
                return await self._consumer_().acquire(records_max, timeout)
            except CorruptRecords as error:  # noqa: PERF203
                logger.warning("rejected, since they cannot be read: %s", error)

    async def _flush(self) -> None:
        while True:
            try:
                await self._consumer_().commit_sync()
                return
            except CorruptRecords as error:  # noqa: PERF203
                logger.warning("rejected, since they cannot be read: %s", error)

    def _place(self, leased: Leased) -> int:
        """Add a lease to the next batch or the running one, or release it at once."""
        lease = leased.lease
        key = SharePartition(lease.topic, lease.key.topic_id, lease.partition)
        self.record_bytes[key] = lease.record_bytes or _RECORD_BYTES
        last = leased.last
        if self._targets is not None:
            target = self._targets.get(TopicPartition(key.topic, key.partition), 0)
            if last >= target:
                self._settle(leased, max(leased.first, target), last, AcknowledgeType.RELEASE)
                last = target - 1
        owed = self.owed.get(key, Ranges())
        for first, to, kind in owed.overlap(leased.first, last):
            self._settle(leased, first, to, kind)
        count = 0
        running = Ranges() if self.batch is None else self.batch.leased.get(key, Ranges())
        for first, to in owed.missing(leased.first, last):
            for low, high, _ in running.overlap(first, to):
                self._held.append((key, leased.within(low, high)))
            for low, high in running.missing(first, to):
                self._fresh.setdefault(key, Ranges()).put(low, high, leased.deliveries)
                self._fresh_held.append((key, leased.within(low, high)))
                count += high - low + 1
        return count

    def _settle(self, leased: Leased, first: int, last: int, kind: int) -> None:
        try:
            self._consumer_().settle(leased.part(first, last), AcknowledgeType(kind))
        except KafkaError as error:
            logger.info("%s-%d at %d: %s", leased.lease.topic, leased.lease.partition, first, error)

    # pending acknowledgements

    def _answered(self, lease: Lease, spans: Sequence[Span], error: KafkaError | None) -> None:
        key = SharePartition(lease.topic, lease.key.topic_id, lease.partition)
        if error is not None:
            lost = sum(len(span.types) for span in spans)
            logger.warning(
                "%s: %d acknowledgements failed (%s). Spark has these rows; they are acknowledged when they "
                "are delivered to this query again. If the lock ran out: raise the "
                "share.record.lock.duration.ms of group %s, or leave lock.renew on.",
                key, lost, error, self.options.client.group_id,
            )  # fmt: skip
            self._unsettled = error
            if error.code not in _PASSING and self._failed is None:
                self._failed = KafkaError(
                    error.code,
                    f"acknowledgements of {lost} records of {key} failed, and would fail again: "
                    f"{error.message or error.code.name}. Start the query again once that is put right: it "
                    "settles them as they are delivered again, and does not process them twice",
                )
            return
        owed = self.owed.get(key)
        if owed is None:
            return
        for span in spans:
            for run in _FINAL.finditer(span.types):
                owed.cut(span.first + run.start(), span.first + run.end() - 1)

    async def _forget_settled(self) -> None:
        """Drop pending acknowledgements of records that the group has acknowledged otherwise."""
        self.owed = {key: ranges for key, ranges in self.owed.items() if len(ranges)}
        if not self.owed or self._loop.time() - self._looked < _OWED_LOOK_SECONDS:
            return
        self._looked = self._loop.time()
        with contextlib.suppress(KafkaError):
            found = await self._admin.offsets(self.options.client.group_id)
            starts: Mapping[object, int | None] = {
                (each.partition.topic, each.partition.partition): each.start_offset for each in found
            }
            for key, ranges in self.owed.items():
                ranges.cut(0, (starts.get((key.topic, key.partition)) or 0) - 1)
        for key, ranges in self.owed.items():
            if len(ranges) > _OWED_RANGES_MAX and self._failed is None:
                # without them, rows would be processed again
                self._failed = KafkaError(
                    ErrorCode.INVALID_RECORD_STATE,
                    f"{key}: {ranges.offsets} records in {len(ranges)} ranges are not settled, and no more "
                    f"than {_OWED_RANGES_MAX} ranges are kept. Their locks run out before their batches end: "
                    f"raise the share.record.lock.duration.ms of group {self.options.client.group_id}, lower "
                    "maxRecordsPerTrigger, or leave lock.renew on, and start the query again",
                )

    def _drop_kept(self) -> None:
        if self._kept is not None:
            if self._kept.lost.is_set():
                logger.warning(
                    "acquisition locks were lost while a batch ran: other members of group %s may have got "
                    "its records too",
                    self.options.client.group_id,
                )
            self._consumer_().drop(self._kept)
            self._kept = None
