"""Requests of every API: on what the principals have rights to, on other things, and on missing ones."""

from __future__ import annotations

from collections.abc import Iterator

from tests.differential.access import edge_cases, group_cases, other_cases, topic_cases
from tests.differential.access.case import Case


def cases() -> Iterator[Case]:
    """All requests, in the order in which each principal sends them."""
    yield from topic_cases.records()
    yield from topic_cases.topics()
    yield from group_cases.groups()
    yield from group_cases.share_groups()
    yield from other_cases.transactions()
    yield from other_cases.cluster()
    yield from other_cases.configs()
    yield from other_cases.telemetry()
    yield from other_cases.state()
    yield from edge_cases.edges()
