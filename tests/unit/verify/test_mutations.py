"""The checker finds every breach planted in a history, and nothing in a clean one."""

from __future__ import annotations

import copy
import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.unit.verify.model import Model, Op
from tests.unit.verify.mutations import MUTATIONS

from sharecore.verify.check import Result, check

EXAMPLES = int(os.environ.get("EXAMPLES", "4"))
SEEDS = st.integers(0, 2**32 - 1)
quick = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)


def checked(directory: Path, lines: list[Op]) -> Result:
    path = directory / "history.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return check([path])


@settings(quick, max_examples=5 * EXAMPLES)
@given(seed=SEEDS, committed=st.booleans(), faults=st.booleans())
def test_nothing_is_found_in_a_clean_history(
    tmp_path: Path, seed: int, committed: bool, faults: bool
) -> None:
    result = checked(tmp_path, Model(seed, committed=committed, faults=faults).lines)
    assert [breach.text for breach in result.breaches] == []
    assert result.unchecked == 0


@pytest.mark.heavy
@pytest.mark.parametrize("name", MUTATIONS)
@quick
@given(seed=SEEDS, committed=st.booleans())
def test_a_planted_breach_is_found(tmp_path: Path, name: str, seed: int, committed: bool) -> None:
    mutation, kind = MUTATIONS[name]
    lines = copy.deepcopy(
        Model(seed, 80, committed=committed, faults=name == "an_offset_changes_its_record").lines
    )
    assume(mutation(lines, random.Random(seed)))
    result = checked(tmp_path, lines)
    found = [breach for breach in result.breaches if breach.kind == kind]
    assert found, f"{kind} was planted, {dict(result.counts)} was found"
    assert all(breach.lines and set(breach.lines) <= result.shown.keys() for breach in found)
