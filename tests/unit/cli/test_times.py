"""Times of the command line; `tests/interop/test_groups_command.py` compares them with Kafka's tool."""

from __future__ import annotations

import time

import pytest

from sharecore.cli.clients import UsageFailed
from sharecore.cli.times import read_duration_ms, read_time, show_duration, show_time


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-03-29T02:30:00", "2026-03-29T02:30:00.000Z"),
        ("2026-03-29T02:30:00.250", "2026-03-29T02:30:00.250Z"),
        ("2026-03-29t02:30z", "2026-03-29T02:30:00.000Z"),
        ("2026-03-29 02:30:00+02:00", "2026-03-29T00:30:00.000Z"),
        ("2026-03-29T02:30:00.001-0530", "2026-03-29T08:00:00.001Z"),
        ("2026-03-29T02:30:00+02", "2026-03-29T00:30:00.000Z"),
        ("2026-03-29", "2026-03-29T00:00:00.000Z"),
    ],
)
def test_a_time_is_utc_unless_it_says_so(
    zone: str, text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert show_time(round(read_time(text, "--since").timestamp() * 1000)) == shown
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["", "noon", "2026-13-01T00:00:00", "2026-02-30", "20260329", "2026-W13-7"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageFailed, match=r"^--until .*: not a time; allowed: YYYY"):
        read_time(text, "--until")


def test_a_time_may_be_shown_in_this_machines_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert show_time(0, local=True) == "1970-01-01T05:30:00.000+05:30"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["1ms", "1500ms", "90s", "10m", "2h", "1d", "3650d"])
def test_a_duration_is_shown_as_it_is_read(text: str) -> None:
    assert show_duration(read_duration_ms(text, "--every")) == text
