"""Throttle times of clients that exceed their quotas."""

from __future__ import annotations

from collections.abc import Callable

from sharecore.errors import ErrorCode, KafkaError
from sharecore.quotas.keys import CONSUMER, CONTROLLER, PRODUCER, REQUEST
from sharecore.quotas.limits import ClientQuotas, Scope
from sharecore.rates import Rate, Recent, TokenBucket, Window

_REMEMBERED_MAX = 10_000
_OF_REQUESTS = frozenset({PRODUCER, CONSUMER, REQUEST})


class Throttles:
    """Recent usage of each client.

    Args:
        quotas: the quotas.
        window: window of rate measurements (quota.window.*).
        mutations: capacity of a mutation bucket (controller.quota.window.*).
        now_ms: returns the monotonic time.
    """

    def __init__(
        self, quotas: ClientQuotas, window: Window, mutations: Window, now_ms: Callable[[], float]
    ) -> None:
        self._quotas = quotas
        self._window = window
        self._now_ms = now_ms
        self._rates: Recent[tuple[str, Scope], Rate] = Recent(lambda: Rate(window), _REMEMBERED_MAX)
        self._buckets: Recent[Scope, TokenBucket] = Recent(lambda: TokenBucket(mutations), _REMEMBERED_MAX)
        self._changed()
        quotas.on_change(self._changed)

    def _changed(self) -> None:
        keys = self._quotas.keys
        self.on = bool(keys & _OF_REQUESTS) or CONTROLLER in keys
        """Whether any quota exists; otherwise nothing is counted."""
        self.timed = REQUEST in keys
        """Whether request time is measured."""

    def produced(self, user: str, client_id: str, size: int) -> int:
        """Count the bytes of a Produce request; return the throttle time in ms."""
        return self._count(PRODUCER, user, client_id, size)

    def consumed(self, user: str, client_id: str, size: int) -> int:
        """Count the bytes of an answer with records; return the throttle time in ms."""
        return self._count(CONSUMER, user, client_id, size)

    def not_consumed(self, user: str, client_id: str, size: int) -> None:
        """Undo `consumed` for an answer that is not sent."""
        limit = self._quotas.limit(CONSUMER, user, client_id)
        if limit is not None:
            self._rates[CONSUMER, limit.scope].record(-size, self._now_ms())

    def room(self, user: str, client_id: str) -> int:
        """Return the maximum record bytes of an answer: the quota of a whole window."""
        limit = self._quotas.limit(CONSUMER, user, client_id) if self.on else None
        if limit is None:
            return 2**31 - 1
        seconds = (self._window.samples - 1) * self._window.sample_ms / 1000
        return min(int(limit.bound * seconds), 2**31 - 1)

    def spent(self, user: str, client_id: str, nanoseconds: int) -> int:
        """Count request time; return the throttle time in ms, at most one sample."""
        waiting_ms = self._count(REQUEST, user, client_id, nanoseconds * 100 / 1e9)
        return min(waiting_ms, self._window.sample_ms)

    def mutations(self, user: str, client_id: str, *, strict: bool) -> Mutations:
        """Return the budget for a request's creations and deletions.

        Args:
            user, client_id: the client.
            strict: whether changes beyond the quota are refused; otherwise they only throttle the client.
        """
        limit = self._quotas.limit(CONTROLLER, user, client_id)
        if limit is None:
            return Mutations(None, 0, self._now_ms, strict=strict)
        return Mutations(self._buckets[limit.scope], limit.bound, self._now_ms, strict=strict)

    def _count(self, key: str, user: str, client_id: str, amount: float) -> int:
        limit = self._quotas.limit(key, user, client_id)
        if limit is None:
            return 0
        now_ms = self._now_ms()
        rate = self._rates[key, limit.scope]
        rate.record(amount, now_ms)
        return rate.throttle_ms(limit.bound, now_ms)


class Mutations:
    """Topic changes of one request.

    Args:
        bucket: the token bucket; None without a quota.
        bound: tokens refilled per second.
        now_ms: returns the time.
        strict: whether changes are refused while the bucket is overdrawn.
    """

    def __init__(
        self, bucket: TokenBucket | None, bound: float, now_ms: Callable[[], float], *, strict: bool
    ) -> None:
        self._bucket = bucket
        self._bound = bound
        self._now_ms = now_ms
        self._strict = strict
        self.throttle_ms = 0
        """Throttle time of the client."""

    def take(self, count: int) -> None:
        """Count created or deleted partitions.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED; nothing is counted.
        """
        bucket = self._bucket
        if bucket is None:
            return
        now_ms = self._now_ms()
        if self._strict:
            self.throttle_ms = max(self.throttle_ms, bucket.throttle_ms(self._bound, now_ms))
            if self.throttle_ms:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
            bucket.take(count, self._bound, now_ms)
        else:
            bucket.take(count, self._bound, now_ms)
            self.throttle_ms = max(self.throttle_ms, bucket.throttle_ms(self._bound, now_ms))
