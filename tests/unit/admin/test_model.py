"""Targets of a reset, and the settings of an admin client."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sharecore.admin import Admin, Target
from sharecore.errors import ConfigError


def test_targets_ask_for_their_timestamps() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    assert [target.timestamp for target in (Target.earliest(), Target.latest(), Target.offset(7))] == [
        -2,
        -1,
        None,
    ]
    assert Target.at(moment).timestamp == 1767323045678
    with pytest.raises(ValueError, match="negative"):
        Target.offset(-1)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, r"bootstrap\.servers is missing"),
        ({"bootstrap.servers": "h:1", "group.id": "g"}, "group.id is not a setting of an admin client"),
        ({"bootstrap.servers": "h:1", "request.timeout.m": 1}, r"did you mean request\.timeout\.ms\?"),
        ({"bootstrap.servers": "h:1", "security.protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
    ],
)
def test_settings_that_cannot_stand(settings: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Admin(settings)
