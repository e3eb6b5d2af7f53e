"""Java property files, and names in them that this broker does not know."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from sharecore.config.broker import ALIASES, broker_keys, listener_key
from sharecore.config.keys import Status
from sharecore.config.share import PERSISTER_PREFIX
from sharecore.config.tier import INTER_NODE_PREFIX, UPSTREAM_PREFIX
from sharecore.config.unserved import find_unserved, remarks, unserved_keys
from sharecore.errors import ConfigError

_CLOSE = 0.88
"""Similarity, from 0 to 1, from which a name counts as a misspelling of another."""
_SIMILAR = 0.75
"""Similarity from which a name is suggested for one that is refused anyway."""
_BYTES_MAX = 4 << 20
"""A limit, since a device given by mistake may never end. Named pipes are read: shells create some."""
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: str | Path) -> dict[str, str]:
    """Read a property file as Java does: comments, continued lines, escapes; a later line wins.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(content) > _BYTES_MAX:
        raise ConfigError(f"{path}: cannot be read: more than {_BYTES_MAX} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{path}: cannot be read: line {line} is not UTF-8; save the file as UTF-8"
        ) from error
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    """Return the keys and values of a property file's text."""
    found = {}
    lines = iter(text.splitlines())
    for line in lines:
        line = line.lstrip()
        if not line or line[0] in "#!":
            continue
        while _continued(line):
            line = line[:-1] + next(lines, "").lstrip()
        match = re.match(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", line, re.DOTALL)
        assert match is not None
        found[_unescape(match[1])] = _unescape(match[2])
    return found


def unknown_names(names: Iterable[str]) -> list[str]:
    """Those that no broker of Kafka's knows, nor this one."""
    known = broker_keys().keys() | ALIASES.keys()
    return [
        name
        for name in sorted(names)
        if not name.startswith((PERSISTER_PREFIX, UPSTREAM_PREFIX, INTER_NODE_PREFIX))
        and listener_key(name) not in known
        and find_unserved(listener_key(name)) is None
    ]


def nearest_name(name: str, cutoff: float = _CLOSE) -> str | None:
    """Return the setting that a misspelled name was probably meant to be; None where none is close."""
    known = [*broker_keys(), *ALIASES, *unserved_keys()]
    return next(iter(difflib.get_close_matches(name, known, 1, cutoff=cutoff)), None)


def misspelled(names: Iterable[str]) -> dict[str, str]:
    """Return the unknown names that are close to a setting's, each with that setting."""
    return {name: near for name in unknown_names(names) if (near := nearest_name(name)) is not None}


def check_names(names: Iterable[str], source: str = "") -> None:
    """Raise ConfigError if a name is unknown.

    Args:
        source: what stands before a name in the message, such as `--set `.
    """
    lines = []
    for name in unknown_names(names):
        ours = f"sharecore.{name}"
        near = ours if ours in broker_keys() else nearest_name(name, _SIMILAR)
        lines.append(_unknown(source + name, near))
    if lines:
        raise ConfigError("\n".join(lines))


def check_spelling(names: Iterable[str]) -> None:
    """Raise ConfigError if an unknown name is close to a setting's.

    Property files may hold settings of other programs, so that a name like none of Kafka's is not refused.
    """
    lines = [_unknown(name, near) for name, near in misspelled(names).items()]
    if lines:
        raise ConfigError("\n".join(lines))


def _unknown(name: str, near: str | None) -> str:
    hint = f"did you mean {near}?" if near else "`sharecore config example` lists all settings"
    return f"{name}: no setting of this broker or of Kafka's; {hint}"


def remarks_on(properties: Mapping[str, str]) -> list[str]:
    """Return one line for each reason why some of a broker's settings have no effect.

    A number of copies that is one asks for nothing else than what is done.
    """
    known = broker_keys()
    lines = [
        f"no effect: {name}: {known[name][1].doc}"
        for name in sorted(properties)
        if name in known and known[name][1].status is Status.IGNORED and properties[name].strip() != "1"
    ]
    unserved = (
        listener_key(name)
        for name, text in properties.items()
        if listener_key(name) not in known.keys() | ALIASES.keys()
        and not (name.endswith((".replication.factor", ".min.isr")) and text.strip() == "1")
    )
    return lines + remarks(unserved)


def _continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPES.get(escape, escape)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", replaced, text)
