"""How long a member works on a record: distributions that a command line can name."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from sharecore.errors import ConfigError

Draw = Callable[[random.Random], float]
"""Milliseconds for one record."""

_FORMS = "fixed:MS, exponential:MS, uniform:MS:MS or lognormal:MEDIAN_MS:SIGMA"


def handling_time(text: str) -> Draw:
    """Return the distribution of a text such as `exponential:20`.

    Raises:
        ConfigError: it names none.
    """
    kind, _, rest = text.strip().partition(":")
    try:
        numbers = [float(number) for number in rest.split(":")]
    except ValueError:
        raise _none(text) from None
    if any(not math.isfinite(number) or number < 0 for number in numbers):
        raise _none(text)
    match kind, numbers:
        case "fixed", [ms]:
            return lambda rng: ms
        case "exponential", [mean] if mean > 0:
            return lambda rng: rng.expovariate(1 / mean)
        case "uniform", [low, high] if low <= high:
            return lambda rng: rng.uniform(low, high)
        case "lognormal", [median, sigma] if median > 0:
            return lambda rng: rng.lognormvariate(math.log(median), sigma)
    raise _none(text)


def _none(text: str) -> ConfigError:
    return ConfigError(f"unknown handling-time distribution {text!r}: {_FORMS}")
