"""Queue settings of share groups that Kafka does not have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sharecore.config.keys import Kind, setting
from sharecore.config.share import RECORD_LOCKS_MAX
from sharecore.errors import ConfigError
from sharecore.topic_names import LEGAL_NAME

_WEIGHT_MAX = 100
_HEADER_BYTES_MAX = 249
_TTL_MS_MIN = 1000
_TOPICS_MAX = 1000


def _read_weight(text: str) -> tuple[str, int]:
    topic, colon, weight = text.rpartition(":")
    if not colon or not LEGAL_NAME.fullmatch(topic) or not re.fullmatch("[0-9]{1,3}", weight):
        raise ValueError(f"{text!r} is not TOPIC:WEIGHT")
    if not 1 <= int(weight) <= _WEIGHT_MAX:
        raise ValueError(f"{text!r} has a weight out of bounds")
    return topic, int(weight)


def _check_weights(words: tuple[str, ...]) -> None:
    """Allow a list of TOPIC:WEIGHT, weights from 1 to 100, each topic once"""
    topics = [_read_weight(word)[0] for word in words]
    if len(topics) > _TOPICS_MAX:
        raise ValueError("too many topics")
    if len(set(topics)) < len(topics):
        raise ValueError("a topic has two weights")


def _check_header(name: str) -> None:
    """Allow the name of a header, of at most 249 bytes"""
    if len(name.encode()) > _HEADER_BYTES_MAX:
        raise ValueError("too long")


def _check_ttl(ttl_ms: int) -> None:
    """Allow -1, or 1000 and up"""
    if ttl_ms != -1 and ttl_ms < _TTL_MS_MIN:
        raise ValueError("too short")


def _check_not_empty(words: tuple[str, ...]) -> None:
    """Allow release, timeout, or both"""
    if not words:
        raise ValueError("an empty list")


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class QueueSettings:
    """Settings that decide when a share group gets records, in addition to Kafka's."""

    if TYPE_CHECKING:
        errors_deadletterqueue_topic_name: str
        share_record_lock_duration_ms: int

    share_paused: bool = setting(
        Kind.BOOLEAN,
        False,
        "Whether delivery to the group is paused. Acknowledgements, renewals, lock timeouts and heartbeats "
        "continue.",
        own=True,
    )
    share_paused_until_ms: int = setting(
        Kind.LONG,
        0,
        "Delivery to the group is paused until this time, in milliseconds since the epoch by the broker's "
        "clock.",
        low=0,
        own=True,
    )

    share_member_max_record_locks: int = setting(
        Kind.INT,
        0,
        "Maximum number of records that one member may hold at a broker; 0: only the share partition's "
        "limit applies.",
        low=0,
        high=RECORD_LOCKS_MAX,
        own=True,
    )
    share_records_per_second: int = setting(
        Kind.INT,
        0,
        "Maximum number of records per second that a broker delivers to the group; 0: unlimited.",
        low=0,
        high=10_000_000,
        own=True,
    )
    share_record_lock_keep: str = setting(
        Kind.STRING,
        "none",
        "connected: an expiring lock is renewed while its member's share session is open.",
        choices=("none", "connected"),
        own=True,
    )
    share_record_lock_keep_max_ms: int = setting(
        Kind.LONG,
        3_600_000,
        "Maximum time that a lock is kept that way, since delivery or the last renewal.",
        low=1000,
        high=7 * 86_400_000,
        own=True,
    )
    share_breaker_percent: int = setting(
        Kind.INT,
        0,
        "Delivery to the group stops for a while once this percentage of records that ended was rejected "
        "or reached the delivery limit; 0: never.",
        low=0,
        high=100,
        own=True,
    )
    share_breaker_window_ms: int = setting(
        Kind.LONG,
        60_000,
        "Window over which share.breaker.percent is measured.",
        low=1000,
        high=3_600_000,
        own=True,
    )
    share_breaker_min_records: int = setting(
        Kind.INT,
        100,
        "Minimum number of records that end within share.breaker.window.ms before share.breaker.percent "
        "applies.",
        low=1,
        own=True,
    )
    share_breaker_pause_ms: int = setting(
        Kind.LONG,
        60_000,
        "How long the open breaker stops delivery. Then 10 records at a time are delivered until 10 have "
        "ended.",
        low=1000,
        high=86_400_000,
        own=True,
    )
    share_topic_weights: tuple[str, ...] = setting(
        Kind.LIST,
        (),
        "Weights of topics in a fetch, such as urgent:8,bulk:1; other topics have weight 1.",
        check=_check_weights,
        own=True,
    )

    share_retry_backoff_ms: int = setting(
        Kind.LONG,
        0,
        "Back-off before a record's second delivery; 0: off.",
        low=0,
        high=86_400_000,
        own=True,
    )
    share_retry_backoff_max_ms: int = setting(
        Kind.LONG,
        300_000,
        "Maximum back-off, without jitter.",
        low=0,
        high=7 * 86_400_000,
        own=True,
    )
    share_retry_backoff_multiplier: float = setting(
        Kind.DOUBLE,
        2.0,
        "Factor by which the back-off grows with each delivery; 1: constant.",
        low=1.0,
        high=10.0,
        own=True,
    )
    share_retry_backoff_jitter: float = setting(
        Kind.DOUBLE,
        0.2,
        "Random part of a back-off, as a fraction of it: the wait is lengthened by up to this much, so "
        "that redeliveries spread out.",
        low=0.0,
        high=1.0,
        own=True,
    )
    share_retry_backoff_on: tuple[str, ...] = setting(
        Kind.LIST,
        ("release", "timeout"),
        "What causes a back-off: a release by the member, a lock timeout.",
        choices=("release", "timeout"),
        check=_check_not_empty,
        own=True,
    )
    share_ordering: str = setting(
        Kind.STRING,
        "none",
        "Ordered delivery. partition: the records of a share partition are delivered in log order, to one "
        "member at a time. key: the records of each key are, with different keys in parallel.",
        choices=("none", "key", "partition"),
        own=True,
    )
    share_ordering_key_header: str = setting(
        Kind.STRING,
        "",
        "With share.ordering=key, the header whose value is the key; empty: the record's key.",
        check=_check_header,
        own=True,
    )
    share_ordering_run_max: int = setting(
        Kind.INT,
        1,
        "With share.ordering, how many consecutive records of an order may be delivered together, to one "
        "member.",
        low=1,
        high=500,
        own=True,
    )
    share_ordering_takeover_wait: bool = setting(
        Kind.BOOLEAN,
        False,
        "With share.ordering, whether a share partition delivers nothing for share.record.lock.duration.ms "
        "after its leader crashed, because members may still work on earlier records.",
        own=True,
    )
    share_partition_max_waiting: int = setting(
        Kind.INT,
        16_000,
        "Maximum number of waiting records (admitted, not acquired) of a share partition; beyond it no new "
        "records are admitted. With order by key, neighbors with one key count once. Applies with "
        "share.retry.backoff.ms, share.ordering, delivery times or a TTL.",
        low=1000,
        high=10_000_000,
        own=True,
    )

    share_deliver_at_header: str = setting(
        Kind.STRING,
        "",
        "Header with a record's delivery time, in milliseconds since the epoch; it is not delivered "
        "earlier. Empty: off.",
        check=_check_header,
        own=True,
    )
    share_record_ttl_ms: int = setting(
        Kind.LONG,
        -1,
        "TTL of records: older ones are archived. Counts from the timestamp, or from the delivery time if "
        "that is later; -1: no TTL.",
        low=-1,
        check=_check_ttl,
        own=True,
    )
    share_record_ttl_header: str = setting(
        Kind.STRING,
        "",
        "Header with a record's own TTL in milliseconds; the shorter TTL applies. Empty: off.",
        check=_check_header,
        own=True,
    )
    share_record_ttl_dead_letter: bool = setting(
        Kind.BOOLEAN,
        False,
        "Whether expired records get a dead-letter record; otherwise they are archived without one.",
        own=True,
    )

    def check_queue(self) -> None:
        """Raise ConfigError if two of these settings contradict each other."""
        first_ms, max_ms = self.share_retry_backoff_ms, self.share_retry_backoff_max_ms
        if first_ms > max_ms:
            raise ConfigError(
                f"share.retry.backoff.ms={first_ms}: longer than share.retry.backoff.max.ms={max_ms}; raise "
                "that too, or wait less"
            )
        keep_ms, lock_ms = self.share_record_lock_keep_max_ms, self.share_record_lock_duration_ms
        if keep_ms < lock_ms:
            raise ConfigError(
                f"share.record.lock.keep.max.ms={keep_ms}: shorter than share.record.lock.duration.ms="
                f"{lock_ms}; raise it, or shorten that"
            )
        if self.share_ordering_key_header and self.share_ordering != "key":
            raise ConfigError(
                f"share.ordering.key.header={self.share_ordering_key_header}: counts only with "
                f"share.ordering=key, and that is {self.share_ordering}; set that too, or no header"
            )
        if self.share_ordering_takeover_wait and self.share_ordering == "none":
            raise ConfigError(
                "share.ordering.takeover.wait=true: counts only with share.ordering=key or partition; set "
                "that too, or false"
            )
        header = self.share_deliver_at_header
        if header and header == self.share_record_ttl_header:
            raise ConfigError(
                f"share.record.ttl.header={header}: share.deliver.at.header names the same header; use two"
            )
        if self.share_record_ttl_dead_letter and not self.errors_deadletterqueue_topic_name:
            raise ConfigError(
                "share.record.ttl.dead.letter=true: there is no topic for dead letters; set "
                "errors.deadletterqueue.topic.name, too"
            )

    @property
    def looks_at_records(self) -> bool:
        """Whether records may have delivery times, or expire."""
        return bool(
            self.share_deliver_at_header or self.share_record_ttl_header or self.share_record_ttl_ms >= 0
        )

    @property
    def has_rules(self) -> bool:
        """Whether records may wait for an order, a back-off, delivery times or their expiry."""
        return bool(self.share_retry_backoff_ms or self.share_ordering != "none" or self.looks_at_records)

    @property
    def topic_weights(self) -> list[tuple[str, int]]:
        """`share.topic.weights`, read."""
        return [_read_weight(word) for word in self.share_topic_weights]

    @property
    def is_bounded(self) -> bool:
        """Whether a rate, a bound of members, weights of topics or a breaker are set."""
        return bool(
            self.share_member_max_record_locks
            or self.share_records_per_second
            or self.share_topic_weights
            or self.share_breaker_percent
        )

    @cached_property
    def lock_timeout_ms(self) -> int:
        """The lock duration that the broker reports to members; clients drop records when it ends."""
        if self.share_record_lock_keep == "connected":
            return self.share_record_lock_keep_max_ms
        return self.share_record_lock_duration_ms

    @property
    def breaker(self) -> tuple[int, int, int, int]:
        """When the group is paused as too much is given up: percent, window, least records, pause."""
        return (
            self.share_breaker_percent,
            self.share_breaker_window_ms,
            self.share_breaker_min_records,
            self.share_breaker_pause_ms,
        )

    def pause_left_ms(self, now_ms: int) -> int | None:
        """Return how long the group is still paused: 0 if it is not, None if until it is resumed."""
        return None if self.share_paused else max(0, self.share_paused_until_ms - now_ms)
