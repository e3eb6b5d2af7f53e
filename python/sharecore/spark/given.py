"""Options in Spark's form: those of a source, and the client's after `kafka.`."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping

from sharecore.errors import ConfigError

_KAFKA = "kafka."


def split_options(
    given: Mapping[str, str], names: Collection[str], source: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the source's own options, and the client's settings; names are case-insensitive.

    Raises:
        ConfigError: a name that the source does not know.
    """
    known = {name.lower(): name for name in names}
    own: dict[str, str] = {}
    kafka: dict[str, str] = {}
    for name, value in given.items():
        if name.lower().startswith(_KAFKA):
            kafka[name[len(_KAFKA) :].lower()] = value
        elif name.lower() in known:
            own[known[name.lower()]] = value
        else:
            close = difflib.get_close_matches(name, [*names, "kafka.bootstrap.servers"], n=1)
            hint = f"; did you mean {close[0]}?" if close else "; the client's settings begin with kafka."
            raise ConfigError(f"{name} is no option of format {source}{hint}")
    return own, kafka
