"""Assignments of share groups whose topics have weights."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from tests.unit.coordinator.test_share_groups import AT_ONCE, Bench, T, U

from sharecore.coordinator.share import weights


def test_members_of_a_group_with_weights_get_partitions_of_each_topic() -> None:
    """share.topic.weights: a fetch can be divided among topics only if its member has partitions of them."""
    bench = Bench(replace(AT_ONCE, share_topic_weights=("t:8",)))
    bench.topics.set("t", T, 2)
    bench.topics.set("u", U, 2)
    bench.join("a", topics=["t", "u"])
    bench.join("b", topics=["t", "u"])
    assert {member: set(target) for member, target in bench.group().target.items()} == {
        "a": {T, U},
        "b": {T, U},
    }


def test_weights_that_are_set_or_taken_away_change_the_assignment() -> None:
    bench = Bench()
    bench.topics.set("t", T, 1)
    bench.topics.set("u", U, 1)
    epochs = {member: bench.join(member, topics=["t", "u"]).member_epoch for member in "ab"}

    def beat() -> dict[str, set[UUID]]:
        for member in "abab":
            epochs[member] = bench.say(member, epochs[member]).member_epoch
        return {member: set(target) for member, target in bench.group().target.items()}

    divided = beat()
    assert divided["a"].isdisjoint(divided["b"])
    bench.config = replace(AT_ONCE, share_topic_weights=("t:8",))
    assert beat() == {"a": {T, U}, "b": {T, U}}
    epoch = bench.group().epoch
    bench.restart()
    assert beat() == {"a": {T, U}, "b": {T, U}}
    assert bench.group().epoch == epoch, "as it was before the restart"
    bench.config = AT_ONCE
    divided = beat()
    assert divided["a"].isdisjoint(divided["b"])
    bench.restart()
    bench.config = replace(AT_ONCE, share_topic_weights=("t:8",))
    assert beat() == {"a": {T, U}, "b": {T, U}}, "set while the broker was down"
    bench.restart()
    bench.config = AT_ONCE
    divided = beat()
    assert divided["a"].isdisjoint(divided["b"]), "taken away while the broker was down"
    epoch = bench.group().epoch
    bench.restart()
    assert beat() == divided
    assert bench.group().epoch == epoch


def test_weights_do_not_change_the_assignment_of_a_group_that_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(replace(AT_ONCE, share_topic_weights=("t:8",)))
    bench.topics.set("t", T, 1)
    bench.topics.set("u", U, 1)
    monkeypatch.setattr(weights, "_ASSIGNED_MAX", 3)
    epochs = {member: bench.join(member, topics=["t", "u"]).member_epoch for member in "ab"}

    def beat() -> dict[str, set[UUID]]:
        for member in "abab":
            epochs[member] = bench.say(member, epochs[member]).member_epoch
        return {member: set(target) for member, target in bench.group().target.items()}

    divided = beat()
    assert divided["a"].isdisjoint(divided["b"])
    monkeypatch.setattr(weights, "_ASSIGNED_MAX", 4)
    assert beat() == {"a": {T, U}, "b": {T, U}}
