"""Counts what a request used against its client's quotas, and slows down a client that is over them."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from sharecore._core import Produced, ShareAnswer
from sharecore.broker.context import RequestContext
from sharecore.protocol import ApiKey, Codec

_WITH_RECORDS = (ApiKey.FETCH, ApiKey.SHARE_FETCH)


class Meter:
    """One request, from its frame to its answer.

    Args:
        context: whose request it is.
        frame_bytes: its size.
    """

    __slots__ = ("_began", "_context", "_frame_bytes", "_spent_ns")

    def __init__(self, context: RequestContext, frame_bytes: int) -> None:
        self._context = context
        self._frame_bytes = frame_bytes
        self._spent_ns = 0
        self._began = perf_counter_ns()

    def rest(self) -> None:
        """The answer comes later: until `resume` nothing is done for it."""
        self._spent_ns += perf_counter_ns() - self._began

    def resume(self) -> None:
        """What the answer has waited for is there."""
        self._began = perf_counter_ns()

    def settle(self, messages: Codec, message: Any, parts: list[bytes]) -> list[bytes]:
        """Count the request; return the answer to send, which says how long the client has to wait.

        Args:
            messages: what writes the answer.
            message: the answer; None where none is sent.
            parts: the same in bytes.
        """
        context = self._context
        asked_ms = message.get("throttle_time_ms", 0) if isinstance(message, dict) else 0
        waiting_ms, empty = self._count(sum(map(len, parts)) - 4)
        waiting_ms = max(waiting_ms, asked_ms)
        if not waiting_ms:
            return parts
        context.connection.throttle(waiting_ms)
        if message is None:
            return parts
        if isinstance(message, (Produced, ShareAnswer)):
            return messages.write_response(context.correlation_id, message.throttled(waiting_ms))
        told = {"responses": []} if empty else message
        return messages.write_response(context.correlation_id, {**told, "throttle_time_ms": waiting_ms})

    def _count(self, answer_bytes: int) -> tuple[int, bool]:
        """How long the client has to wait, and whether it gets no records this time."""
        self.rest()
        context, throttles = self._context, self._context.broker.throttles
        user, client_id = context.connection.principal.name, context.client_id or ""
        waiting_ms = throttles.spent(user, client_id, self._spent_ns) if throttles.timed else 0
        if context.api_key == ApiKey.PRODUCE:
            waiting_ms = max(waiting_ms, throttles.produced(user, client_id, self._frame_bytes))
        elif context.api_key in _WITH_RECORDS:
            waiting_ms = max(waiting_ms, throttles.consumed(user, client_id, answer_bytes))
            if waiting_ms and context.api_key == ApiKey.FETCH:
                throttles.not_consumed(user, client_id, answer_bytes)
                return waiting_ms, True
        return waiting_ms, False
