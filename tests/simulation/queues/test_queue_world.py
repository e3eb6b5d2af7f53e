"""Queue settings in the simulator: promises are kept for some seeds, and planted bugs are found."""

from __future__ import annotations

import pytest
from tests.simulation import run
from tests.simulation.queues.canaries import QUEUE_CANARIES
from tests.simulation.queues.settings import BOUNDS, FEATURES, ORDER, WAITS, Queue, Settings
from tests.simulation.run import one
from tests.simulation.swarm import Plan

from sharecore import _core

QUICK = ["back-offs that a load forgets", "free keys that wake nobody", "members without a bound"]
EVERYTHING = ",".join(("members", "idempotent", "kills", "clock jumps", "failing disk", *FEATURES))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_promises_are_kept(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert one(Plan.drawn(seed, 2_000, EVERYTHING), print), capsys.readouterr().out


def test_planted_bugs_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    """`make simulate` plants all of them."""
    assert run.canaries(QUICK, print), capsys.readouterr().out


def test_each_kind_of_promise_has_planted_bugs() -> None:
    for feature in (ORDER, WAITS, BOUNDS):
        assert sum(feature in canary.features.split(",") for canary in QUEUE_CANARIES.values()) >= 4


def test_no_bug_is_planted_that_the_engine_does_not_know() -> None:
    with pytest.raises(ValueError, match="unknown bug: rain"):
        _core.plant_bug("rain")


def test_what_was_drawn_for_a_seed_before_is_drawn_for_it_still() -> None:
    features = Plan.drawn(2006986397, 1).features - set(FEATURES)
    assert {"kills", "members"} & features
    assert features == Plan.drawn(2006986397, 1).without(FEATURES).features


def test_a_change_of_settings_may_be_in_force_from_when_it_is_asked_until_the_next_is_answered() -> None:
    settings = Settings()
    settings.asked(1.0, {"share.paused": "true"})
    assert {queue.paused for queue in settings.over(1.5, 1.5)} == {False, True}
    settings.answered(2.0, {"share.paused": "true"})
    assert [queue.paused for queue in settings.over(2.5, 3.0)] == [True]
    assert {queue.paused for queue in settings.over(1.5, 3.0)} == {False, True}
    settings.lose(4.0)
    assert settings.over(3.5, 4.5) == [], "nobody knows"


def test_waits_are_told_apart_by_their_cause() -> None:
    queue = Queue(backoff_ms=1_000, backoff_max_ms=3_000, multiplier=2.0, on="release")
    waits = [queue.wait_s(count, "release") for count in (0, 1, 2, 3)]
    assert waits == [0.0, 1.0, 2.0, 3.0]
    assert (queue.wait_s(1, "timeout"), queue.wait_s(1, "session"), queue.wait_s(2, "load")) == (0, 0, 2.0)
