"""The share consumer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from math import inf
from threading import get_ident
from types import TracebackType
from typing import Self
from uuid import UUID

from sharecore._core import Record
from sharecore.client.arguments import check_loop, check_timeout, loop_of, read_max_records, topic_names
from sharecore.client.delivery import Deliveries
from sharecore.client.errors import ConsumerClosed, LeaseLost, WakeupError
from sharecore.client.fetching.acknowledgements import Callback, TopicPartition
from sharecore.client.fetching.batch import Batch, Part, work_on
from sharecore.client.fetching.buffer import done_by
from sharecore.client.fetching.intake import take_in
from sharecore.client.fetching.lease import HELD, AcknowledgeType
from sharecore.client.fetching.refusals import Refusal
from sharecore.client.keeper import Kept
from sharecore.client.metrics import MetricName
from sharecore.client.runtime import Runtime
from sharecore.client.settings import RECORD_LIMIT, read_settings
from sharecore.clock import Clock, SystemClock
from sharecore.errors import ErrorCode, KafkaError

_YIELD_MS = 20
"""The event loop gets a turn at least this often, even while records are buffered."""
ASKS_MS_MIN = 20
"""A shorter poll still sends a fetch; the next poll returns its records."""
_AT_ONCE = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)
"""Acknowledge types for which marking the record is enough."""


class ShareConsumer:
    """A member of a share group (KIP-932).

    In implicit mode, the default, a poll or a commit accepts the records returned before it; nothing else
    does. In explicit mode each record is acknowledged individually, in any order, before the next poll.
    Leased or renewed records do not block polls, so several batches may be processed at once.

    Must be created in a running event loop, and used in that loop; only `wakeup` may be called from anywhere.

    Args:
        config: settings named as in confluent-kafka and Kafka's Java client; see docs/client.md.
        clock: for tests.
        keywords: the same settings with `_` for each dot.

    Raises:
        ConfigError: an unknown, missing or invalid setting.
    """

    _intake = staticmethod(take_in)

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        /,
        *,
        clock: Clock | None = None,
        **keywords: object,
    ) -> None:
        self.settings = read_settings(config, **keywords)
        self._loop = loop_of("sharecore.client.ShareConsumer", "sharecore.client.blocking.ShareConsumer")
        self._runtime = Runtime(self.settings, clock or SystemClock(), self._intake)
        self._explicit = self.settings.explicit
        self._exactly = self.settings.share_acquire_mode == RECORD_LIMIT
        self.deliveries = Deliveries(self._runtime)
        self._subscription: tuple[str, ...] = ()
        self._woken = False
        self._closed = False
        self._yielded_ms = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the consumer. Records neither accepted nor committed are released, in implicit mode too."""
        await self.close()

    # subscription

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics."""
        self._raise_in_callback()
        return frozenset(self._subscription)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The share partitions assigned to this member, as far as their topic names are known."""
        self._raise_in_callback()
        topics = self._runtime.cluster.topics
        return frozenset(
            TopicPartition(topics[key.topic_id].name, key.partition)
            for key in self._runtime.membership.assignment
            if key.topic_id in topics
        )

    @property
    def refusals(self) -> dict[TopicPartition, Refusal]:
        """The share partitions that currently return an error in place of records; they are retried."""
        self._raise_in_callback()
        return self._runtime.refused()

    @property
    def member_id(self) -> str:
        """This member's ID in the group; it never changes."""
        return self._runtime.member_id

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """The duration of acquisition locks in the last response of a leader; None before the first."""
        self._raise_in_callback()
        return self._runtime.lock_ms or None

    def subscribe(self, topics: Iterable[str]) -> None:
        """Replace the subscription; an empty list is the same as `unsubscribe`.

        An invalid topic name makes a later poll raise, once the broker has responded.

        Raises:
            ValueError: the argument is a single string, or a name is blank.
        """
        names = topic_names(topics)
        self._raise_if_closed()
        self._subscription = names
        self._runtime.subscribe(names)

    def unsubscribe(self) -> None:
        """Leave the group, and release buffered records; returned records may still be acknowledged."""
        self.subscribe(())

    # records

    async def poll(self, max_records: int | None = None, *, timeout: float | None = None) -> Batch:
        """Return records as soon as there are any.

        Records renewed with `acknowledge` are returned first, in a batch of their own, once the broker has
        confirmed the renewal.

        Args:
            max_records: the most records to return; by default whole fetches of about `max.poll.records`.
            timeout: seconds to wait, after which an empty batch is returned; unlimited by default. Even a
                short poll sends a fetch, and the next poll returns its records.

        Raises:
            ValueError: a negative timeout, or a maximum below 1.
            WakeupError: `wakeup` was called.
            ConsumerClosed: the consumer is closed, or was closed while this waited.
            CorruptRecords: unreadable records were rejected.
            DeserializationError: a deserializer failed for a record.
            KafkaError: a permanent error from the brokers, such as an invalid topic name.
            RuntimeError: there is no subscription; in explicit mode, a record of an earlier poll is neither
                acknowledged nor in progress (`lease`, `renew`).
        """
        check_timeout(timeout)
        if max_records is not None:
            max_records = read_max_records(max_records)
        check_loop(self._loop)
        runtime = self._runtime
        self._begin()
        gap = runtime.metrics.poll_began()
        runtime.poll_gap_ms = gap * 1000
        try:
            return await self._take(max_records, timeout)
        finally:
            runtime.metrics.poll_ended()
            runtime.polled_ms = runtime.now_ms()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        """Return the next record; in implicit mode the previous one is accepted."""
        runtime = self._runtime
        try:
            self._begin()
            deliveries = self.deliveries
            if not deliveries.deserializes and not deliveries.renewing:
                await self._give_way()
                record = runtime.buffer.take_one()
                if record is not None:
                    if record.lease.working:
                        record.lease.working.discard(record.position)
                    deliveries.parts.append(Part(record.lease, record.position, record.position + 1))
                    if not runtime.buffer.records:
                        runtime.advance()
                    return record
            while True:
                batch = await self.poll(1)
                if batch:
                    return batch[0]
        except ConsumerClosed:
            raise StopAsyncIteration from None

    def _begin(self) -> None:
        """Check the state at the start of each call for records."""
        self._raise_pending()
        if not self._subscription:
            raise RuntimeError("subscribe to topics before asking for records")
        if self._explicit:
            self.deliveries.check_decided()
        else:
            self.deliveries.accept()
        self.deliveries.latest = None

    async def _take(self, max_records: int | None, timeout: float | None) -> Batch:
        runtime, buffer = self._runtime, self._runtime.buffer
        runtime.membership.polled()
        wanted = self.settings.max_poll_records if max_records is None else max_records
        exactly = self._exactly or max_records is not None
        deadline = None if timeout is None else self._loop.time() + timeout
        until_ms = inf if timeout is None else runtime.now_ms() + max(timeout * 1000, ASKS_MS_MIN)
        await self._give_way()
        while True:
            if self.deliveries.renewing:
                batch = await self._take_renewed(wanted if exactly else None, deadline)
                if batch or self.deliveries.renewing:
                    runtime.commit()
                    return self.deliveries.add(batch)
            batch = self.deliveries.deserialized(buffer.take(wanted, exactly=exactly))
            if batch:
                runtime.commit()
                return self.deliveries.add(batch)
            self._raise_pending()
            with buffer.waiting(wanted, until_ms) as woken:
                runtime.commit()
                if not await done_by(woken, deadline):
                    return Batch([], ())
            self._raise_pending()

    async def _give_way(self) -> None:
        now_ms = self._runtime.now_ms()
        self._runtime.polled_ms = now_ms
        if now_ms - self._yielded_ms >= _YIELD_MS:
            await asyncio.sleep(0)
            self._yielded_ms = self._runtime.now_ms()

    async def _take_renewed(self, wanted: int | None, deadline: float | None) -> Batch:
        """Return renewed records once their leaders have responded; an empty batch at the deadline."""
        batch = self.deliveries.renewed(wanted)
        if not batch and self.deliveries.renewing:
            await self._runtime.flush_until(deadline)
            self._raise_pending()
            batch = self.deliveries.renewed(wanted)
        return batch

    def put_back(self, records: Iterable[Record]) -> None:
        """Return records to the buffer, as part of the same delivery; acknowledged ones are left out.

        Raises:
            KafkaError: INVALID_RECORD_STATE: a record was not delivered by this consumer.
            RuntimeError: in implicit mode.
        """
        self._need_explicit("put_back")
        self.deliveries.put_back(records)

    # acknowledgement

    def acknowledge(
        self, records: Record | Iterable[Record], kind: AcknowledgeType = AcknowledgeType.ACCEPT
    ) -> None:
        """Acknowledge a record, several, or the rest of a batch; sent with the next poll or commit.

        Until it is sent, a record may be acknowledged again with another type. A record renewed here is
        returned by the next poll, to be acknowledged then; `renew` leaves it with the application.

        Raises:
            KafkaError: INVALID_RECORD_STATE: a record was already acknowledged and sent, or was not delivered
                by this consumer; nothing in the call is acknowledged then. For a batch: no record is left.
                UNSUPPORTED_VERSION: the broker cannot renew locks.
            RuntimeError: in implicit mode.
        """
        if not self._explicit or self._closed or self._runtime.results.calling_in:
            self._need_explicit("acknowledge")
        if type(records) is Record and kind in _AT_ONCE:
            lease, position = records.lease, records.position
            # the common case: one more record of a lease that has acknowledgements to send
            if (
                lease is not None
                and lease.queued
                and lease.states[position] == HELD
                and lease.owner.host is self._runtime
            ):
                lease.states[position] = kind
                return
        self.deliveries.mark(self.deliveries.check(records, kind))

    def accept(self, records: Record | Iterable[Record]) -> None:
        """Acknowledge records as processed."""
        self.acknowledge(records, AcknowledgeType.ACCEPT)

    def release(self, records: Record | Iterable[Record]) -> None:
        """Release records for redelivery, unless they reached the delivery limit."""
        self.acknowledge(records, AcknowledgeType.RELEASE)

    def reject(self, records: Record | Iterable[Record]) -> None:
        """Reject records that cannot be processed; they are not redelivered."""
        self.acknowledge(records, AcknowledgeType.REJECT)

    async def renew(self, records: Record | Iterable[Record]) -> None:
        """Restart the records' acquisition locks; sent at once, with all other pending acknowledgements.

        The records stay with the application and do not block polls.

        Raises:
            LeaseLost: a record's lock was already lost.
            KafkaError: INVALID_RECORD_STATE, as `acknowledge`; UNSUPPORTED_VERSION: the broker does not
                support renewal (Kafka before 4.2).
            RuntimeError: in implicit mode.
        """
        self._need_explicit("renew")
        parts = self.deliveries.held(records)
        for lease in {part.lease for part in parts}:
            lease.owner.need_renewal()
        work_on(parts)
        self._runtime.acknowledge_parts(parts, AcknowledgeType.RENEW)
        await asyncio.gather(*(owner.flush() for owner in {part.lease.owner for part in parts}))
        for lease, low, high in parts:
            if not lease.holds(low, high):
                error = lease.lost or KafkaError(ErrorCode.INVALID_RECORD_STATE, "the lock expired")
                raise LeaseLost(error.code, error.message)

    def lease(
        self,
        records: Record | Iterable[Record],
        *,
        max_ms: int | None = None,
        on_error: AcknowledgeType = AcknowledgeType.RELEASE,
        cancel: bool = True,
    ) -> Kept:
        """Renew the record's lock while the block of `async with consumer.lease(record):` runs.

        Records that the block does not acknowledge are accepted at its end, or released if it raises.

        Args:
            records: a record, records, or a batch.
            max_ms: the longest renewal; `lease.max.ms` by default.
            on_error: the acknowledgement of the records if the block raises.
            cancel: whether the block is cancelled when a lock is lost.

        Raises:
            LeaseLost: at the start or end of the block: a record's lock was lost.
            KafkaError: INVALID_RECORD_STATE, as `acknowledge`.
            RuntimeError: in implicit mode.
            ValueError: a negative `max_ms`.
        """
        self._need_explicit("lease")
        limit = self.settings.lease_max_ms if max_ms is None else max_ms
        if limit < 0:
            raise ValueError(f"max_ms={max_ms}: pass milliseconds, 0 or more")
        parts = self.deliveries.held(records)
        work_on(parts)
        return Kept(self._runtime.keeper, parts, limit, on_error, cancel)

    async def commit_sync(self, timeout: float | None = None) -> dict[TopicPartition, KafkaError | None]:
        """Send acknowledgements, in implicit mode of all records returned so far, and wait for the responses.

        Args:
            timeout: seconds; `default.api.timeout.ms` by default.

        Returns:
            For each share partition with a response since the last commit, the first error or None. Includes
            errors of acknowledgements sent with a poll.

        Raises:
            WakeupError: `wakeup` was called; the acknowledgements are sent nevertheless.
            ConsumerClosed: the consumer is closed.
            ValueError: a negative timeout.
        """
        check_timeout(timeout)
        check_loop(self._loop)
        self._raise_pending()
        self._commit_delivered()
        seconds = self.settings.default_api_timeout_ms / 1000 if timeout is None else timeout
        runtime = self._runtime
        flushed = await runtime.flush_until(self._loop.time() + seconds)
        self._raise_pending()
        results = runtime.results.take()
        if not flushed:
            late = KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"no response within {seconds} s")
            for lease in runtime.unsettled():
                results[TopicPartition(lease.topic, lease.partition)] = late
        return results

    def commit_async(self) -> None:
        """Send acknowledgements, in implicit mode of all records returned so far, without waiting.

        Results go to the callback, and to the next `commit_sync`.
        """
        self._raise_if_closed()
        self._commit_delivered()
        self._runtime.commit()

    def _commit_delivered(self) -> None:
        if not self._explicit:
            self.deliveries.accept()
        self.deliveries.latest = None

    def set_acknowledgement_commit_callback(self, callback: Callback | None) -> None:
        """Call `callback` in the event loop with the result of each share partition's acknowledgements, but
        never from within `acknowledge` and similar calls.

        The callback may call only `wakeup` and `metrics` of this consumer; other calls raise RuntimeError. An
        exception of the callback is raised by the application's next poll or commit.
        """
        self._raise_if_closed()
        self._runtime.results.callback = callback

    def _need_explicit(self, what: str) -> None:
        if not self._explicit:
            raise RuntimeError(f"{what} needs share.acknowledgement.mode=explicit")
        self._raise_if_closed()

    # state and the end

    def metrics(self) -> dict[MetricName, float]:
        """Return the metrics of KIP-932, by name and group."""
        return self._runtime.metrics.read()

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Return the ID that the cluster assigned to this client for its metrics (KIP-714).

        Args:
            timeout: seconds; `default.api.timeout.ms` by default.

        Raises:
            RuntimeError: `enable.metrics.push` is false.
            ConsumerClosed: the consumer is closed.
            KafkaError: UNSUPPORTED_VERSION: the cluster does not collect client metrics; REQUEST_TIMED_OUT.
            ValueError: a negative timeout.
        """
        check_timeout(timeout)
        self._raise_if_closed()
        seconds = self.settings.default_api_timeout_ms / 1000 if timeout is None else timeout
        return await self._runtime.client_instance_id(seconds)

    def wakeup(self) -> None:
        """Make the waiting poll or commit, or else the next one, raise `WakeupError`; thread-safe."""
        self._woken = True
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._runtime.interrupt)

    async def close(self, timeout: float = 30.0) -> dict[TopicPartition, KafkaError | None]:
        """Send pending acknowledgements, release other records, and leave the group.

        Args:
            timeout: seconds; longer operations are abandoned, and the brokers' session timeouts take effect.

        Returns:
            As `commit_sync` does.

        Raises:
            ValueError: a negative timeout; the consumer stays open.
        """
        check_timeout(timeout)
        self._raise_in_callback()
        if not self._closed:
            check_loop(self._loop)
            self._closed = True
            await self._runtime.close(timeout)
        return self._runtime.results.take()

    def _raise_if_closed(self) -> None:
        self._raise_in_callback()
        if self._closed:
            raise ConsumerClosed("the consumer is closed")

    def _raise_in_callback(self) -> None:
        if self._runtime.results.calling_in == get_ident():
            raise RuntimeError("an acknowledgement callback may call only wakeup and metrics")

    def _raise_pending(self) -> None:
        """Raise the next pending error: permanent ones each time, others once."""
        runtime = self._runtime
        self._raise_in_callback()
        if self._closed:
            raise ConsumerClosed("the consumer is closed")
        if self._woken:
            self._woken = False
            raise WakeupError
        runtime.results.notify()
        if runtime.results.raised:
            raise runtime.results.raised.pop(0)
        if runtime.errors:
            raise runtime.errors.popleft()
        if runtime.final is not None:
            raise runtime.final
