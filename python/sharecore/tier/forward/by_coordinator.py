"""Requests about one group or one transaction: sent to its upstream coordinator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import ResourceType
from sharecore.tier.forward.coordinators import MOVED
from sharecore.tier.forward.forwarder import RequestForwarder, code_of
from sharecore.tier.forward.shapes import Answer, Entry, Fields, Key, Message, Place, Places, renamed
from sharecore.upstream.cluster import GROUP
from sharecore.waiting import Steps

Request_contra = TypeVar("Request_contra", bound=Message, contravariant=True)
Response_contra = TypeVar("Response_contra", bound=Message, contravariant=True)
Check = Callable[[RequestForwarder, RequestContext, Request_contra], None]
"""Raises KafkaError unless the client has the required permission."""


@dataclass(frozen=True)  # generic classes with slots cannot be called with their types
class ByCoordinator(Generic[Request_contra, Response_contra]):
    """An API served by a coordinator.

    Args:
        kind: `GROUP` or `TRANSACTION`.
        key: the field with the group or the transactional ID.
        check: checks the client's permission.
        wait: the field with the coordinator's maximum wait, or a number of milliseconds.
        places: its partitions, if the response has an error for each.
        right: the operation on their topics that the client must be allowed.
        writes: whether it changes the partitions' topics, or makes a transaction change them.
        whole: whether the response also has a field for an error of the whole request.
        all_or_none: whether one refused partition cancels all others.
        adapt: adapts the coordinator's response.
        refuse: builds an error response that is more than a code.
    """

    kind: int
    key: str
    check: Check[Request_contra]
    wait: str | int = 0
    places: Places | None = None
    right: int = 0
    writes: bool = False
    whole: bool = False
    all_or_none: bool = False
    adapt: (
        Callable[[RequestForwarder, RequestContext, Request_contra, Response_contra], Steps[Message]] | None
    ) = None
    refuse: Callable[[RequestContext, Request_contra, ErrorCode], Mapping[str, object]] | None = None

    async def handle(
        self, forwarder: RequestForwarder, context: RequestContext, request: Request_contra
    ) -> Mapping[str, object]:
        """Forward a request."""
        key = getattr(request, self.key)
        try:
            self.check(forwarder, context, request)
            refused = await context.finish(self._refused(forwarder, context, request))
            if refused and self.all_or_none:
                untried = ErrorCode.OPERATION_NOT_ATTEMPTED
                missing = await context.finish(self._missing(context, request))
                return await context.finish(self._join(context, request, missing | refused, untried))
            message: Message = request
            if refused:
                message = await context.finish(self._allowed(context, request, refused))
            response = await self._ask(forwarder, context, key, message)
        except KafkaError as error:
            code = code_of(error, unsent=ErrorCode.NOT_COORDINATOR, sent=ErrorCode.NOT_COORDINATOR)
            if self.refuse is not None:
                return self.refuse(context, request, code)
            if self.places is None or self.whole:
                raise KafkaError(code, error.message) from error
            return await context.finish(self.places.refuse(request, context.api_version, code))
        if await context.finish(self._has_moved(context, response)):
            forwarder.coordinators.forget(self.kind, key)
        if self.adapt is not None:
            received = cast("Response_contra", response)  # a coordinator answers the API that it was asked
            response = await context.finish(self.adapt(forwarder, context, request, received))
        answered: Fields = response._asdict()
        if refused and self.places is not None and not answered.get("error_code"):
            answers = await context.finish(self._answers(context, response))
            missing_code = ErrorCode.UNKNOWN_SERVER_ERROR
            answered |= await context.finish(self._join(context, request, answers | refused, missing_code))
        return answered

    async def _ask(
        self, forwarder: RequestForwarder, context: RequestContext, key: str | None, message: Message
    ) -> Message:
        node = await self._find(forwarder, context, key)
        wait_ms = getattr(message, self.wait, 0) if isinstance(self.wait, str) else self.wait
        try:
            asked = renamed(message, forwarder.own.shown)
            return renamed(await forwarder.send(context, node, asked, wait_ms=wait_ms), forwarder.own.named)
        except KafkaError:
            if key is not None:
                forwarder.coordinators.forget(self.kind, key)
            forwarder.upstream.stale()
            raise

    async def _find(self, forwarder: RequestForwarder, context: RequestContext, key: str | None) -> int:
        # an idempotent, non-transactional producer has no coordinator
        return (
            forwarder.any_node(context) if key is None else await forwarder.coordinators.find(self.kind, key)
        )

    def _refused(
        self, forwarder: RequestForwarder, context: RequestContext, request: Message
    ) -> Steps[dict[Place, Answer]]:
        """Return partitions of topics for which the client lacks permission or access."""
        refused: dict[Place, Answer] = {}
        if self.places is None:
            return refused
        keys = (key for key, _ in self.places.read(request, context.api_version))
        allowed = yield from forwarder.allowed_topics(context, keys, self.right)
        for key, parts in self.places.read(request, context.api_version):
            yield
            try:
                forwarder.topic(context, key, allowed, writes=self.writes, must_exist=False)
            except KafkaError as error:
                for index, _ in parts:
                    refused[key, index] = self.places.refused(index, error.code)
                    yield
        return refused

    def _missing(self, context: RequestContext, request: Message) -> Steps[dict[Place, Answer]]:
        """Return partitions that do not exist."""
        assert self.places is not None
        topics, code = context.broker.topics, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        missing: dict[Place, Answer] = {}
        for key, parts in self.places.read(request, context.api_version):
            for index, _ in parts:
                if isinstance(key, str) and topics.log(key, index) is None:
                    missing[key, index] = self.places.refused(index, code)
                yield
        return missing

    def _allowed(
        self, context: RequestContext, request: Message, refused: dict[Place, Answer]
    ) -> Steps[Message]:
        assert self.places is not None
        chosen: dict[Key, list[Entry]] = {}
        for key, parts in self.places.read(request, context.api_version):
            yield
            allowed = [part for index, part in parts if (key, index) not in refused]
            if allowed:
                chosen.setdefault(key, []).extend(allowed)
        return (yield from self.places.select(request, context.api_version, chosen))

    def _join(
        self, context: RequestContext, request: Message, answers: dict[Place, Answer], missing: int
    ) -> Steps[Fields]:
        assert self.places is not None
        return self.places.join(request, context.api_version, answers, missing)

    def _answers(self, context: RequestContext, response: Message) -> Steps[dict[Place, Answer]]:
        assert self.places is not None
        answers: dict[Place, Answer] = {}
        for place, part in self.places.answers(response, context.api_version):
            answers[place] = part
            yield
        return answers

    def _has_moved(self, context: RequestContext, response: Message) -> Steps[bool]:
        """Return whether a response says that the coordinator has moved."""
        if hasattr(response, "error_code"):
            return response.error_code in MOVED
        if self.places is not None:
            for _, part in self.places.answers(response, context.api_version):
                if getattr(part, self.places.error) in MOVED:
                    return True
                yield
        return False


def group(right: int, field: str = "group_id") -> Check[Message]:
    """Check the permission on a group."""
    return _named(right, ResourceType.GROUP, field)


def transactional_id(right: int, field: str = "transactional_id") -> Check[Message]:
    """Check the permission on a transactional ID."""
    return _named(right, ResourceType.TRANSACTIONAL_ID, field)


def _named(right: int, resource_type: int, field: str) -> Check[Message]:
    return lambda forwarder, context, request: forwarder.check(
        context, right, resource_type, getattr(request, field)
    )


def both(first: Check[Message], second: Check[Message]) -> Check[Message]:
    """Check two permissions, in this order."""

    def check(forwarder: RequestForwarder, context: RequestContext, request: Message) -> None:
        first(forwarder, context, request)
        second(forwarder, context, request)

    return check


__all__ = ["GROUP", "ByCoordinator", "both", "group", "transactional_id"]
