"""When a failed job is retried, and when it is given up."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from sharecore.client.arguments import check_number, check_whole
from sharecore.errors import ConfigError

_EXPONENT_MAX = 64


@dataclass(frozen=True, slots=True)
class Retry:
    """Retries of a failed job in place: under its renewed lock, without using a delivery or a slot.

    When a delivery's retries end, `on_error` decides: the job is released for another delivery, or rejected.

    Args:
        first_seconds: the wait after the first failure.
        factor: growth factor of the waits.
        max_seconds: the longest wait.
        jitter: each wait grows by up to this fraction, at random.
        give_up_seconds: no more retries this long after the job's first failure in this delivery.
        attempts: the most calls in one delivery; None for no limit, 1 for no retries in place.
        max_waiting: jobs that may wait for a retry; at this number, fetching stops.

    Raises:
        ConfigError: a value out of range.
    """

    first_seconds: float = 1.0
    factor: float = 2.0
    max_seconds: float = 20.0
    jitter: float = 0.2
    give_up_seconds: float = 1800.0
    attempts: int | None = None
    max_waiting: int = 1000

    def __post_init__(self) -> None:
        for name in ("first_seconds", "factor", "max_seconds", "jitter", "give_up_seconds"):
            check_number(name, getattr(self, name))
        check_whole("max_waiting", self.max_waiting, 1)
        if self.attempts is not None:
            check_whole("attempts", self.attempts, 1)
        if not 0 <= self.first_seconds <= self.max_seconds or self.factor < 1:
            raise ConfigError(f"{self}: must have 0 <= first_seconds <= max_seconds and factor >= 1")
        if not 0 <= self.jitter <= 1 or self.give_up_seconds < 0:
            raise ConfigError(f"{self}: must have jitter from 0 to 1 and give_up_seconds >= 0")

    def wait_seconds(self, attempts: int) -> float:
        """Return the wait after this many failed attempts."""
        exponent = min(attempts - 1, _EXPONENT_MAX)
        wait = min(self.max_seconds, self.first_seconds * self.factor**exponent)
        return wait * random.uniform(1, 1 + self.jitter)

    def is_over(self, attempts: int, failing_seconds: float) -> bool:
        """Return whether a job is given up after this many attempts, this long after its first failure."""
        return attempts >= (self.attempts or math.inf) or failing_seconds >= self.give_up_seconds


NO_RETRY = Retry(attempts=1)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits in milliseconds: `first_ms`, growing by `factor`, at most `last_ms`.

    As a worker's `retry=`, it is the group's back-off: the broker redelivers a failed record after the wait.
    As `backoff=`, it is the wait of a `Retry`: the worker waits.

    Args:
        jitter: each wait grows by up to this fraction.

    Raises:
        ConfigError: a value out of range.
    """

    first_ms: int = 1_000
    factor: float = 2.0
    last_ms: int = 60_000
    jitter: float = 0.2

    def __post_init__(self) -> None:
        check_whole("first_ms", self.first_ms, 0)
        check_whole("last_ms", self.last_ms, 0)
        check_number("factor", self.factor)
        check_number("jitter", self.jitter)
        if self.first_ms > self.last_ms or self.factor < 1:
            raise ConfigError(f"{self}: must have 0 <= first_ms <= last_ms and factor >= 1")
        if not 0 <= self.jitter <= 1:
            raise ConfigError(f"{self}: must have jitter from 0 to 1")

    def as_retry(self) -> Retry:
        """Return the retry policy with these waits."""
        return Retry(
            first_seconds=self.first_ms / 1000,
            factor=self.factor,
            max_seconds=self.last_ms / 1000,
            jitter=self.jitter,
        )
