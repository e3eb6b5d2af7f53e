"""When schedules are due, what their headers mean, and which are refused by name."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest
from confluent_kafka import Message

from sharecore.client import BlockingProducer
from sharecore.client.producing.schedules import Schedule, at_ms_of, read_schedule, schedule_headers
from sharecore.errors import ConfigError, PackageMissing
from sharecore.schedules.topics import changes_of

BERLIN = ZoneInfo("Europe/Berlin")


def ms(
    year: int,
    month: int,
    day: int,
    hour: int = 0,
    minute: int = 0,
    second: int = 0,
    *,
    zone: ZoneInfo = BERLIN,
) -> int:
    return round(datetime(year, month, day, hour, minute, second, tzinfo=zone).timestamp() * 1000)


def dues(schedule: Schedule, written_ms: int, count: int) -> list[int | None]:
    found = [schedule.first(written_ms)]
    while len(found) < count and found[-1] is not None:
        found.append(schedule.after(found[-1]))
    return found


def test_a_time_comes_once_and_an_interval_again_and_again() -> None:
    assert dues(Schedule(b"k", "t", b"", at_ms=5000), 9000, 3) == [5000, None]
    assert dues(Schedule(b"k", "t", b"", every_ms=1500), 1000, 3) == [2500, 4000, 5500]
    assert dues(Schedule(b"k", "t", b"", at_ms=9000, every_ms=2000), 1000, 3) == [9000, 11000, 13000]


def test_cron_keeps_its_hour_over_a_change_of_the_clocks() -> None:
    schedule = Schedule(b"k", "t", b"", cron="0 9 * * *", zone="Europe/Berlin")
    # daylight saving time in Berlin begins on 2026-03-29, and ends on 2026-10-25
    for day in (datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 10, 24, tzinfo=UTC)):
        found = dues(schedule, round(day.timestamp() * 1000), 3)
        assert found == [ms(day.year, day.month, day.day + more, 9) for more in range(3)]


def test_cron_begins_at_its_first_time() -> None:
    at_ms = ms(2026, 5, 4, 9)
    schedule = Schedule(b"k", "t", b"", at_ms=at_ms, cron="0 9 * * MON", zone="Europe/Berlin")
    assert dues(schedule, 0, 2) == [at_ms, ms(2026, 5, 11, 9)]


def test_cron_ends_with_the_calendar() -> None:
    for zone in ("UTC", "Europe/Berlin", "America/New_York"):
        at_ms = ms(9999, 12, 31, 23, 59, 58, zone=ZoneInfo("UTC"))
        assert Schedule(b"k", "t", b"", at_ms=at_ms, cron="* * * * *", zone=zone).first(0) is None


def test_headers_bring_back_the_schedule() -> None:
    schedule = Schedule(
        b"k", "t", b"v", 5, None, "0 9 * * *", "Europe/Berlin", b"\xff", (("a", b"1"), ("a", None))
    )
    assert read_schedule(b"k", b"v", schedule.as_headers()) == schedule


@pytest.mark.parametrize(
    ("key", "headers", "said"),
    [
        (b"", [("schedule-target", b"t"), ("schedule-at", b"1")], "needs a key"),
        (None, [("schedule-target", b"t"), ("schedule-at", b"1")], "needs a key"),
        (b"k", [("schedule-at", b"1")], "schedule-target"),
        (b"k", [("schedule-target", b"t")], "needs a time"),
        (b"k", [("schedule-target", b"\xff"), ("schedule-at", b"1")], "not UTF-8"),
        (b"k", [("schedule-target", b"a\0b"), ("schedule-at", b"1")], "not the name of a topic"),
        (b"k", [("schedule-target", "\u00fc".encode()), ("schedule-at", b"1")], "not the name of a topic"),
        (b"k", [("schedule-target", b".."), ("schedule-at", b"1")], "not the name of a topic"),
        (b"k", [("schedule-target", b"t" * 250), ("schedule-at", b"1")], "not the name of a topic"),
        (b"k", [("schedule-target", b"t"), ("schedule-at", b"soon")], "schedule-at=soon"),
        (b"k", [("schedule-target", b"t"), ("schedule-at", b"9" * 19)], "schedule-at=9999"),
        (b"k", [("schedule-target", b"t"), ("schedule-every", b"999")], "schedule-every=999"),
        (b"k", [("schedule-target", b"t"), ("schedule-cron", b"0 9 * *")], "schedule-cron=0 9 * *"),
        (
            b"k",
            [("schedule-target", b"t"), ("schedule-cron", b"0 9 * * *"), ("schedule-zone", b"../etc/passwd")],
            "unknown time zone",
        ),
        (
            b"k",
            [("schedule-target", b"t"), ("schedule-cron", b"0 9 * * *"), ("schedule-every", b"1000")],
            "exclude each other",
        ),
    ],
)
def test_what_is_no_schedule_is_refused_by_name(
    key: bytes | None, headers: list[tuple[str, bytes | None]], said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        read_schedule(key, b"v", headers)
    assert said in str(raised.value)


def test_a_first_time_is_a_moment_or_a_delay() -> None:
    assert at_ms_of(datetime(1970, 1, 1, 0, 1, tzinfo=UTC), None, 0) == 60_000
    assert at_ms_of(None, timedelta(seconds=3), 1000) == 4000
    assert at_ms_of(None, 1.5, 1000) == 2500
    assert at_ms_of(7, None, 1000) == 7
    with pytest.raises(ConfigError, match="without a zone"):
        at_ms_of(datetime(2026, 1, 1), None, 0)
    with pytest.raises(ConfigError, match="at or delay"):
        at_ms_of(7, 1, 0)


def test_a_producers_arguments_become_headers() -> None:
    headers = schedule_headers(
        "k", "t", at=5, every=timedelta(minutes=1), record_key="r", headers={"a": "1"}, zone="Nowhere"
    )
    assert headers == [
        ("schedule-target", b"t"),
        ("schedule-at", b"5"),
        ("schedule-every", b"60000"),
        ("schedule-key", b"r"),
        ("a", b"1"),
    ]
    with pytest.raises(ConfigError, match="header schedule-at"):
        schedule_headers("k", "t", delay=1, headers={"schedule-at": "1"})
    with pytest.raises(ConfigError, match="schedule-every=500"):
        schedule_headers("k", "t", every=0.5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"key": None, "every": 5}, "key=None: pass the schedule's name"),
        ({"key": "", "every": 5}, "key='': pass the schedule's name"),
        ({"key": 5, "every": 5}, "key=5: pass the schedule's name"),
        ({"topic": 5, "every": 5}, "topic=5: pass a string"),
        ({"topic": None, "every": 5}, "needs the topic"),
        ({"cron": 5}, "cron=5: pass a string"),
        ({"every": 5, "record_key": 5}, "record_key=5: pass a string or bytes"),
        ({"every": "5"}, "every='5': pass seconds or a timedelta"),
        ({"delay": -1}, "delay=-1: pass 0 seconds or more"),
        ({"delay": float("nan")}, "delay=nan: pass 0 seconds or more"),
        ({"at": 1.5}, "at=1.5: pass a datetime"),
        ({"at": True}, "at=True: pass a datetime"),
        ({"at": "tomorrow"}, "at='tomorrow': pass a datetime"),
    ],
)
def test_an_argument_of_a_wrong_type_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        schedule_headers(**{"key": "k", "topic": "t"} | given)
    assert said in str(raised.value)


def test_a_schedule_without_a_value_is_refused_as_it_would_be_canceled() -> None:
    with BlockingProducer({"bootstrap.servers": "127.0.0.1:1"}) as producer:
        with pytest.raises(ConfigError, match="would cancel the schedule"):
            producer.schedule("k", "t", None, every=5)
        with pytest.raises(ConfigError, match="key=None"):
            producer.cancel_schedule(None)  # type: ignore[arg-type]


class Written:
    """A record of a schedule topic, as far as it is read."""

    def __init__(self, *headers: tuple[str, bytes]) -> None:
        self._headers = list(headers)

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"v"

    def headers(self) -> list[tuple[str, bytes]]:
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000

    def topic(self) -> str:
        return "schedules"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 7


def test_a_scheduler_without_cron_or_time_zones_ends_instead_of_losing_schedules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daily = cast("Message", Written(("schedule-target", b"t"), ("schedule-cron", b"0 9 * * *")))
    here = (("schedule-target", b"t"), ("schedule-cron", b"0 9 * * *"), ("schedule-zone", b"Europe/Berlin"))
    assert len(changes_of([daily])) == 1
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "cronsim", None)
        with pytest.raises(PackageMissing, match=r"pip install 'sharecore\[schedules\]'"):
            changes_of([daily])
    with monkeypatch.context() as without:
        without.setattr("zoneinfo.available_timezones", set)
        without.setattr("zoneinfo.ZoneInfo", _no_zone)
        with pytest.raises(PackageMissing, match="pip install tzdata"):
            changes_of([cast("Message", Written(*here))])


def _no_zone(name: str) -> ZoneInfo:
    raise ZoneInfoNotFoundError(name)
