"""Schedules: records that a scheduler writes to a topic when they are due."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo

from sharecore.client.producing.records import Headers, header_pairs
from sharecore.client.producing.times import milliseconds
from sharecore.errors import ConfigError, PackageMissing, missing
from sharecore.topic_names import is_legal_name

TOPIC = "schedules"
"""The default topic for schedules."""
TARGET, AT, EVERY = "schedule-target", "schedule-at", "schedule-every"
CRON, ZONE, KEY = "schedule-cron", "schedule-zone", "schedule-key"
"""Headers of a schedule. A record with a null value cancels the schedule with its key."""
NAME, DUE = "schedule", "schedule-due"
"""Headers of the records written to the target: the schedule's key, and the due time."""
_OURS = frozenset({TARGET, AT, EVERY, CRON, ZONE, KEY, NAME, DUE})
EVERY_MS_MIN = 1000
_MS_MAX = 253_402_300_799_000
"""The end of the year 9999."""


Pair = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Schedule:
    """A record to be written to a topic, and when.

    Args:
        key: the schedule's name; replaces a schedule with the same key.
        target: a topic.
        at_ms: the first time, in milliseconds since the epoch; with `cron`, the earliest.
        every_ms: repeat after this many milliseconds.
        cron: five cron fields; needs the package cronsim (`sharecore[schedules]`).
        zone: the time zone of `cron`, such as Europe/Berlin.
        record_key, headers: of the record to write.

    Raises:
        ConfigError: an invalid value.
        PackageMissing: a valid value, but cron expressions or time zones are not installed here.
    """

    key: bytes
    target: str
    value: bytes
    at_ms: int | None = None
    every_ms: int | None = None
    cron: str = ""
    zone: str = "UTC"
    record_key: bytes | None = None
    headers: Sequence[Pair] = field(default=())

    def __post_init__(self) -> None:
        if not self.key:
            raise ConfigError("a schedule needs a key")
        if not self.target:
            raise ConfigError(f"{TARGET}: a schedule needs the topic to write to")
        if not is_legal_name(self.target):
            raise ConfigError(f"{TARGET}={self.target[:40]!r}: not the name of a topic")
        if self.at_ms is None and self.every_ms is None and not self.cron:
            raise ConfigError(f"a schedule needs a time: {AT}, {EVERY} or {CRON}")
        if self.every_ms is not None and self.cron:
            raise ConfigError(f"{EVERY} and {CRON} exclude each other")
        if self.at_ms is not None and not 0 <= self.at_ms <= _MS_MAX:
            raise ConfigError(f"{AT}={self.at_ms}: not a time in milliseconds since the epoch")
        if self.every_ms is not None and not EVERY_MS_MIN <= self.every_ms <= _MS_MAX:
            raise ConfigError(f"{EVERY}={self.every_ms}: must be at least {EVERY_MS_MIN} ms")
        taken = next((name for name, _ in self.headers if name in _OURS), None)
        if taken is not None:
            raise ConfigError(f"header {taken}: a schedule's own; use another name")
        if self.cron:
            self.after(0)

    def first(self, written_ms: int) -> int | None:
        """Return the first due time of a schedule written at `written_ms`."""
        if self.cron:
            return self.after(max(written_ms, (self.at_ms or 0) - 1))
        if self.at_ms is not None:
            return self.at_ms
        assert self.every_ms is not None, "there is a time"
        return written_ms + self.every_ms

    def after(self, due_ms: int) -> int | None:
        """Return the next due time after `due_ms`; None if there is none.

        Raises:
            ConfigError: `cron` or `zone` is invalid.
            PackageMissing: this machine cannot evaluate them.
        """
        if self.every_ms is not None:
            return due_ms + self.every_ms
        if not self.cron:
            return None
        try:
            from cronsim import CronSim, CronSimError
        except ModuleNotFoundError as error:
            raise PackageMissing(f"{CRON}: {missing(error)}") from None
        zone = _zone(self.zone)
        try:
            start = datetime.fromtimestamp(due_ms // 1000, zone)
            found = next(CronSim(self.cron, start), None)
        except (OverflowError, ValueError):
            return None  # not before the year 10000
        except CronSimError as error:
            raise ConfigError(f"{CRON}={self.cron}: {error}") from None
        return None if found is None else round(found.timestamp() * 1000)

    def as_headers(self) -> list[Pair]:
        """Return the headers of the record that sets the schedule."""
        texts = {
            TARGET: self.target,
            AT: None if self.at_ms is None else str(self.at_ms),
            EVERY: None if self.every_ms is None else str(self.every_ms),
            CRON: self.cron or None,
            ZONE: self.zone if self.cron else None,
        }
        found: list[Pair] = [(name, text.encode()) for name, text in texts.items() if text is not None]
        if self.record_key is not None:
            found.append((KEY, self.record_key))
        return [*found, *self.headers]


def read_schedule(key: bytes | None, value: bytes, headers: Sequence[Pair] | None) -> Schedule:
    """Return the schedule set by a record; the last of several headers with a name counts.

    Raises:
        ConfigError: it does not set one.
    """
    pairs = headers or ()
    own = {name: content for name, content in pairs if name in _OURS}
    return Schedule(
        key or b"",
        _text(own, TARGET),
        value,
        _number(own, AT),
        _number(own, EVERY),
        _text(own, CRON),
        _text(own, ZONE) or "UTC",
        own.get(KEY),
        tuple(pair for pair in pairs if pair[0] not in _OURS),
    )


def schedule_headers(
    key: str | bytes,
    topic: str,
    *,
    at: datetime | int | None = None,
    delay: timedelta | float | None = None,
    every: timedelta | float | None = None,
    cron: str = "",
    zone: str = "UTC",
    record_key: str | bytes | None = None,
    headers: Headers | None = None,
) -> list[Pair]:
    """Return the headers of a record that sets a schedule; as `Producer.schedule`.

    Raises:
        ConfigError: an invalid value.
    """
    check_key(key)
    if record_key is not None and not isinstance(record_key, str | bytes):
        raise ConfigError(f"record_key={record_key!r}: pass a string or bytes")
    for name, text in (("topic", topic), ("cron", cron), ("zone", zone)):
        if text is not None and not isinstance(text, str):
            raise ConfigError(f"{name}={text!r}: pass a string")
    every_ms = None if every is None else _span_ms("every", every)
    pairs = header_pairs(headers) or []
    at_ms = at_ms_of(at, delay, round(time.time() * 1000))
    schedule = Schedule(
        _bytes(key) or b"",
        topic or "",
        b"",
        at_ms,
        every_ms,
        cron or "",
        zone or "UTC",
        _bytes(record_key),
        pairs,
    )
    return schedule.as_headers()


def at_ms_of(at: datetime | int | None, delay: timedelta | float | None, now_ms: int) -> int | None:
    """Return a first time in milliseconds since the epoch.

    Raises:
        ConfigError: a time without a zone, or both a time and a delay.
    """
    if at is not None and delay is not None:
        raise ConfigError("pass at or delay: a schedule has one first time")
    if delay is not None:
        return now_ms + _span_ms("delay", delay)
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise ConfigError(f"at={at}: a time without a zone; pass one with tzinfo")
        return round(at.timestamp() * 1000)
    if at is not None and (isinstance(at, bool) or not isinstance(at, int)):
        raise ConfigError(f"at={at!r}: pass a datetime with a zone, or whole milliseconds since the epoch")
    return at


def check_key(key: object) -> None:
    """Raise ConfigError unless this can be the name of a schedule."""
    if not isinstance(key, str | bytes) or not key:
        raise ConfigError(f"key={key!r}: pass the schedule's name, a string or bytes")


def check_value(value: object) -> None:
    """Raise ConfigError for None, which would cancel the schedule."""
    if value is None:
        raise ConfigError("value=None would cancel the schedule: call cancel_schedule, or pass b''")


def _span_ms(name: str, span: timedelta | float) -> int:
    try:
        return milliseconds(name, span, round)
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from None


def _bytes(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def _text(headers: dict[str, bytes | None], name: str) -> str:
    try:
        return (headers.get(name) or b"").decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{name}: not UTF-8") from None


def _number(headers: dict[str, bytes | None], name: str) -> int | None:
    text = _text(headers, name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ConfigError(f"{name}={text[:40]}: not a number of milliseconds")
    return int(text)


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, available_timezones

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        if not available_timezones():
            reason = "this machine has no time zones; run: pip install tzdata"
            raise PackageMissing(f"{ZONE}={name[:40]}: {reason}") from None
        raise ConfigError(f"{ZONE}={name[:40]}: unknown time zone") from None
