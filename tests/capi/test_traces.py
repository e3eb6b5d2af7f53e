"""Traces through the C ABI and through the Python binding: the same answers, line for line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable

import pytest
from tests.capi.library import ROOT
from tests.capi.partition import ENGINE
from tests.differential.generate import Generator
from tests.differential.profiles import PROFILES
from tests.differential.step import Operation

from sharecore.trace.driver import Driver
from sharecore.trace.engines import engine


def compare(operations: Iterable[Operation]) -> int:
    """How many operations were answered alike by both, deadlines and invariants included."""
    here, there = Driver(ENGINE), Driver(engine("rust"))
    count = 0
    for operation in operations:
        count += 1
        assert json.dumps(here.apply(operation)) == json.dumps(there.apply(operation)), operation
        assert here.partition.next_deadline_ms == there.partition.next_deadline_ms
        here.partition.check()
    return count


@pytest.mark.parametrize("profile", PROFILES)
def test_generated_traces(profile: str) -> None:
    for seed in (1, 2):
        assert compare(step.operation for step in Generator(seed, profile).run(150)) >= 150


def test_a_whole_recorded_trace() -> None:
    with gzip.open(ROOT / "tests/oracle/traces/steady.jsonl.gz", "rt") as lines:
        assert compare(map(json.loads, lines)) > 20_000
