from __future__ import annotations

import pytest

from sharecore.client import Record
from sharecore.client.configs import ConfigEntry, ConfigSource
from sharecore.client.workers.group_settings import DELIVER_AT, ignores_delivery_times, is_early


@pytest.mark.parametrize(
    ("headers", "early"),
    [
        ([], False),
        ([("deliver-at", b"1000")], False),
        ([("deliver-at", b"1001")], True),
        ([("other", b"1001")], False),
        ([("deliver-at", b"1001"), ("deliver-at", b"999")], False),
        ([("deliver-at", b"999"), ("deliver-at", b"1001")], True),
        ([("deliver-at", b"soon")], False),
        ([("deliver-at", None)], False),
        ([("deliver-at", b"9" * 19)], True),
        ([("deliver-at", b"9" * 20)], False),
    ],
)
def test_a_record_is_early_before_the_last_of_its_delivery_times(
    headers: list[tuple[str, bytes | None]], early: bool
) -> None:
    assert is_early(Record(value=b"x", headers=headers), 1000) == early


@pytest.mark.parametrize(
    ("header", "ignored"), [(None, True), ("", True), ("other", True), ("deliver-at", False)]
)
def test_a_group_without_the_header_ignores_delivery_times(header: str | None, ignored: bool) -> None:
    configs = {} if header is None else {DELIVER_AT: ConfigEntry(DELIVER_AT, header, ConfigSource.GROUP)}
    assert ignores_delivery_times(configs) == ignored
    assert not ignores_delivery_times(None), "it may not read the settings"
