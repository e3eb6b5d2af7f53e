"""The streaming source `sharegroup`, as Spark's Python Data Source API wants it.

Spark runs one instance in a process of the driver and asks it for batches; copies of it read on executors.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.spark.fetch import LeasedRanges, read_ranges
from sharecore.spark.member import Member
from sharecore.spark.offset import Offset, Outcome
from sharecore.spark.options import Options, read_options
from sharecore.spark.outcomes import Outcomes, committed
from sharecore.spark.ranges import split
from sharecore.spark.rows import COLUMNS, HEADERS, column_names

logger = logging.getLogger(__name__)
T = TypeVar("T")

_RECORD_BYTES = 1_000.0
_REPORT_SECONDS = 1.0
_STOP_SECONDS = 5.0
_ALL = 2**31 - 1


class ShareGroupSource(DataSource):
    """`spark.readStream.format("sharegroup")`: the records of a share group; see docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        return "sharegroup"

    def schema(self) -> str:
        return COLUMNS + (HEADERS if read_options(self.options).include_headers else "")

    def streamReader(self, schema: StructType) -> ShareGroupReader:
        names = column_names(headers=read_options(self.options).include_headers)
        if schema.names != names:
            raise ConfigError(
                f"format sharegroup has the columns {', '.join(names)}: leave schema() out, select from them"
            )
        return ShareGroupReader(dict(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        raise ConfigError(
            "format sharegroup is a stream, whose checkpoint keeps what is acknowledged: use "
            "spark.readStream, with trigger(availableNow=True) to end where the topics end"
        )


class _Background:
    """An event loop in a thread, for callers without one."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="sharegroup", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[object, object, T], timeout: float | None = None) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout)
        except BaseException:
            future.cancel()
            raise


class ShareGroupReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Leases on the driver, reads on executors.

    Spark calls `latestOffset(start)` after the batch that ends at `start` is in the checkpoint, so that is
    where a batch is acknowledged: `commit` comes one batch later, and for the last one not at all.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._begin(given)

    def _begin(self, given: Mapping[str, str]) -> None:
        self._given = dict(given)
        self._options: Options = read_options(self._given)
        self._background: _Background | None = None
        self._member: Member | None = None
        self._reported: tuple[float, dict[str, object] | None] = (0.0, None)
        self._settled: list[str] = []
        self._stopped = False

    def __getstate__(self) -> dict[str, str]:
        return self._given

    def __setstate__(self, given: dict[str, str]) -> None:
        self._begin(given)

    # on the driver

    def initialOffset(self) -> dict[str, object]:
        return Offset(0, self._options.client.group_id).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.records_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._run(self._prepare())

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:
        before = Offset.from_json(start)
        wanted = self._options.records_max
        if isinstance(limit, ReadMaxRows):
            wanted = limit.max_rows
        elif isinstance(limit, ReadAllAvailable):
            wanted = _ALL
        batch = self._run(self._next(before, wanted))
        return start if batch is None else batch.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        if time.monotonic() - self._reported[0] > _REPORT_SECONDS:
            try:
                ends = self._run(self._with_member().ends())
            except (KafkaError, RuntimeError) as error:
                logger.info("the topics' ends are not known now: %s", error)
                return None
            self._reported = (time.monotonic(), {"end": ends})
        return self._reported[1]

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> list[InputPartition]:
        batch = Offset.from_json(end)
        if batch.sequence == start["sequence"]:
            return []
        member = self._with_member()
        if member.batch is None or member.batch.sequence != batch.sequence:
            self._run(self._replay(batch))
        total = sum(ranges.offsets for ranges in batch.leased.values())
        tasks = min(self._options.partitions_min, total)
        return [
            LeasedRanges(*key, tuple(some), member.record_bytes.get(key, _RECORD_BYTES))
            for key, ranges in sorted(batch.leased.items())
            for some in split(ranges, -(-ranges.offsets * tasks // total))
        ]

    def stop(self) -> None:
        """Acknowledge the known part of the checkpoint, and release the rest."""
        if self._stopped or self._background is None or self._member is None:
            self._stopped = True
            return
        self._stopped = True
        try:
            self._background.run(self._leave(self._member), _STOP_SECONDS + 1)
        except (KafkaError, TimeoutError, OSError) as error:
            logger.warning("the group could not be left in time; its locks run out by themselves: %s", error)

    # on executors

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LeasedRanges)
        options = self._options
        try:
            yield from read_ranges(
                partition,
                options.connection,
                headers=options.include_headers,
                fail_on_data_loss=options.fail_on_data_loss,
            )
        except KafkaError as error:
            raise RuntimeError(f"share group source, {partition.name}: {explain(error, options)}") from error

    # in the event loop

    async def _prepare(self) -> None:
        member = self._with_member()
        await member.start()
        await member.aim()

    async def _next(self, start: Offset, wanted: int) -> Offset | None:
        member = self._with_member()
        await member.start()
        outcomes, names = self._read_outcomes()
        if await member.finish(start, outcomes):
            # the previous batch's outcomes are among the pending acknowledgements, which the checkpoint
            # contains by now
            if self._options.checkpoint is not None and self._settled:
                Outcomes(self._options.checkpoint).remove(self._settled)
            self._settled = names
        return await member.lease(start, wanted)

    async def _replay(self, batch: Offset) -> None:
        member = self._with_member()
        await member.start()
        member.adopt(batch)

    async def _leave(self, member: Member) -> None:
        batch = member.batch
        if batch is not None and self._options.checkpoint is not None:
            held = [each for each in committed(self._options.checkpoint) if each.get("group") == batch.group]
            if any(each.get("sequence") == batch.sequence for each in held):
                await member.finish(batch, self._read_outcomes()[0])
        await member.close(_STOP_SECONDS)

    def _read_outcomes(self) -> tuple[list[Outcome], list[str]]:
        if self._options.checkpoint is None:
            return [], []
        return Outcomes(self._options.checkpoint).read()

    def _run(self, work: Coroutine[object, object, T]) -> T:
        try:
            self._with_member()
        except BaseException:
            work.close()
            raise
        assert self._background is not None
        try:
            return self._background.run(work)
        except KafkaError as error:
            raise RuntimeError(f"share group source: {explain(error, self._options)}") from error

    def _with_member(self) -> Member:
        if self._member is None:
            self._background = _Background()
            self._member = self._background.run(self._make())
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, self._on_sigterm)
        return self._member

    async def _make(self) -> Member:
        return Member(self._options)

    def _on_sigterm(self, _signal: int, _frame: object) -> None:
        # Spark sends it when a query ends, and often a second one at once
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            self.stop()
        finally:
            os._exit(0)


def explain(error: KafkaError, options: Options) -> str:
    """Return the error with advice."""
    servers = ", ".join(f"{host}:{port}" for host, port in options.client.bootstrap_servers)
    group, topics = options.client.group_id, ", ".join(options.topics)
    hints = {
        ErrorCode.NETWORK_EXCEPTION: f"no broker answers at kafka.bootstrap.servers={servers}",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: f"the user may not read group {group}: grant READ on the group",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: f"the user may not read {topics}: grant READ on each topic",
        ErrorCode.SASL_AUTHENTICATION_FAILED: (
            f"{servers} and this client do not accept each other: see to kafka.security.protocol, "
            "kafka.sasl.* and kafka.ssl.*"
        ),
        ErrorCode.UNSUPPORTED_VERSION: "share groups need Kafka 4.2 or later, with share.version 1",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create the topic first, or correct the option subscribe",
    }
    hint = hints.get(error.code)
    return f"{hint} ({error})" if hint else str(error)
