"""Groups of the tier beside those of the cluster: requests about share groups are answered here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar, cast

from sharecore._core import WrittenAnswer
from sharecore.broker.handlers import SERVED
from sharecore.broker.requests.context import RequestContext
from sharecore.coordinator.share.group import ShareGroup
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey
from sharecore.tier.forward.forwarder import RequestForwarder
from sharecore.tier.forward.shapes import Fields, Keys, Message, field_of, list_of
from sharecore.waiting import Steps

Request = TypeVar("Request", bound=Message)
Handle = Callable[[RequestForwarder, RequestContext, Request], Awaitable[Mapping[str, object] | None]]
"""Forwards a request to the cluster; None if the client wants no response."""


async def own_answer(context: RequestContext, request: Message) -> Fields:
    """Return the node's own response, as if there were no upstream cluster."""
    result = SERVED[ApiKey(context.api_key)].load()(context, request)
    if isinstance(result, Awaitable):
        result = await result
    return cast("Fields", result.message if isinstance(result, WrittenAnswer) else result)


def _is_ours(context: RequestContext, group_id: str) -> bool:
    return isinstance(context.broker.groups.registry.get(group_id), ShareGroup)


def _owners(context: RequestContext, group_ids: Iterable[str]) -> Steps[tuple[list[str], list[str]]]:
    """Return the groups of the tier, and those of the cluster."""
    ours: list[str] = []
    theirs: list[str] = []
    for group_id in group_ids:
        (ours if _is_ours(context, group_id) else theirs).append(group_id)
        yield
    return ours, theirs


def about_one(route: Handle[Request]) -> Handle[Request]:
    """Handle a request about one group."""

    async def handle(
        forwarder: RequestForwarder, context: RequestContext, request: Request
    ) -> Mapping[str, object] | None:
        ours = _is_ours(context, field_of(request, "group_id", str))
        return await (own_answer(context, request) if ours else route(forwarder, context, request))

    return handle


def about_many(route: Handle[Message], keys: Keys) -> Handle[Message]:
    """Handle a request about any number of groups."""

    async def handle(
        forwarder: RequestForwarder, context: RequestContext, request: Message
    ) -> Mapping[str, object] | None:
        ours, theirs = await context.finish(_owners(context, keys.read(request)))
        if not ours:
            return await route(forwarder, context, request)
        own = await own_answer(context, await context.finish(keys.select(request, ours)))
        if not theirs:
            return own
        answered = await route(forwarder, context, await context.finish(keys.select(request, theirs)))
        assert answered is not None
        answers = await context.finish(keys.answers(answered)) | await context.finish(keys.answers(own))
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        return {**answered, **await context.finish(keys.join(keys.named(request), answers, missing))}

    return handle


def listing(route: Handle[Message]) -> Handle[Message]:
    """Handle ListGroups."""

    async def handle(
        forwarder: RequestForwarder, context: RequestContext, request: Message
    ) -> Mapping[str, object] | None:
        own = await own_answer(context, request)
        answered = await route(forwarder, context, request)
        assert answered is not None
        return {**answered, "groups": [*list_of(own, "groups"), *list_of(answered, "groups")]}

    return handle
