"""The common part of DescribeGroups, ConsumerGroupDescribe and ShareGroupDescribe."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TypeVar

from sharecore.broker.requests.context import RequestContext
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

Described = TypeVar("Described")


def describe_each(
    context: RequestContext,
    group_ids: Sequence[str],
    describe: Callable[[str, Container[str]], Described],
) -> Steps[list[Described]]:
    """Return a description for each id, in the order of the request.

    Args:
        context: the request.
        group_ids: the ids; a repeated one is described once and takes no more memory.
        describe: describes a group, given the ids that the client may describe.
    """
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.GROUP, group_ids)
    described: dict[str, Described] = {}
    for group_id in group_ids:
        if group_id not in described:
            described[group_id] = describe(group_id, seen)
        yield
    return [described[group_id] for group_id in group_ids]
