"""`make assignors` for more of the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.differential.assignors.apache import ApacheAssignors
from tests.differential.assignors.check import check
from tests.differential.assignors.groups import Group, Member

LIVES = {"simple": 250, "uniform": 60, "range": 60}


@pytest.fixture(scope="module")
def apache() -> Iterator[ApacheAssignors]:
    with ApacheAssignors() as started:
        yield started


@pytest.mark.parametrize("assignor", LIVES)
def test_groups_are_assigned_as_apache_assigns_them(apache: ApacheAssignors, assignor: str) -> None:
    for seed in range(LIVES[assignor]):
        for group, difference in check(apache, assignor, seed):
            assert difference is None, f"--seed {seed} {assignor}: {group.as_json(assignor)}\n{difference}"


def test_apache_leaves_partitions_that_nobody_wants_with_members_of_mixed_groups(
    apache: ApacheAssignors,
) -> None:
    """What the comparison takes out; without it, the exception goes."""
    members = [Member("a", None, [1], {2: [0]}), Member("b", None, [3], {})]
    assert apache.assign("simple", Group({1: 1, 2: 1, 3: 1}, members))["a"] == {1: [0], 2: [0]}
