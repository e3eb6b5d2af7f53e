"""Writes docs/configuration.md from the declarations of the code: `make configuration`."""

from __future__ import annotations

from pathlib import Path

from sharecore.config import ConfigKey, Status, broker_keys, group_keys, topic_keys
from sharecore.config.broker import ALIASES
from sharecore.config.unserved import unserved_families, unserved_keys

TABLE = Path(__file__).parents[2] / "docs/configuration.md"

_HEAD = """# Configuration

<!-- Written by `make configuration` from the declarations in python/sharecore/config; do not edit. -->

Settings have the names of Kafka's `server.properties` (broker) and `kafka-configs.sh` (topics, groups). Each
setting of Kafka 4.4.0 has one of these statuses:

- **works**: it has the described effect.
- **no effect**: it is accepted, and the log says why it does nothing.
- **refused**: it asks for something that is not supported. A broker does not start with it, and topics and
  groups do not accept it; the message says what to do. A value that asks for nothing is accepted.

`sharecore config example` prints all settings as a commented file for `serve --config`.
`sharecore config check FILE` lists invalid, ineffective and unknown settings of a file and starts nothing.
`sharecore config explain NAME` shows one setting.

Environment variables override the file: `SHARECORE_LOG_DIRS` is `log.dirs`, `SHARECORE_DURABILITY` is
`sharecore.durability`. The command line overrides both.

Unknown names are refused on the command line, in `SHARECORE_*` variables, for topics and for groups. In the
broker's file an unknown name is refused if it is close to a known one, and ignored with a warning otherwise.
"""


def _row(name: str, status: Status, default: str, effect: str) -> str:
    shown = effect.replace("|", "\\|")
    return f"| `{name}` | {status.value} | {f'`{default}`' if default else ''} | {shown} |"


def _declared(keys: dict[str, tuple[str, ConfigKey]]) -> dict[str, str]:
    return {
        name: _row(name, key.status, key.format(key.default) or "", key.doc)
        for name, (_, key) in keys.items()
    }


def _sentence(reason: str) -> str:
    return reason[0].upper() + reason[1:].rstrip(".") + "."


def render() -> str:
    """Return the whole page."""
    broker = _declared(broker_keys())
    for name, kept in ALIASES.items():
        broker[name] = _row(name, Status.WORKS, "", f"Used for `{kept}` if that is not set.")
    for unserved in [*unserved_keys().values(), *unserved_families()]:
        name = unserved.name + "*" * unserved.name.endswith(".")
        harmless = unserved.harmless.replace("|", "` or `").replace("<one>", "one address")
        broker.setdefault(name, _row(name, unserved.status, harmless, _sentence(unserved.reason)))
    parts = [_HEAD]
    for title, rows in (
        ("Broker", broker),
        ("Topics", _declared(topic_keys())),
        ("Groups", _declared(group_keys())),
    ):
        parts.append(
            f"## {title}\n\n"
            "| name | status | default, or accepted value | effect, or reason |\n|---|---|---|---|"
        )
        parts.append("\n".join(rows[name] for name in sorted(rows)) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    TABLE.write_text(render())
