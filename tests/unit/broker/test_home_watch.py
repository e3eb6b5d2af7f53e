"""Reports about a home in a bucket, for humans, and the end of its broker."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import cast

import pytest
from tests.unit.broker.test_bucket_watch import URL, Copy

from sharecore._core import BucketStatus
from sharecore.broker.store.home_watch import EXIT_STOPPED, HomeWatch, Lease
from sharecore.broker.store.isolation import Isolation
from sharecore.partition import SharePartitions
from sharecore.partition.leaders import Which


def test_an_outage_is_logged_once_and_says_for_how_long_nothing_is_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    home, left = Copy("leading", epoch=3), list[int]()
    watching = HomeWatch(URL, lambda: cast(BucketStatus, home), tmp_path / "fenced", left.append)
    watching.look()
    assert watching.outage() == ""
    home.error, home.behind_ms = "503 SlowDown", 500
    watching.look()
    assert watching.outage() == "", "one request that is made again is no outage"
    home.behind_ms = 12_400
    watching.look()
    assert watching.outage() == f"{URL} takes no writes for 12 s: 503 SlowDown"
    assert watching.trouble() == watching.outage()
    home.error, home.behind_ms = None, 0
    watching.look()
    assert watching.outage() == ""
    assert [record.message for record in caplog.records] == [
        f"this broker leads {URL} (epoch 3)",
        f"{URL} takes no writes: 503 SlowDown. Answers wait for it",
        f"{URL} takes writes again",
    ]
    assert left == []


@pytest.mark.parametrize("state", ["fenced", "refused"])
def test_a_broker_that_may_not_lead_ends_and_says_why(
    tmp_path: Path, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    home, left = Copy("leading"), list[int]()
    watching = HomeWatch(URL, lambda: cast(BucketStatus, home), tmp_path / "fenced", left.append)
    watching.look()
    home.state, home.stopped = state, "another broker has claimed journal/7"
    watching.look()
    assert left == [EXIT_STOPPED]
    assert (tmp_path / "fenced").exists() == (state == "fenced"), "it waits longer before it claims"
    assert caplog.records[-1].levelno == logging.CRITICAL
    assert home.stopped in caplog.records[-1].message
    assert watching.outage() == f"{URL}: {home.stopped}"


class Partitions:
    """The partitions whose delivery was stopped."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def rest(self, part: int, which: Which) -> None:
        self.told.append(f"rest {part}")

    def resume(self, part: int) -> None:
        self.told.append(f"resume {part}")


def test_clients_are_sent_away_while_another_broker_probably_leads() -> None:
    heard, others = [False], [True]
    told: list[str] = []
    isolation = Isolation(
        lambda: heard[0], lambda: others[0], lambda: told.append("go"), lambda: told.append("come")
    )
    isolation.look()
    assert (isolation.is_isolated, told) == (False, []), "it has not led yet"
    for was_heard, has_others, rounds, is_isolated, said in (
        (True, True, 1, False, []),
        (False, False, 1, False, []),
        (False, True, 2, True, ["go"]),
        (True, True, 2, False, ["go", "come"]),
        (False, True, 1, True, ["go", "come", "go"]),
        (False, False, 1, False, ["go", "come", "go", "come"]),
    ):
        heard[0], others[0] = was_heard, has_others
        for _ in range(rounds):
            isolation.look()
        assert (isolation.is_isolated, told) == (is_isolated, said)


def test_nothing_is_leased_while_another_broker_may_lead() -> None:
    partitions, proven = Partitions(), [True]
    lease = Lease(lambda: proven[0], cast(SharePartitions, partitions))
    lease.look()
    proven[0] = False
    lease.look()
    lease.look()
    assert partitions.told == ["rest 1"]
    proven[0] = True
    lease.look()
    lease.look()
    assert partitions.told == ["rest 1", "resume 1"]
