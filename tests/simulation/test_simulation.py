"""The simulator repeats itself and finds planted bugs; the broker keeps its promises for some seeds."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.simulation import letters, run
from tests.simulation.canaries import CANARIES, SALVAGES
from tests.simulation.queues import settings as queues
from tests.simulation.run import one, shrunk, story_of
from tests.simulation.swarm import FAULTS, Plan
from tests.simulation.world import simulate

ROOT = Path(__file__).resolve().parents[2]
QUICK = [
    "locks without a timer",
    "no sync",
    "settled state that is not loaded",
    "aborted records",
]


@pytest.mark.parametrize(
    ("seed", "events", "faults"),
    [
        (2, 3_000, "all"),
        (5, 3_000, ""),
        (9, 3_000, ""),
        # salvage may lose a group's record of its state, the state itself, added partitions, and the oldest
        # records of a topic
        (2, 3_000, SALVAGES),
        (6, 3_000, "members,misdirected writes,kills"),
        (2006986397, 10_000, ""),
        (485953748, 10_000, ""),
        # the transaction times out while the disk fails, and its producer is gone
        (2718815735, 10_000, ""),
    ],
)
def test_promises_are_kept(seed: int, events: int, faults: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = Plan.drawn(seed, events, faults)
    # these seeds are older than queue settings
    plan = plan if faults == "all" else plan.without(queues.FEATURES)
    assert one(plan, print), capsys.readouterr().out


def test_a_seed_is_one_life_byte_for_byte() -> None:
    """Here, where others ran before, and in a process of its own, where strings hash to other numbers."""
    told = subprocess.run(
        [sys.executable, "-m", "tests.simulation", "--seed", "5", "--events", "1500", "--lines"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "1"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    here = simulate(Plan.drawn(5, 1_500))
    assert told.splitlines()[:-1] == "\n".join(here.lines).splitlines()
    assert len(here.lines) > 200
    # the digest covers all lines, the printed ones are the last
    assert told.split()[-1] == here.digest


def test_a_seed_is_one_life_in_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that names the directory is equally long."""
    plan = Plan.drawn(3, 2_000, "full disk,members,pieces,queue administrators")
    here = simulate(plan).digest
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert simulate(plan).digest == here


def test_a_missing_letter_ends_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "missing", lambda *_: ["first-0 offset 0 was rejected"])
    outcome = simulate(Plan.drawn(1, 500, "letters,members,order"))
    assert [each.kind for each in outcome.violations] == ["a letter is missing"]
    assert "AUDITOR" in outcome.lines[-1], "no scene follows"


def test_another_seed_is_another_life() -> None:
    digests = {simulate(Plan.drawn(seed, 300, "none")).digest for seed in (1, 2, 3)}
    assert len(digests) == 3


def test_there_are_enough_canaries() -> None:
    assert len(CANARIES) >= 15
    assert set(QUICK) <= CANARIES.keys()


def test_planted_bugs_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    """`make simulate` plants all of them."""
    assert run.canaries(QUICK, print), capsys.readouterr().out


def test_a_failure_tells_its_story() -> None:
    plan = Plan.drawn(1, 2_000, "members,transactions,pieces", "aborted records")
    outcome = shrunk(simulate(plan))
    story = story_of(outcome)
    # features that are not needed are removed
    assert outcome.plan.features <= {"members", "transactions"}
    assert "uncommitted record" in story
    assert "aborts transaction-" in story
    assert (
        f"again   make simulate SEED=1 EVENTS=2000 FAULTS='{','.join(sorted(outcome.plan.features))}'"
        in story
    )
    assert "CANARY='aborted records'" in story


def test_seeds_may_be_drawn_from_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def note(plan: Plan, say: object) -> bool:
        drawn.append(plan.seed)
        return True

    monkeypatch.setattr(run, "one", note)
    for commit in ("a1", "a1", "b2"):
        assert run.swarm(3, 0, 300, "none", print, drawn_from=commit)
    assert drawn[:3] == drawn[3:6]
    assert len(set(drawn)) == 6


def test_unknown_faults_are_named() -> None:
    with pytest.raises(ValueError, match=r"rain: allowed are .*kills"):
        Plan.drawn(1, 100, "rain")
    assert Plan.drawn(1, 100, "all").features >= set(FAULTS)
