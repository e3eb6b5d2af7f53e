"""The consumer's metrics, under KIP-932's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

POLL = "consumer-share-metrics"
COORDINATOR = "consumer-share-coordinator-metrics"
FETCH = "consumer-share-fetch-manager-metrics"
CONNECTIONS = "consumer-metrics"
NODE = "consumer-node-metrics"
WINDOW_SECONDS = 30.0
"""Averages, maxima and rates cover one to two windows, like Kafka's two samples of 30 s."""


@dataclass(frozen=True, slots=True)
class MetricName:
    """A metric's name, its group in Kafka, and its tags.

    Args:
        tags: client ID and, for a broker's metrics, the broker; part of the metric's identity.
        description: what it measures, in a sentence; ignored in comparisons.
    """

    name: str
    group: str
    tags: tuple[tuple[str, str], ...] = ()
    description: str = field(default="", compare=False)


_DESCRIPTIONS = {
    "last-poll-seconds-ago": "Seconds since the application last called poll, -1 before the first time",
    "time-between-poll-avg": "Average time between calls of poll, in ms",
    "time-between-poll-max": "Longest time between calls of poll, in ms",
    "poll-idle-ratio-avg": "Average fraction of time in poll, the rest being the application's own work",
    "last-heartbeat-seconds-ago": "Seconds since the last heartbeat was sent, -1 before the first",
    "heartbeat-response-time-max": "Longest response time of a heartbeat, in ms",
    "heartbeat-rate": "Heartbeats a second",
    "heartbeat-total": "Heartbeats sent",
    "rebalance-total": "Changes of the assignment",
    "rebalance-rate-per-hour": "Changes of the assignment an hour",
    "fetch-size-avg": "Average size of a fetch's records, in bytes",
    "fetch-size-max": "Largest size of a fetch's records, in bytes",
    "records-per-request-avg": "Average number of records a fetch",
    "records-per-request-max": "Largest number of records a fetch",
    "fetch-latency-avg": "Average time of a fetch, in ms",
    "fetch-latency-max": "Longest time of a fetch, in ms",
    "fetch-throttle-time-avg": "Average throttle time of a fetch, in ms",
    "fetch-throttle-time-max": "Longest throttle time of a fetch, in ms",
    "fetch-rate": "Fetches a second",
    "fetch-total": "Fetches answered",
    "bytes-fetched-rate": "Bytes of records a second",
    "bytes-fetched-total": "Bytes of records fetched",
    "records-fetched-rate": "Records a second",
    "records-fetched-total": "Records fetched",
    "acknowledgements-send-rate": "Acknowledged records a second",
    "acknowledgements-send-total": "Acknowledged records with a response",
    "acknowledgements-error-rate": "Acknowledged records a second with an error response",
    "acknowledgements-error-total": "Acknowledged records with an error response",
    "connection-creation-rate": "Connections made a second",
    "connection-creation-total": "Connections made",
    "request-latency-avg": "Average response time of a broker, in ms",
    "request-latency-max": "Longest response time of a broker, in ms",
}


class _Sample:
    __slots__ = ("began", "count", "highest", "total")

    def __init__(self, began: float) -> None:
        self.began = began
        self.count = 0
        self.total = 0.0
        self.highest = float("-inf")


class Sensor:
    """Aggregates numbers in two samples and a total."""

    __slots__ = ("_now", "_old", "count", "total")

    def __init__(self, now: float) -> None:
        self._old: _Sample | None = None
        self._now = _Sample(now)
        self.total = 0.0
        self.count = 0

    def record(self, value: float, now: float) -> None:
        """Add a value at a time in seconds."""
        self._roll(now)
        sample = self._now
        sample.count += 1
        sample.total += value
        if value > sample.highest:
            sample.highest = value
        self.total += value
        self.count += 1

    def _roll(self, now: float) -> None:
        age = now - self._now.began
        if age >= WINDOW_SECONDS:
            self._old = self._now if age < 2 * WINDOW_SECONDS else None
            self._now = _Sample(now)

    def _samples(self, now: float) -> list[_Sample]:
        self._roll(now)
        return [sample for sample in (self._old, self._now) if sample is not None]

    def average(self, now: float) -> float:
        """Return the average of the window; NaN without values."""
        samples = self._samples(now)
        count = sum(sample.count for sample in samples)
        return sum(sample.total for sample in samples) / count if count else float("nan")

    def highest(self, now: float) -> float:
        """Return the highest value of the window; NaN without values."""
        highest = max(sample.highest for sample in self._samples(now))
        return highest if highest != float("-inf") else float("nan")

    def rate(self, now: float, *, of_count: bool = False) -> float:
        """Return the rate per second: of the values, or of their number."""
        samples = self._samples(now)
        seconds = max(now - samples[0].began, WINDOW_SECONDS)
        return sum(sample.count if of_count else sample.total for sample in samples) / seconds


