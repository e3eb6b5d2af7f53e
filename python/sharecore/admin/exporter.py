"""Share groups of any cluster as Prometheus metrics, for `sharecore export-metrics`."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Iterable, Mapping
from itertools import islice

from sharecore._core import decode_records
from sharecore.admin.exported_waiting import WaitingRounds
from sharecore.admin.overview import GroupOverview, Positioned, look_at_groups
from sharecore.admin.state_tail import StateTail
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.metrics import exporter_families as f
from sharecore.metrics.exposition import CONTENT_TYPE, Exposition, Lines, labels_of
from sharecore.metrics.listener import Page

log = logging.getLogger("sharecore.exporter")

_FETCH_BYTES = 64 << 10
_FETCHES_AT_ONCE = 8

Start = tuple[str, int, int]
"""Topic, partition and start offset: where groups stand, several of them perhaps at the same place."""


def collect_seldom() -> None:
    """Make Python's garbage collector run less often: a round's objects are freed without it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


class Exporter:
    """Query a cluster in rounds; serve the results of the last one.

    Args:
        transport: an administrator's connections.
        series_max: share partitions with series of their own.
        oldest_max: share partitions whose oldest unsettled record is looked for in a round, the most lagging
            first; what was found is kept until the start offset moves.
        poison_deliveries: records delivered so often count as poison candidates; 0: share state is not read.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        series_max: int = 10_000,
        oldest_max: int = 100,
        poison_deliveries: int = 3,
    ) -> None:
        self._transport = transport
        self._series_max = series_max
        self._oldest_max = oldest_max
        self._poison_deliveries = poison_deliveries
        self._tail = StateTail(transport)
        self._waiting = WaitingRounds(transport)
        self._timestamps: dict[Start, int] = {}
        self._text = b""
        self._warned = set[str]()
        self.up = False
        self.trouble = "no round has ended yet"

    async def run(self, interval_s: float) -> None:
        """Query the cluster periodically, also while it cannot be reached."""
        while True:
            began = time.monotonic()
            await self.look()
            if not self.up:
                log.warning("cannot query the cluster: %s", self.trouble)
            await asyncio.sleep(max(0.1, interval_s - (time.monotonic() - began)))

    async def look(self) -> None:
        """One round."""
        began = time.monotonic()
        sheet, lines = Exposition(), Lines()
        try:
            groups = await look_at_groups(self._transport)
            poison = await self._poison()
            await self._look_for_oldest(groups)
            if gaps := await self._waiting.look(groups):
                log.warning("%s", gaps)
            if not groups:
                self._warn("no share group is there, or none that this client may DESCRIBE")
        except (KafkaError, OSError) as error:
            self.up, self.trouble = False, str(error)
        else:
            self.up, self.trouble = True, ""
            self._show(groups, lines)
            self._waiting.show({each.group_id: each.lags() for each in groups}, lines)
            if poison is not None:
                for (group_id, topic), records in sorted(poison.items()):
                    sheet.add(f.POISON, records, group_id, topic)
            sheet.add(f.STATE_READABLE, poison is not None)
            sheet.add(f.ROUND_TIME, time.monotonic() - began)
        sheet.add(f.UP, self.up)
        self._text = sheet.text() + lines.text()

    async def metrics(self) -> Page:
        """Return the results of the last round; if it failed, only that."""
        return Page(200, self._text, CONTENT_TYPE)

    async def alive(self) -> Page:
        """Report that the process runs."""
        return Page(200, b"ok\n")

    async def ready(self) -> Page:
        """Report success if the last round reached the cluster."""
        return Page(200, b"ready\n") if self.up else Page(503, f"{self.trouble}\n".encode())

    def _show(self, groups: Iterable[GroupOverview], lines: Lines) -> None:
        left, now_ms = self._series_max, time.time() * 1000
        starts, lags, group_lags = lines.of(f.PART_START), lines.of(f.PART_LAG), lines.of(f.GROUP_LAG)
        for group in groups:
            of_group = labels_of(("group",), (group.group_id,))
            lines.of(f.STATE).append(f'{of_group},state="{group.state}"}} 1')
            if group.error is not None:
                lines.of(f.REFUSED).append(f'{of_group},error="{group.error.code.name}"}} 1')
                continue
            lines.of(f.MEMBERS).append(f"{of_group}}} {len(group.members)}")
            for topic, positions in group.positions.items():
                of_topic = labels_of(("group", "topic"), (group.group_id, topic))
                if any(position.lag >= 0 for position in positions.values()):
                    group_lags.append(f"{of_topic}}} {group.known_lag(topic)}")
                oldest_ms = self._oldest_ms(topic, positions)
                if oldest_ms is not None:
                    age_s = max(0.0, (now_ms - oldest_ms) / 1000)
                    lines.of(f.OLDEST).append(f"{of_topic}}} {age_s:.3f}")
                for partition, position in islice(positions.items(), left):
                    lag = position.lag
                    starts.append(f'{of_topic},partition="{partition}"}} {position.start_offset}')
                    if lag >= 0:
                        lags.append(f'{of_topic},partition="{partition}"}} {lag}')
                left = max(0, left - len(positions))

    def _oldest_ms(self, topic: str, positions: Mapping[int, Positioned]) -> int | None:
        """Return the timestamp of the oldest record that is known not to be settled."""
        known = self._timestamps
        found = (
            known.get((topic, partition, position.start_offset))
            for partition, position in positions.items()
            if position.lag > 0
        )
        return min((time_ms for time_ms in found if time_ms is not None), default=None)

    async def _poison(self) -> dict[tuple[str, str], int] | None:
        """Return poison candidates by group and topic; None if share state is not readable."""
        if not self._poison_deliveries:
            return None
        try:
            await self._tail.look()
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return {}  # no share state was ever written
            if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise
            self._warn(f"poison candidates are not counted: {error}")
            return None
        found = self._tail.often_delivered(self._poison_deliveries)
        names = await self._transport.names_of(topic_id for _, topic_id in found)
        return {
            (group_id, names[topic_id]): records
            for (group_id, topic_id), records in found.items()
            if topic_id in names
        }

    async def _look_for_oldest(self, groups: Iterable[GroupOverview]) -> None:
        lagging: dict[Start, int] = {}
        for group in groups:
            for topic, positions in group.positions.items():
                for partition, position in positions.items():
                    if position.lag > 0:
                        lagging[topic, partition, position.start_offset] = position.lag
        self._timestamps = {start: time_ms for start, time_ms in self._timestamps.items() if start in lagging}
        wanted = sorted(lagging.keys() - self._timestamps.keys(), key=lambda start: -lagging[start])
        at_once = asyncio.Semaphore(_FETCHES_AT_ONCE)

        async def look(start: Start) -> None:
            topic, index, offset = start
            async with at_once:
                try:
                    answer = await self._transport.fetch(TopicPartition(topic, index), offset, _FETCH_BYTES)
                except KafkaError as error:
                    if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                        self._warn(f"the oldest unacknowledged record of some topics is unknown: {error}")
                    return
            offsets = [(offset, offset + 999, 1)]
            found = decode_records(answer.records or b"", offsets, topic, index, None)[0]
            if found:
                self._timestamps[start] = found[0].timestamp

        await asyncio.gather(*map(look, wanted[: self._oldest_max]))

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            log.warning("%s", text)
