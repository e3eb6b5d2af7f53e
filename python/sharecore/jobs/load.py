"""Input and outcome of a simulation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from sharecore.errors import ConfigError
from sharecore.jobs.handling import handling_time

RECORDS_MAX = 20_000_000
"""Records that may arrive in one simulated share partition: each takes eight bytes and some microseconds."""
SAMPLES = 120


@dataclass(frozen=True, slots=True)
class Load:
    """One share partition with its arrivals and members.

    Args:
        records_per_s: what producers write.
        arrivals: `poisson`, or `constant` for the same time between any two record batches.
        record_batch: records in a record batch.
        members: each asks for up to `max_poll_records`, works on one after the other and acknowledges all.
        handling: how long a record takes; see `handling.py`.
        failure_rate: the share of deliveries that end with a release.
        lock_ms: `share.record.lock.duration.ms`.
        max_record_locks: `share.partition.max.record.locks`.
        delivery_limit: `share.delivery.count.limit`.
        record_limit: share.acquire.mode=record_limit; otherwise members are given whole record batches.
        renew: members renew their locks at half of their time.
        write_ms: how long an acknowledgement takes to be durable.
        duration_s: how long records arrive; the simulation then goes on, as long again at most, until all are
            settled.
        seed: the same seed gives the same arrivals and handling times, whatever else differs.
    """

    records_per_s: float = 1_000.0
    arrivals: str = "poisson"
    record_batch: int = 1
    members: int = 4
    handling: str = "exponential:2"
    failure_rate: float = 0.0
    lock_ms: int = 30_000
    max_record_locks: int = 2_000
    delivery_limit: int = 5
    max_poll_records: int = 500
    record_limit: bool = False
    renew: bool = False
    write_ms: float = 0.0
    duration_s: float = 60.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Raise ConfigError for an invalid value."""
        handling_time(self.handling)
        for name in (
            "record_batch",
            "members",
            "lock_ms",
            "max_record_locks",
            "delivery_limit",
            "max_poll_records",
        ):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)}: must be at least 1")
        if self.arrivals not in ("poisson", "constant"):
            raise ConfigError(f"arrivals={self.arrivals!r}: must be poisson or constant")
        if not self.records_per_s > 0 or not self.duration_s > 0 or self.write_ms < 0:
            raise ConfigError("records_per_s and duration_s must be above 0, write_ms not below")
        if not 0 <= self.failure_rate <= 1:
            raise ConfigError(f"failure_rate={self.failure_rate}: must be a number from 0 to 1")
        if self.records_per_s * self.duration_s > RECORDS_MAX:
            raise ConfigError(
                f"{self.records_per_s:g} records/s for {self.duration_s:g} s are more than {RECORDS_MAX:,} "
                "records: simulate a shorter time"
            )


@dataclass(slots=True)
class Sample:
    """One moment: records arrived and accepted so far, leased now, and not settled now."""

    at_s: float
    arrived: int
    accepted: int
    leased: int
    backlog: int


@dataclass(slots=True)
class Outcome:
    """What came of a load. Latencies are milliseconds from a record's arrival to its durable acceptance.

    Args:
        throughput: records accepted a second while records arrived.
        deliveries, redeliveries: records given to members, and those that had been given before.
        lock_timeouts: records whose lock ran out.
        archived: records that reached the delivery limit, or were rejected.
        refused: records in acknowledgements that came too late.
        unfinished: records not settled at the end.
        inflight_max: the most offsets between start and end offset, which max_record_locks bounds.
        leased_mean, backlog_mean: over the time in which records arrived.
        utilisation: the part of their time that members worked.
    """

    arrived: int = 0
    accepted: int = 0
    archived: int = 0
    unfinished: int = 0
    deliveries: int = 0
    redeliveries: int = 0
    lock_timeouts: int = 0
    refused: int = 0
    throughput: float = 0.0
    redelivery_rate: float = 0.0
    latency_mean_ms: float = 0.0
    latency_p50_ms: float = 0.0
    latency_p90_ms: float = 0.0
    latency_p99_ms: float = 0.0
    latency_max_ms: float = 0.0
    inflight_max: int = 0
    leased_mean: float = 0.0
    backlog_mean: float = 0.0
    utilisation: float = 0.0
    simulated_s: float = 0.0
    operations: int = 0
    samples: list[Sample] = field(default_factory=list)

    def reckon(self, latencies_ms: Iterable[float]) -> None:
        """Compute the figures that are known only at the end."""
        self.redelivery_rate = self.redeliveries / self.deliveries if self.deliveries else 0.0
        ordered = sorted(latencies_ms)
        if not ordered:
            return
        self.latency_mean_ms = sum(ordered) / len(ordered)
        self.latency_p50_ms, self.latency_p90_ms, self.latency_p99_ms = (
            ordered[min(len(ordered) - 1, int(part * len(ordered)))] for part in (0.5, 0.9, 0.99)
        )
        self.latency_max_ms = ordered[-1]


NUMBERS = tuple(each.name for each in fields(Outcome) if each.name != "samples")
