"""The options of `format("sharestate")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sharecore.client.java_names import from_java
from sharecore.client.settings import read_connection_settings
from sharecore.errors import ConfigError
from sharecore.spark.given import split_options

HISTORY, LIVE = "history", "live"
FAILFAST, PERMISSIVE, DROPMALFORMED = "FAILFAST", "PERMISSIVE", "DROPMALFORMED"
_NAMES = ("path", "view", "mode", "group.id")
_FIRST_CONTACT_MS = "20000"


@dataclass(frozen=True, slots=True)
class StateOptions:
    """What the source reads, and how.

    Args:
        connection: the client's settings; empty where a path is read.
        path: a directory or a file, None where a cluster is read.
        view: `history` or `live`.
        mode: what to do about what cannot be read, under the names of Spark's readers.
        group: only this share group.
    """

    connection: dict[str, str]
    path: str | None
    view: str
    mode: str
    group: str | None

    @property
    def servers(self) -> str:
        return self.connection.get("bootstrap.servers", "")


def read_state_options(given: Mapping[str, str]) -> StateOptions:
    """Read the options of a source.

    Raises:
        ConfigError: an unknown name, or a missing or invalid value.
    """
    own, kafka = split_options(given, _NAMES, "sharestate")
    if "path" in own and kafka:
        raise ConfigError("path and kafka.* exclude each other: share state is read from files or a cluster")
    if "path" not in own:
        if "bootstrap.servers" not in kafka:
            raise ConfigError(
                "kafka.bootstrap.servers is missing, or path: a data directory of sharecore's, or a log "
                "directory of Apache Kafka's"
            )
        kafka = {"default.api.timeout.ms": _FIRST_CONTACT_MS, **from_java(kafka, "kafka.")}
        read_connection_settings(kafka)
    return StateOptions(
        kafka,
        own.get("path"),
        _choice("view", own.get("view", HISTORY).lower(), (HISTORY, LIVE)),
        _choice("mode", own.get("mode", FAILFAST).upper(), (FAILFAST, PERMISSIVE, DROPMALFORMED)),
        own.get("group.id"),
    )


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ConfigError(f"{name}={value!r}: must be one of {', '.join(allowed)}")
    return value
