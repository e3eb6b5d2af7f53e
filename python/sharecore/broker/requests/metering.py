"""Accounting of requests against client quotas, and throttling."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter_ns
from typing import cast

from sharecore._core import Produced, ShareAnswer
from sharecore.broker.requests.context import RequestContext
from sharecore.protocol import ApiKey, Codec

_WITH_RECORDS = (ApiKey.FETCH, ApiKey.SHARE_FETCH)


class Meter:
    """Meter of one request, from frame to answer.

    Args:
        context: the request.
        frame_bytes: size of its frame.
    """

    __slots__ = ("_began", "_context", "_frame_bytes", "_spent_ns")

    def __init__(self, context: RequestContext, frame_bytes: int) -> None:
        self._context = context
        self._frame_bytes = frame_bytes
        self._spent_ns = 0
        self._began = perf_counter_ns()

    def rest(self) -> None:
        """Stop the clock: the answer is deferred until `resume`."""
        self._spent_ns += perf_counter_ns() - self._began

    def resume(self) -> None:
        """Restart the clock: the answer can continue."""
        self._began = perf_counter_ns()

    def settle(self, messages: Codec, message: object, parts: list[bytes]) -> list[bytes]:
        """Account for the request; return the answer with its throttle time.

        Args:
            messages: codec of the answer.
            message: the answer; None without one.
            parts: the encoded answer.
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
        sent = {"responses": []} if empty else cast("Mapping[str, object]", message)
        return messages.write_response(context.correlation_id, {**sent, "throttle_time_ms": waiting_ms})

    def _count(self, answer_bytes: int) -> tuple[int, bool]:
        """Return the client's throttle time, and whether to send an answer without records."""
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
