"""Initial SCRAM users of a broker, as in `kafka-storage format --add-scram`."""

from __future__ import annotations

import re
from typing import NamedTuple

from sharecore.errors import ConfigError

_ENTRY = re.compile(r"(?P<mechanism>SCRAM-SHA-(?:256|512))=\[(?P<options>.*)\]", re.DOTALL)
_OPTIONS = ("name", "password", "iterations")
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384


class FirstUser(NamedTuple):
    """A user with a password, which is not stored."""

    mechanism: str
    name: str
    password: str
    iterations: int

    def __repr__(self) -> str:
        return f"FirstUser({self.mechanism}, {self.name!r})"


def parse_add_scram(text: str) -> FirstUser:
    """Parse `SCRAM-SHA-256=[name=alice,password=secret]`, optionally with `iterations=`.

    Raises:
        ConfigError: it is invalid; the message does not contain the password.
    """
    match = _ENTRY.fullmatch(text.strip())
    options = _split(match["options"]) if match is not None else {}
    if match is None or not options.get("name") or not options.get("password"):
        raise ConfigError("--add-scram: not readable; allowed: SCRAM-SHA-256=[name=USER,password=SECRET]")
    iterations = options.get("iterations", str(ITERATIONS_MIN))
    if not iterations.isdecimal() or not ITERATIONS_MIN <= int(iterations) <= ITERATIONS_MAX:
        raise ConfigError(
            f"--add-scram: iterations={iterations}; allowed: {ITERATIONS_MIN} to {ITERATIONS_MAX}"
        )
    return FirstUser(match["mechanism"], options["name"], options["password"], int(iterations))


def _split(options: str) -> dict[str, str]:
    """Return comma-separated `name=value` pairs; a quoted value may contain any character."""
    found = {}
    for match in re.finditer(r'\s*([a-z]+)=("(?:[^"])*"|[^,]*)\s*(?:,|$)', options):
        if match[1] not in _OPTIONS:
            raise ConfigError(f"--add-scram: {match[1]} is unknown; allowed: {', '.join(_OPTIONS)}")
        value = match[2]
        found[match[1]] = value[1:-1] if value[:1] == '"' == value[-1:] and len(value) > 1 else value
    return found
