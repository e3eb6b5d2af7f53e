"""Settings of share groups that are sharecore's own: what of a queue Kafka's share groups do not have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sharecore.config.dead_letters import LEGAL_NAME
from sharecore.config.keys import Kind, setting
from sharecore.config.share import RECORD_LOCKS_MAX
from sharecore.errors import ConfigError

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
    """a list of TOPIC:WEIGHT, weights from 1 to 100, each topic once"""
    topics = [_read_weight(word)[0] for word in words]
    if len(topics) > _TOPICS_MAX:
        raise ValueError("too many topics")
    if len(set(topics)) < len(topics):
        raise ValueError("a topic has two weights")


def _check_header(name: str) -> None:
    """the name of a header, of at most 249 bytes"""
    if len(name.encode()) > _HEADER_BYTES_MAX:
        raise ValueError("too long")


def _check_ttl(ttl_ms: int) -> None:
    """-1, or 1000 and up"""
    if ttl_ms != -1 and ttl_ms < _TTL_MS_MIN:
        raise ValueError("too short")


def _check_not_empty(words: tuple[str, ...]) -> None:
    """release, timeout, or both"""
    if not words:
        raise ValueError("an empty list")


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class QueueSettings:
    """When a share group gets records, beyond what Kafka's settings say."""

    if TYPE_CHECKING:
        errors_deadletterqueue_topic_name: str
        share_record_lock_duration_ms: int

    share_paused: bool = setting(
        Kind.BOOLEAN,
        False,
        "Whether the group gets no records. Acknowledgements, renewals, lock time-outs and heartbeats go on.",
        own=True,
    )
    share_paused_until_ms: int = setting(
        Kind.LONG,
        0,
        "The group gets no records before this time, in milliseconds since the epoch by the broker's clock.",
        low=0,
        own=True,
    )

    share_member_max_record_locks: int = setting(
        Kind.INT,
        0,
        "Records that one member may hold at a broker; 0: no bound but that of the share partition.",
        low=0,
        high=RECORD_LOCKS_MAX,
        own=True,
    )
    share_records_per_second: int = setting(
        Kind.INT,
        0,
        "Records that the group gets in a second from a broker, over all members; 0: no such bound.",
        low=0,
        high=10_000_000,
        own=True,
    )
    share_record_lock_keep: str = setting(
        Kind.STRING,
        "none",
        "connected: the lock of a record that runs out starts anew while its member's share session is open.",
        choices=("none", "connected"),
        own=True,
    )
    share_record_lock_keep_max_ms: int = setting(
        Kind.LONG,
        3_600_000,
        "How long a record may stay with a member in that way, since it was delivered or renewed.",
        low=1000,
        high=7 * 86_400_000,
        own=True,
    )
    share_breaker_percent: int = setting(
        Kind.INT,
        0,
        "The group gets no records for a while once so many percent of those that ended were rejected or "
        "reached their delivery limit; 0: it always does.",
        low=0,
        high=100,
        own=True,
    )
    share_breaker_window_ms: int = setting(
        Kind.LONG,
        60_000,
        "Over how long records are counted for share.breaker.percent.",
        low=1000,
        high=3_600_000,
        own=True,
    )
    share_breaker_min_records: int = setting(
        Kind.INT,
        100,
        "So many records have to end within share.breaker.window.ms before share.breaker.percent counts.",
        low=1,
        own=True,
    )
    share_breaker_pause_ms: int = setting(
        Kind.LONG,
        60_000,
        "How long the group gets no records then. After it 10 records at a time are delivered, until 10 "
        "have ended.",
        low=1000,
        high=86_400_000,
        own=True,
    )
    share_topic_weights: tuple[str, ...] = setting(
        Kind.LIST,
        (),
        "Parts of a fetch by topic, such as urgent:8,bulk:1; a topic that is not named has weight 1.",
        check=_check_weights,
        own=True,
    )

    share_retry_backoff_ms: int = setting(
        Kind.LONG,
        0,
        "How long a record waits before its second delivery, once it was given back; 0: not at all.",
        low=0,
        high=86_400_000,
        own=True,
    )
    share_retry_backoff_max_ms: int = setting(
        Kind.LONG,
        300_000,
        "The longest wait before a further delivery, without jitter.",
        low=0,
        high=7 * 86_400_000,
        own=True,
    )
    share_retry_backoff_multiplier: float = setting(
        Kind.DOUBLE,
        2.0,
        "How much longer the wait is before each further delivery; 1: always the same.",
        low=1.0,
        high=10.0,
        own=True,
    )
    share_retry_backoff_jitter: float = setting(
        Kind.DOUBLE,
        0.2,
        "A wait is longer by up to this part of it, so that not all come back at once.",
        low=0.0,
        high=1.0,
        own=True,
    )
    share_retry_backoff_on: tuple[str, ...] = setting(
        Kind.LIST,
        ("release", "timeout"),
        "What has a record wait: that a member released it, that its lock ran out.",
        choices=("release", "timeout"),
        check=_check_not_empty,
        own=True,
    )
    share_ordering: str = setting(
        Kind.STRING,
        "none",
        "Which records come only after others are settled. partition: those of a share partition come in the "
        "order of the log, to one member at a time. key: so do those of each key, side by side.",
        choices=("none", "key", "partition"),
        own=True,
    )
    share_ordering_key_header: str = setting(
        Kind.STRING,
        "",
        "With share.ordering=key, the header whose value is the key; empty: the record's own key.",
        check=_check_header,
        own=True,
    )
    share_ordering_run_max: int = setting(
        Kind.INT,
        1,
        "So many records that follow each other in their order may be given together, to one member. Counts "
        "where share.ordering is set.",
        low=1,
        high=500,
        own=True,
    )
    share_ordering_takeover_wait: bool = setting(
        Kind.BOOLEAN,
        False,
        "After a crash of the broker or node that led a share partition, nothing of it is given out for "
        "share.record.lock.duration.ms, as members may still work on what they got before. Counts where "
        "share.ordering is set.",
        own=True,
    )
    share_partition_max_waiting: int = setting(
        Kind.INT,
        16_000,
        "Records of a share partition that may be neither leased nor settled, behind the first that is not "
        "settled, before new ones have to wait; in the order of keys, neighbors with one key count once. "
        "Counts with share.retry.backoff.ms, share.ordering, delivery times or a time to live.",
        low=1000,
        high=10_000_000,
        own=True,
    )

    share_deliver_at_header: str = setting(
        Kind.STRING,
        "",
        "The header with the time before which a record is not delivered, in milliseconds since the epoch; "
        "empty: records have no such time.",
        check=_check_header,
        own=True,
    )
    share_record_ttl_ms: int = setting(
        Kind.LONG,
        -1,
        "A record that is older, counted from its timestamp or from its delivery time if that is later, is "
        "given up; -1: none is.",
        low=-1,
        check=_check_ttl,
        own=True,
    )
    share_record_ttl_header: str = setting(
        Kind.STRING,
        "",
        "The header with a record's own time to live in milliseconds; the shorter one counts; empty: records "
        "have none of their own.",
        check=_check_header,
        own=True,
    )
    share_record_ttl_dead_letter: bool = setting(
        Kind.BOOLEAN,
        False,
        "Whether records that expire get a dead letter. They are archived without one otherwise.",
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
        """The duration of locks that the broker tells members; clients give up records once it is over."""
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