class Metrics:
    """Metrics reported by the parts of a consumer, and read by the application.

    Args:
        clock: seconds that never go backwards.
        client_id: of the consumer, a tag of each metric.
    """

    def __init__(self, clock: Callable[[], float], client_id: str) -> None:
        self.clock = clock
        self._client = ("client-id", client_id)
        now = clock()
        self._started = now
        self._sensors = {
            name: Sensor(now)
            for name in (
                "between-polls",
                "idle-ratio",
                "heartbeat",
                "rebalance",
                "fetch",
                "bytes",
                "records",
                "acknowledgements",
                "acknowledgement-errors",
                "throttle",
                "connections",
            )
        }
        self._nodes: dict[str, Sensor] = {}
        self._heartbeats = 0
        self._last_heartbeat: float | None = None
        self._poll_began: float | None = None
        self._poll_ended: float | None = None

    def _record(self, sensor: str, value: float) -> None:
        self._sensors[sensor].record(value, self.clock())

    def poll_began(self) -> float:
        """Record the start of a poll; return the seconds since the previous one, 0 for the first."""
        now = self.clock()
        before = self._poll_began
        self._poll_began = now
        if before is None:
            return 0.0
        self._sensors["between-polls"].record((now - before) * 1000, now)
        if self._poll_ended is not None and now > before:
            self._sensors["idle-ratio"].record((self._poll_ended - before) / (now - before), now)
        return now - before

    def poll_ended(self) -> None:
        """Note that the application has its records, and handles them."""
        self._poll_ended = self.clock()

    def heartbeat_sent(self, now: float) -> None:
        """Count a heartbeat."""
        self._last_heartbeat = now
        self._heartbeats += 1

    def heartbeat_answered(self, seconds: float) -> None:
        """Record how many seconds a heartbeat took."""
        self._record("heartbeat", seconds * 1000)

    def rebalanced(self) -> None:
        """Count a change of the assignment."""
        self._record("rebalance", 1)

    def fetched(self, seconds: float, size: int, records: int, throttle_ms: int) -> None:
        """Record a fetch response: its duration, and the bytes and records in it."""
        now = self.clock()
        sensors = self._sensors
        sensors["fetch"].record(seconds * 1000, now)
        sensors["bytes"].record(size, now)
        sensors["records"].record(records, now)
        sensors["throttle"].record(throttle_ms, now)

    def acknowledged(self, records: int, failed: bool) -> None:
        """Count acknowledgements of `records` records with a response."""
        self._record("acknowledgements", records)
        if failed:
            self._record("acknowledgement-errors", records)

    def connected(self) -> None:
        """Count a new connection."""
        self._record("connections", 1)

    def answered(self, node: str, seconds: float) -> None:
        """Record how many seconds a request to a node took."""
        now = self.clock()
        sensor = self._nodes.get(node)
        if sensor is None:
            sensor = self._nodes[node] = Sensor(now)
        sensor.record(seconds * 1000, now)

    def _name(self, name: str, group: str, *tags: tuple[str, str]) -> MetricName:
        return MetricName(name, group, (self._client, *tags), _DESCRIPTIONS[name])

    def read(self) -> dict[MetricName, float]:
        """Return all current metrics; NaN if nothing was measured lately.

        Times are in milliseconds unless the name says otherwise.
        """
        now = self.clock()
        sensor = self._sensors
        since = {
            self._name("last-poll-seconds-ago", POLL): self._poll_began,
            self._name("last-heartbeat-seconds-ago", COORDINATOR): self._last_heartbeat,
        }
        found = {name: -1.0 if at is None else now - at for name, at in since.items()}
        for group, name, of in (
            (POLL, "time-between-poll", "between-polls"),
            (FETCH, "fetch-size", "bytes"),
            (FETCH, "records-per-request", "records"),
            (FETCH, "fetch-latency", "fetch"),
            (FETCH, "fetch-throttle-time", "throttle"),
        ):
            found[self._name(f"{name}-avg", group)] = sensor[of].average(now)
            found[self._name(f"{name}-max", group)] = sensor[of].highest(now)
        for node, latency in self._nodes.items():
            tag = ("node-id", f"node-{node}")
            found[self._name("request-latency-avg", NODE, tag)] = latency.average(now)
            found[self._name("request-latency-max", NODE, tag)] = latency.highest(now)
        found[self._name("connection-creation-rate", CONNECTIONS)] = sensor["connections"].rate(now)
        found[self._name("connection-creation-total", CONNECTIONS)] = sensor["connections"].total
        found[self._name("poll-idle-ratio-avg", POLL)] = sensor["idle-ratio"].average(now)
        for name, of in (
            ("bytes-fetched", "bytes"),
            ("records-fetched", "records"),
            ("acknowledgements-send", "acknowledgements"),
            ("acknowledgements-error", "acknowledgement-errors"),
        ):
            found[self._name(f"{name}-rate", FETCH)] = sensor[of].rate(now)
            found[self._name(f"{name}-total", FETCH)] = sensor[of].total
        found[self._name("fetch-rate", FETCH)] = sensor["fetch"].rate(now, of_count=True)
        found[self._name("fetch-total", FETCH)] = sensor["fetch"].count
        found[self._name("heartbeat-response-time-max", COORDINATOR)] = sensor["heartbeat"].highest(now)
        found[self._name("heartbeat-rate", COORDINATOR)] = sensor["heartbeat"].rate(now, of_count=True)
        found[self._name("heartbeat-total", COORDINATOR)] = self._heartbeats
        found[self._name("rebalance-total", COORDINATOR)] = sensor["rebalance"].total
        found[self._name("rebalance-rate-per-hour", COORDINATOR)] = sensor["rebalance"].rate(now) * 3600
        return found
