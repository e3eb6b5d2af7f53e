"""Rates over a sliding window and buckets of tokens, as Kafka counts quotas. Time is an argument."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

_WAIT_MS_MAX = 2**31 - 1

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Window:
    """What a rate is measured over.

    Args:
        samples: parts of the window, the one that is being filled among them (quota.window.num).
        sample_ms: length of a part (quota.window.size.seconds).
    """

    samples: int = 11
    sample_ms: int = 1000


class Rate:
    """An amount a second, over the last samples; of a window that has just begun the whole is counted.

    Args:
        window: what it is measured over.
    """

    __slots__ = ("_samples", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._samples: deque[list[float]] = deque()
        """Of each sample its start, its last record and its sum, the oldest first."""

    def record(self, amount: float, now_ms: float) -> None:
        """Count an amount."""
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self._window.sample_ms:
            samples.append([now_ms, now_ms, amount])
            if len(samples) > self._window.samples + 1:
                samples.popleft()
        else:
            samples[-1][1] = now_ms
            samples[-1][2] += amount

    def measure(self, now_ms: float) -> float:
        """Return the amount a second."""
        self._forget(now_ms)
        return sum(sample[2] for sample in self._samples) * 1000 / self._elapsed_ms(now_ms)

    def throttle_ms(self, bound: float, now_ms: float) -> int:
        """How long nothing may be counted until the rate is back at `bound`; 0 while it is not above."""
        value = self.measure(now_ms)
        if value <= bound:
            return 0
        return _whole_ms((value - bound) / bound * self._elapsed_ms(now_ms))

    def _forget(self, now_ms: float) -> None:
        samples, window = self._samples, self._window
        while samples and now_ms - samples[0][1] >= window.samples * window.sample_ms:
            samples.popleft()

    def _elapsed_ms(self, now_ms: float) -> float:
        window = self._window
        elapsed = now_ms - self._samples[0][0] if self._samples else 0
        missing = window.samples - 1 - int(elapsed // window.sample_ms)
        return max(elapsed + max(missing, 0) * window.sample_ms, 1)


class TokenBucket:
    """Tokens that refill at a rate, up to a whole window's; the bucket may be overdrawn.

    Args:
        window: how much fits.
    """

    __slots__ = ("_at_ms", "_tokens", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._tokens = 0.0
        self._at_ms = float("-inf")

    def take(self, count: float, bound: float, now_ms: float) -> None:
        """Take tokens, whether they are there or not."""
        self._refill(bound, now_ms)
        self._tokens -= count

    def throttle_ms(self, bound: float, now_ms: float) -> int:
        """How long until nothing is overdrawn, at `bound` tokens a second."""
        self._refill(bound, now_ms)
        return _whole_ms(-self._tokens * 1000 / bound)

    def _burst(self, bound: float) -> float:
        return self._window.samples * self._window.sample_ms / 1000 * bound

    def _refill(self, bound: float, now_ms: float) -> None:
        self._tokens = min(self._burst(bound), self._tokens + bound * (now_ms - self._at_ms) / 1000)
        self._at_ms = now_ms


def _whole_ms(milliseconds: float) -> int:
    """Return a wait as answers can carry it: a quota may be so small that it would be infinite."""
    return int(min(max(milliseconds, 0.0) + 0.5, _WAIT_MS_MAX))


class Recent(Generic[Key, Value]):
    """Values by key, created on demand; the least recently used one is dropped beyond a limit.

    Args:
        make: makes a value.
        size_max: how many are remembered.
    """

    __slots__ = ("_make", "_size_max", "_values")

    def __init__(self, make: Callable[[], Value], size_max: int) -> None:
        self._make = make
        self._size_max = size_max
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, key: Key) -> Value:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
            return value
        if len(self._values) >= self._size_max:
            self._values.popitem(last=False)
        value = self._values[key] = self._make()
        return value
