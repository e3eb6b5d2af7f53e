"""Requests about several groups or transactional IDs: each sent to its own upstream coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from sharecore.broker.requests.context import REFUSALS, RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import ResourceType
from sharecore.tier.forward.coordinators import MOVED
from sharecore.tier.forward.forwarder import RequestForwarder, code_of, throttle_of
from sharecore.tier.forward.shapes import Answer, Fields, Keys, Message, renamed
from sharecore.upstream.cluster import GROUP
from sharecore.waiting import Steps

_FOUND_AT_ONCE = 256
"""Coordinators looked up together."""
_ASKED_AT_ONCE = 2_000
"""Keys per request: a response is processed in one turn of the loop, which blocks other clients."""
Asked_contra = TypeVar("Asked_contra", contravariant=True)
Answered_contra = TypeVar("Answered_contra", bound=Message, contravariant=True)
Adapt = Callable[[RequestForwarder, RequestContext, Asked_contra, Answered_contra], Steps[Answer]]
"""Builds the client's response for a key from its request and the coordinator's response."""


@dataclass(frozen=True)  # generic classes with slots cannot be called with their types
class ByKeys(Generic[Asked_contra, Answered_contra]):
    """An API whose requests contain any number of groups or transactional IDs.

    Args:
        kind: `GROUP` or `TRANSACTION`.
        keys: their fields in requests and responses.
        right: the operation on each that the client must be allowed.
        adapt: adapts a coordinator's response for a key.
    """

    kind: int
    keys: Keys
    right: int
    adapt: Adapt[Asked_contra, Answered_contra] | None = None

    async def handle(self, forwarder: RequestForwarder, context: RequestContext, request: Message) -> Fields:
        """Forward a request."""
        entries = await context.finish(self.keys.entries(request))
        answers: dict[str, list[Answer]] = {}
        by_node = await self._split(forwarder, context, list(entries), answers)
        sent = []
        for node, keys in by_node.items():
            for first in range(0, len(keys), _ASKED_AT_ONCE):
                some = keys[first : first + _ASKED_AT_ONCE]
                part = request._replace(**{self.keys.asked: [each for key in some for each in entries[key]]})
                sent.append((some, forwarder.send(context, node, renamed(part, forwarder.own.shown))))
        throttle_ms, pace = 0, context.broker.turns.pace()
        for some, answer in sent:
            try:
                response = renamed(await answer, forwarder.own.named)
            except KafkaError as error:
                forwarder.upstream.stale()
                for key in some:
                    self._failed(forwarder, key, error, answers)
                    await pace.step()
                continue
            throttle_ms = max(throttle_ms, throttle_of(response))
            for key, answered in (await context.finish(self.keys.answers(response))).items():
                await pace.step()
                if any(getattr(each, self.keys.error) in MOVED for each in answered):
                    forwarder.coordinators.forget(self.kind, key)
                if self.adapt is not None:
                    asked = entries.get(key, [None])
                    for number, each in enumerate(answered):
                        entry = cast("Asked_contra", asked[min(number, len(asked) - 1)])
                        steps = self.adapt(forwarder, context, entry, cast("Answered_contra", each))
                        answered[number] = await context.finish(steps)
                answers[key] = answered
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        whole = await context.finish(self.keys.join(self.keys.named(request), answers, missing))
        return whole | {"throttle_time_ms": throttle_ms}

    async def _split(
        self,
        forwarder: RequestForwarder,
        context: RequestContext,
        keys: Sequence[str],
        answers: dict[str, list[Answer]],
    ) -> dict[int, list[str]]:
        """Locate the coordinators of the allowed keys."""
        allowed = await context.finish(self._allowed(forwarder, context, keys, answers))
        by_node: dict[int, list[str]] = {}
        for first in range(0, len(allowed), _FOUND_AT_ONCE):
            some = allowed[first : first + _FOUND_AT_ONCE]
            finding = (forwarder.coordinators.find(self.kind, key) for key in some)
            found = await asyncio.gather(*finding, return_exceptions=True)
            for key, node in zip(some, found, strict=True):
                if isinstance(node, KafkaError):
                    self._failed(forwarder, key, node, answers)
                elif isinstance(node, BaseException):
                    raise node
                else:
                    by_node.setdefault(node, []).append(key)
        return by_node

    def _allowed(
        self,
        forwarder: RequestForwarder,
        context: RequestContext,
        keys: Sequence[str],
        answers: dict[str, list[Answer]],
    ) -> Steps[list[str]]:
        """Return the allowed keys, and answer the others."""
        kind = ResourceType.GROUP if self.kind == GROUP else ResourceType.TRANSACTIONAL_ID
        allowed = yield from context.may_each(self.right, kind, keys)
        asked: list[str] = []
        for key in keys:
            if key not in allowed or forwarder.own.has(kind, key):
                answers[key] = [self.keys.refused(key, REFUSALS[kind])]
            else:
                asked.append(key)
            yield
        return asked

    def _failed(
        self, forwarder: RequestForwarder, key: str, error: KafkaError, answers: dict[str, list[Answer]]
    ) -> None:
        forwarder.coordinators.forget(self.kind, key)
        code = code_of(error, unsent=ErrorCode.NOT_COORDINATOR, sent=ErrorCode.NOT_COORDINATOR)
        answers[key] = [self.keys.refused(key, code)]
