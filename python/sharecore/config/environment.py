"""Settings out of the environment: `SHARECORE_LOG_DIRS` sets `log.dirs`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache

from sharecore.config.broker import broker_keys
from sharecore.config.unserved import unserved_keys
from sharecore.errors import ConfigError

PREFIX = "SHARECORE_"
_OWN = "sharecore."
_COMMANDS = frozenset({"SHARECORE_BOOTSTRAP_SERVER"})
"""Variables that commands read themselves."""
# Kubernetes sets these in every pod for a service that is named sharecore, or sharecore-something
_SERVICE = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT$|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?$")


def variable_of(name: str) -> str:
    """Return the variable that sets a key of the broker's."""
    return PREFIX + name.removeprefix(_OWN).replace(".", "_").upper()


@cache
def _variables() -> dict[str, str]:
    # Kafka's other settings pass: what reads the values warns that they have no effect, or refuses them
    return {variable_of(name): name for name in [*unserved_keys(), *broker_keys()]}


def settings_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the broker's settings among the variables, by Kafka's names.

    Raises:
        ConfigError: a variable begins with SHARECORE_ and sets nothing.
    """
    known = _variables().keys() | _COMMANDS
    for variable in sorted(environment):
        if variable.startswith(PREFIX) and variable not in known and not _SERVICE.search(variable):
            names = [name.removeprefix(PREFIX) for name in known]
            near = next(iter(difflib.get_close_matches(variable.removeprefix(PREFIX), names, 1)), None)
            hint = f"did you mean {PREFIX}{near}?" if near else "unset it"
            raise ConfigError(f"the environment variable {variable} sets no setting of this broker; {hint}")
    return {name: environment[variable] for variable, name in _variables().items() if variable in environment}
