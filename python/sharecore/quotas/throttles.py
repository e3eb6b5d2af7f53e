"""How long a client waits that has used more than its quota."""

from __future__ import annotations

from collections.abc import Callable

from sharecore.errors import ErrorCode, KafkaError
from sharecore.quotas.keys import CONSUMER, CONTROLLER, PRODUCER, REQUEST
from sharecore.quotas.limits import ClientQuotas, Scope
from sharecore.rates import Rate, Recent, TokenBucket, Window

_REMEMBERED_MAX = 10_000
_OF_REQUESTS = frozenset({PRODUCER, CONSUMER, REQUEST})


class Throttles:
    """What each client has used recently.

    Args:
        quotas: what each may take.
        window: what rates are measured over (quota.window.*).
        mutations: what fits in a bucket of changes (controller.quota.window.*).
        now_ms: the time, which never goes back.
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
        """Whether anybody has a quota at all; nothing is counted where nobody has."""
        self.timed = REQUEST in keys
        """Whether the time that requests take counts."""

    def produced(self, user: str, client_id: str, size: int) -> int:
        """Count the bytes of a Produce request; return milliseconds to wait, as the others do."""
        return self._count(PRODUCER, user, client_id, size)

    def consumed(self, user: str, client_id: str, size: int) -> int:
        """Count the bytes of an answer with records."""
        return self._count(CONSUMER, user, client_id, size)

    def not_consumed(self, user: str, client_id: str, size: int) -> None:
        """Undoes what `consumed` has counted for an answer that is not sent."""
        limit = self._quotas.limit(CONSUMER, user, client_id)
        if limit is not None:
            self._rates[CONSUMER, limit.scope].record(-size, self._now_ms())

    def room(self, user: str, client_id: str) -> int:
        """Bytes of records that one answer may carry at most: what the whole window gives."""
        limit = self._quotas.limit(CONSUMER, user, client_id) if self.on else None
        if limit is None:
            return 2**31 - 1
        seconds = (self._window.samples - 1) * self._window.sample_ms / 1000
        return min(int(limit.bound * seconds), 2**31 - 1)

    def spent(self, user: str, client_id: str, nanoseconds: int) -> int:
        """Count time; nobody waits longer for it than one sample."""
        waiting_ms = self._count(REQUEST, user, client_id, nanoseconds * 100 / 1e9)
        return min(waiting_ms, self._window.sample_ms)

    def mutations(self, user: str, client_id: str, *, strict: bool) -> Mutations:
        """Return what a request may make and delete.

        Args:
            user, client_id: whose request it is.
            strict: whether changes are refused beyond the quota, or only make the client wait.
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
    """One request's changes of topics.

    Args:
        bucket: what they are taken from; None where nothing limits them.
        bound: changes that come back a second.
        now_ms: the time.
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
        """How long the client has to wait."""

    def take(self, count: int) -> None:
        """Count partitions that come or go.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED, nothing is counted.
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
