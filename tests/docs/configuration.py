"""Writes docs/configuration.md from the declarations of the code: `make configuration`."""

from __future__ import annotations

from pathlib import Path

from sharecore.config import ConfigKey, Status, broker_keys, group_keys, topic_keys
from sharecore.config.broker import ALIASES
from sharecore.config.unserved import unserved_families, unserved_keys

TABLE = Path(__file__).parents[2] / "docs/configuration.md"

_HEAD = """# Configuration

<!-- Written by `make configuration` from the declarations in python/sharecore/config; do not edit. -->

Settings have Kafka's names: of `server.properties` for the broker, of `kafka-configs.sh` for topics and
groups. Each of Kafka 4.4.0's is one of these:

- **works**: it has the effect that is said.
- **no effect**: it is taken, and one line of the log says why: it names a mechanism that is not here.
- **refused**: who sets it relies on something that is not there. A broker does not start with it, a topic or
  group does not get it, and the message says what to do. A value that asks for nothing may stand.

`sharecore config example` prints every setting of the broker as a commented file for `serve --config`;
`sharecore config check FILE` says what of a file cannot stand, has no effect or is unknown, and starts
nothing; `sharecore config explain NAME` shows one setting. A variable of the environment stands over the
file: its name is the setting's in capitals with `_` for each dot, behind `SHARECORE_` (`SHARECORE_LOG_DIRS`,
and `SHARECORE_DURABILITY` for `sharecore.durability`). The command line stands over both.

A name that no Kafka knows is refused on the command line, in `SHARECORE_*` variables, for topics and for
groups. In the broker's file it is refused if it is close to a setting's name, and ignored with a warning
otherwise.
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
    """The whole page."""
    broker = _declared(broker_keys())
    for name, kept in ALIASES.items():
        broker[name] = _row(name, Status.WORKS, "", f"Stands for `{kept}` where that is not set.")
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
            "| name | status | default, or what may stand | effect, or why not |\n|---|---|---|---|"
        )
        parts.append("\n".join(rows[name] for name in sorted(rows)) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    TABLE.write_text(render())
