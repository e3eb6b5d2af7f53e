"""Users of SCRAM that are there when a broker starts, as `kafka-storage format --add-scram` has them."""

from __future__ import annotations

import re
from typing import NamedTuple

from sharecore.errors import ConfigError

_ENTRY = re.compile(r"(?P<mechanism>SCRAM-SHA-(?:256|512))=\[(?P<options>.*)\]", re.DOTALL)
_OPTIONS = ("name", "password", "iterations")
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384


class FirstUser(NamedTuple):
    """A user, with the password that nothing keeps."""

    mechanism: str
    name: str
    password: str
    iterations: int

    def __repr__(self) -> str:
        return f"FirstUser({self.mechanism}, {self.name!r})"


def parse_add_scram(text: str) -> FirstUser:
    """Read `SCRAM-SHA-256=[name=alice,password=secret]`, with `iterations=` where others are wanted.

    Raises:
        ConfigError: it cannot be read; the text does not tell the password.
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
    """`name=value` pairs with commas between; a value in quotation marks may hold any."""
    found = {}
    for match in re.finditer(r'\s*([a-z]+)=("(?:[^"])*"|[^,]*)\s*(?:,|$)', options):
        if match[1] not in _OPTIONS:
            raise ConfigError(f"--add-scram: {match[1]} is unknown; allowed: {', '.join(_OPTIONS)}")
        value = match[2]
        found[match[1]] = value[1:-1] if value[:1] == '"' == value[-1:] and len(value) > 1 else value
    return found
