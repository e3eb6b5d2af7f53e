"""Compute the lag of a share group for KEDA triggers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sharecore.admin import TopicPartition
from sharecore.admin.model import PartitionOffset
from sharecore.admin.waiting import Waiting
from sharecore.errors import ErrorCode, KafkaError

LAG_THRESHOLD = 10.0
"""Default number of records per worker, as in KEDA's Kafka scaler."""
_TRIGGERS_MAX = 1_000
_TIMED = frozenset({"backoff", "delivery"})
"""Reasons that more workers do not change, and that end by themselves."""


class TriggerError(ValueError):
    """Invalid trigger metadata; the message names the key and the allowed values."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Metadata of a ScaledObject's trigger.

    Args:
        group: the share group.
        topics: topics to count; empty for all topics of the group.
        lag_threshold: target number of records per worker.
        activation_lag_threshold: the group is active above this lag.
    """

    group: str
    topics: frozenset[str] = frozenset()
    lag_threshold: float = LAG_THRESHOLD
    activation_lag_threshold: float = 0.0

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return f"sharecore-lag-{self.group}"

    @classmethod
    def read(cls, metadata: Mapping[str, str]) -> Trigger:
        """Read the metadata of a trigger; raises TriggerError."""
        names = {"group", "topics", "lagThreshold", "activationLagThreshold"}
        # keys that KEDA itself acts on but still passes to the scaler
        known = names | {"scalerAddress", "tlsCertFile", "caCert", "tlsClientCert", "tlsClientKey"}
        known |= {"unsafeSsl", "enableTLS"}
        if unknown := sorted(metadata.keys() - known):
            raise TriggerError(f"metadata.{unknown[0]}: unknown; allowed: {', '.join(sorted(names))}")
        group = metadata.get("group", "")
        if not group:
            raise TriggerError("metadata.group is missing: the name of the share group")
        topics = frozenset(name.strip() for name in metadata.get("topics", "").split(",") if name.strip())
        return cls(
            group,
            topics,
            _number(metadata, "lagThreshold", LAG_THRESHOLD, 0.001),
            _number(metadata, "activationLagThreshold", 0.0, 0.0),
        )


def _number(metadata: Mapping[str, str], name: str, default: float, least: float) -> float:
    text = metadata.get(name, "")
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= 1e15:
        raise TriggerError(f"metadata.{name}: invalid number of records {text!r}; allowed: {least:g} or more")
    return number


class Offsets(Protocol):
    """Source of share-group offsets, such as `sharecore.admin.Admin`."""

    async def offsets(self, group_id: str) -> list[PartitionOffset]:
        """Return the start offsets and lag of the group's partitions."""

    async def waiting_of(self, group_id: str, partitions: Iterable[TopicPartition]) -> Waiting:
        """Return how many records of these partitions wait for their time."""


class _Look(NamedTuple):
    """A group at a time."""

    offsets: list[PartitionOffset]
    waiting: Waiting

    def ready(self, partition: PartitionOffset) -> int | None:
        """Return the lag without the records whose time has not come; None if the lag is unknown."""
        if partition.lag is None:
            return None
        reasons = self.waiting.partitions.get(partition.partition, ())
        waiting = [each.get("records", 0) for each in reasons if each["reason"] in _TIMED]
        return max(0, partition.lag - sum(count for count in waiting if isinstance(count, int)))


class Scaler:
    """Lag by trigger. Triggers of one group share a request for `fresh_s`.

    Args:
        cluster: source of the offsets.
        fresh_s: how long to reuse the offsets of a group, in seconds.
        now_s: clock, in seconds.
    """

    def __init__(
        self, cluster: Offsets, *, fresh_s: float = 1.0, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster = cluster
        self._fresh_s = fresh_s
        self._now_s = now_s
        self._looks: dict[str, tuple[float, asyncio.Task[_Look]]] = {}

    async def records(self, trigger: Trigger) -> float:
        """Return the number of unsettled records, including acquired ones.

        Records in back-off or before their delivery time do not count, as far as the brokers report them. A
        paused group has no records.

        If the group does not exist or a position is unknown, return at least `lag_threshold`: only a worker
        can create the position, and with a lag of zero none would start.

        Raises:
            KafkaError: the cluster is unreachable, or a right is missing.
        """
        try:
            found = await self._look(trigger.group)
        except KafkaError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return trigger.lag_threshold
        counted = [
            each for each in found.offsets if not trigger.topics or each.partition.topic in trigger.topics
        ]
        if refused := next((each.error for each in counted if each.error is not None), None):
            raise refused
        if found.waiting.paused:
            return 0.0
        lags = [found.ready(each) for each in counted]
        known = float(sum(lag for lag in lags if lag is not None))
        missing = trigger.topics - {each.partition.topic for each in counted}
        if None in lags or missing or not counted:
            return max(known, trigger.lag_threshold, trigger.activation_lag_threshold + 1)
        return known

    async def is_active(self, trigger: Trigger) -> bool:
        """Return whether the group needs a worker at all; raises as `records` does."""
        return await self.records(trigger) > trigger.activation_lag_threshold

    async def _look(self, group: str) -> _Look:
        now_s = self._now_s()
        known = self._looks.get(group)
        if known is None or now_s - known[0] > self._fresh_s:
            if len(self._looks) >= _TRIGGERS_MAX:
                self._looks.clear()
            known = self._looks[group] = (now_s, asyncio.ensure_future(self._ask(group)))
        # a cancelled call must not cancel the request for the others
        return await asyncio.shield(known[1])

    async def _ask(self, group: str) -> _Look:
        offsets = await self._cluster.offsets(group)
        behind = [each.partition for each in offsets if each.lag]
        # also without lag: the answer says whether the group is paused
        return _Look(offsets, await self._cluster.waiting_of(group, behind))
