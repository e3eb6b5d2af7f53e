"""Every setting of the broker as a commented file, and the explanation of one."""

from __future__ import annotations

import difflib
import textwrap
from dataclasses import is_dataclass

from sharecore.config.broker import ALIASES, BrokerConfig, broker_keys, listener_key
from sharecore.config.environment import variable_of
from sharecore.config.group import group_keys
from sharecore.config.keys import ConfigKey, Dynamic, Kind, Status, keys_of
from sharecore.config.topic import topic_keys
from sharecore.config.unserved import Unserved, find_unserved

_WIDTH = 100
_HEAD = """\
Settings of a sharecore broker, each with its default. To change one, remove the # in front of it. Check the
file with `sharecore config check FILE`, and start the broker with `sharecore serve --config FILE`. Names are
those of Kafka's server.properties; settings with the prefix sharecore. exist only here. An environment
variable (SHARECORE_LOG_DIRS for log.dirs) overrides the file, and the command line overrides both."""
_ALTERED = {
    Dynamic.PER_BROKER: "dynamic, for this broker",
    Dynamic.CLUSTER_WIDE: "dynamic",
    Dynamic.READ_ONLY: "takes effect at the next start",
}


def example() -> str:
    """Return the file, in which every setting is a comment."""
    parts = [_comment(_HEAD)]
    seen: set[str] = set()
    for settings in (BrokerConfig, *reversed(BrokerConfig.__mro__[1:])):
        if not is_dataclass(settings):
            continue
        inherited = {name for base in settings.__mro__[1:] if is_dataclass(base) for name in keys_of(base)}
        keys = [
            key
            for name, (_, key) in keys_of(settings).items()
            if name not in inherited and name not in seen and key.status is Status.WORKS
        ]
        if not keys:
            continue
        seen.update(key.name for key in keys)
        title = "The broker." if settings is BrokerConfig else (settings.__doc__ or "").strip()
        parts.append(f"# --- {title}")
        parts += [f"{_comment(f'{key.doc} ({key.allowed})')}\n#{key.name}={_default(key)}" for key in keys]
    return "\n\n".join(parts) + "\n"


def explain(name: str) -> str:
    """Return the description of a setting; raise KeyError with similar names if it does not exist."""
    wanted = ALIASES.get(name, listener_key(name))
    found = [
        _explained(scope, keys[wanted][1])
        for scope, keys in (("broker", broker_keys()), ("topic", topic_keys()), ("group", group_keys()))
        if wanted in keys
    ]
    unserved = find_unserved(wanted)
    if not found and unserved is not None:
        found = [_without_effect(wanted, unserved)]
    if not found:
        known = [*broker_keys(), *topic_keys(), *group_keys(), *ALIASES]
        raise KeyError(", ".join(difflib.get_close_matches(name, known, 3)))
    return "\n\n".join(found)


def _explained(scope: str, key: ConfigKey) -> str:
    lines = [f"{key.name} ({scope}): {key.doc}"]
    if key.status is not Status.WORKS:
        lines.append(f"  {key.status.value}")
    lines.append(f"  allowed      {key.allowed}")
    default = "none is shown" if key.kind is Kind.PASSWORD else _default(key)
    if key.synonym is not None:
        lines.append(f"  default      the broker's {key.synonym}, {default}")
    else:
        lines.append(f"  default      {default or 'none'}")
    if scope == "broker":
        lines += [f"  change       {_ALTERED[key.dynamic]}", f"  environment  {variable_of(key.name)}"]
    return "\n".join(lines)


def _without_effect(name: str, unserved: Unserved) -> str:
    reason = unserved.reason[0].upper() + unserved.reason[1:].rstrip(".")
    text = f"{name} (Kafka's): {unserved.status.value}. {reason}."
    return text + (f"\n  allowed      {unserved.harmless}" if unserved.harmless else "")


def _default(key: ConfigKey) -> str:
    return key.format(key.default) or ""


def _comment(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# "))
