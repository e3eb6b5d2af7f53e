"""Requests about several groups or transactional ids: each goes to its own coordinator upstream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sharecore.broker.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.tier.forward.coordinators import MOVED
from sharecore.tier.forward.forwarder import RequestForwarder, code_of, throttle_of
from sharecore.tier.forward.shapes import Keys, renamed

CheckKey = Callable[[RequestForwarder, RequestContext, str], None]
"""Raises KafkaError unless the client may ask for a key."""
Tell = Callable[[RequestForwarder, RequestContext, Any, Any], Any]
"""Makes of what was asked of a key, and of the coordinator's answer, what the client is told."""


@dataclass(frozen=True, slots=True)
class ByKeys:
    """An API whose requests name any number of groups or transactional ids.

    Args:
        kind: `GROUP` or `TRANSACTION`.
        keys: how requests and answers name them.
        check: whether the client may.
        tell: changes what a coordinator says of a key.
    """

    kind: int
    keys: Keys
    check: CheckKey
    tell: Tell | None = None

    async def handle(
        self, forwarder: RequestForwarder, context: RequestContext, request: Any
    ) -> dict[str, Any]:
        """Forward a request."""
        entries = self.keys.entries(request)
        keys = list(entries)
        answers: dict[str, list[Any]] = {}
        by_node = await self._split(forwarder, context, keys, answers)
        sent = [
            (
                node,
                some,
                forwarder.send(context, node, renamed(self.keys.select(request, some), forwarder.own.shown)),
            )
            for node, some in by_node.items()
        ]
        throttle_ms = 0
        for _, some, answer in sent:
            try:
                response = renamed(await answer, forwarder.own.named)
            except KafkaError as error:
                forwarder.upstream.stale()
                for key in some:
                    self._failed(forwarder, key, error, answers)
                continue
            throttle_ms = max(throttle_ms, throttle_of(response))
            for key, told in self.keys.answers(response).items():
                if any(getattr(each, self.keys.error) in MOVED for each in told):
                    forwarder.coordinators.forget(self.kind, key)
                if self.tell is not None:
                    asked = entries.get(key, [None])
                    told = [
                        self.tell(forwarder, context, asked[min(number, len(asked) - 1)], each)
                        for number, each in enumerate(told)
                    ]
                answers[key] = told
        missing = ErrorCode.UNKNOWN_SERVER_ERROR
        return self.keys.join(self.keys.named(request), answers, missing) | {"throttle_time_ms": throttle_ms}

    async def _split(
        self,
        forwarder: RequestForwarder,
        context: RequestContext,
        keys: Sequence[str],
        answers: dict[str, list[Any]],
    ) -> dict[int, list[str]]:
        """Find the coordinators of what the client may ask for."""
        allowed: list[str] = []
        for key in keys:
            try:
                self.check(forwarder, context, key)
                allowed.append(key)
            except KafkaError as error:  # noqa: PERF203
                answers[key] = [self.keys.refused(key, error.code)]
        finding = (forwarder.coordinators.find(self.kind, key) for key in allowed)
        found = await asyncio.gather(*finding, return_exceptions=True)
        by_node: dict[int, list[str]] = {}
        for key, node in zip(allowed, found, strict=True):
            if isinstance(node, KafkaError):
                self._failed(forwarder, key, node, answers)
            elif isinstance(node, BaseException):
                raise node
            else:
                by_node.setdefault(node, []).append(key)
        return by_node

    def _failed(
        self, forwarder: RequestForwarder, key: str, error: KafkaError, answers: dict[str, list[Any]]
    ) -> None:
        forwarder.coordinators.forget(self.kind, key)
        code = code_of(error, unsent=ErrorCode.NOT_COORDINATOR, sent=ErrorCode.NOT_COORDINATOR)
        answers[key] = [self.keys.refused(key, code)]
