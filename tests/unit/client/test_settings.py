"""Settings, as in other clients."""

from __future__ import annotations

import logging

import pytest

from sharecore.client import java_unused
from sharecore.client.settings import read_connection_settings, read_settings, whole_number
from sharecore.errors import ConfigError

NEEDED = {"bootstrap.servers": "broker:9092", "group.id": "g"}


@pytest.mark.parametrize("name", java_unused.REFUSED)
def test_what_no_share_consumer_may_set(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{name} cannot be set for a share consumer: \w"):
        read_settings(NEEDED | {name: "5"})
    with pytest.raises(ConfigError, match=f"^{name} "):
        read_settings(NEEDED, **{name.replace(".", "_"): "5"})


@pytest.mark.parametrize("name", sorted(java_unused.UNUSED))
def test_what_only_java_acts_on_is_warned_of(name: str, caplog: pytest.LogCaptureFixture) -> None:
    for read in (read_settings, read_connection_settings):
        caplog.clear()
        given = NEEDED if read is read_settings else {"bootstrap.servers": "broker:9092"}
        with caplog.at_level(logging.WARNING):
            assert read(given | {name: "5"}) == read(given)
        (told,) = caplog.messages
        assert told.startswith(f"{name}=5 has no effect: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("check.crcs", True),
        ("check.crcs", "true"),
        ("client.dns.lookup", "use_all_dns_ips"),
        ("allow.auto.create.topics", "False"),
        ("metadata.recovery.strategy", "REBOOTSTRAP"),
    ],
)
def test_nobody_is_warned_of_what_happens_anyway(
    name: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    assert read_settings(NEEDED | {name: value}) == read_settings(NEEDED)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("max.pol.records", "max.poll.records"),
        ("fetch.mix.bytes", "fetch.m"),
        ("ssl.keystore.key", "ssl.key"),
    ],
)
def test_a_name_that_is_not_known_is_refused(name: str, near: str) -> None:
    with pytest.raises(
        ConfigError, match=f"{name} is not a setting of a share consumer; did you mean {near}"
    ):
        read_settings(NEEDED | {name: "5"})


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), "1e3", True, None])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match=r"^a\.b=.+: must be a whole number from 1 to 9"):
        whole_number(1, 9, "a.b", value)
