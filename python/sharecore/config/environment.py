"""Settings out of the environment: `SHARECORE_LOG_DIRS` sets `log.dirs`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sharecore.config.broker import broker_keys

PREFIX = "SHARECORE_"
_OWN = "sharecore."


def variable_of(name: str) -> str:
    """The variable that sets a key of the broker's."""
    return PREFIX + name.removeprefix(_OWN).replace(".", "_").upper()


@cache
def _variables() -> dict[str, str]:
    return {variable_of(name): name for name in broker_keys()}


def settings_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The broker's settings among the variables, by Kafka's names; other variables are passed over."""
    return {name: environment[variable] for variable, name in _variables().items() if variable in environment}
