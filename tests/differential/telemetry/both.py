"""A broker of Apache Kafka and one of ours that both ask clients for their metrics."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.differential.wire.compare import differences
from tests.harness import java
from tests.harness.broker import KAFKA_LIBS, ROOT, Broker, free_port
from tests.harness.running import Client

from sharecore.protocol import ApiKey

CLIENT_METRICS = 16
Settings = Mapping[str, str | None]
CLOSED = "the connection was closed"
BYTES_MAX = 4096
RECEIVER = ROOT / "tests/differential/telemetry/Receiver.java"
"""What Apache Kafka needs before it asks clients."""
_SETTLED_SECONDS = 0.3
"""After so long Apache Kafka's broker has heard of its controller what subscriptions there are."""
_numbers = itertools.count(1)


class Both:
    """Asks both brokers the same, and compares.

    Args:
        brokers: Apache Kafka's, and ours.
    """

    def __init__(self, brokers: tuple[Broker, Broker]) -> None:
        self.brokers = brokers
        self._ports = [broker.port for broker in brokers]
        self._clients: dict[str, list[Client]] = {}
        self._ids = (UUID(int=0xC0FFEE << 64 | number) for number in itertools.count(1))
        self._subscriptions: dict[str, None] = {}

    def new_id(self) -> UUID:
        """Return an id that no client had."""
        return next(self._ids)

    def ask(self, key: ApiKey, version: int = 0, *, on: str = "a", **fields: Any) -> Any:
        """Return the answer of both, without what each chooses by itself; fail where they differ.

        Args:
            on: names the connection and is the client's id.
        """
        apache, ours = (_plain(answer) for answer in self.raw(key, version, on=on, **fields))
        found = differences(apache, ours)
        assert not found, "\n".join([f"{key.name} {fields}", *map(str, found)])
        return apache

    def raw(self, key: ApiKey, version: int = 0, *, on: str = "a", **fields: Any) -> list[Any]:
        """Both answers as they came, Apache Kafka's first."""
        if on not in self._clients:
            self._clients[on] = [Client(port, on) for port in self._ports]
        for client in self._clients[on]:
            client.send(key, version, **fields)
        return [_received(client, key, version) for client in self._clients[on]]

    def close(self, on: str) -> None:
        """End a connection to both."""
        for client in self._clients.pop(on, ()):
            client.close()

    def get(self, instance_id: UUID | None, on: str = "a") -> Any:
        return self.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, on=on, client_instance_id=instance_id)

    def push(self, instance_id: UUID | None, subscription_id: int, on: str = "a", **fields: Any) -> int:
        """Return the error code of a push."""
        said: dict[str, Any] = {"terminating": False, "compression_type": 0, "metrics": b""}
        said |= {"client_instance_id": instance_id, "subscription_id": subscription_id, **fields}
        answer = self.ask(ApiKey.PUSH_TELEMETRY, on=on, **said)
        code: int = answer["error_code"]
        return code

    def alter(self, name: str, settings: Settings) -> Any:
        """Sets settings of a subscription; None deletes one."""
        return self.alter_all({name: settings})[0]

    def alter_all(self, wanted: Mapping[str, Settings], *, validate_only: bool = False) -> list[Any]:
        """Return the same of several in one request."""
        self._subscriptions.update(dict.fromkeys(wanted))
        resources = [
            {
                "resource_type": CLIENT_METRICS,
                "resource_name": name,
                "configs": [
                    {"name": key, "config_operation": 1 if text is None else 0, "value": text}
                    for key, text in settings.items()
                ],
            }
            for name, settings in wanted.items()
        ]
        answer = self.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, on="admin", resources=resources, validate_only=validate_only
        )
        time.sleep(_SETTLED_SECONDS)
        answers: list[Any] = answer["responses"]
        return answers

    def describe(self, *names: str, **asked: Any) -> None:
        """Compare what is set."""
        asked = {"resource_type": CLIENT_METRICS, "configuration_keys": None} | asked
        resources = [{"resource_name": name, **asked} for name in names]
        self.ask(ApiKey.DESCRIBE_CONFIGS, 4, on="admin", resources=resources, include_synonyms=True)

    def forget(self) -> None:
        """Ends every connection and every subscription."""
        for on in list(self._clients):
            if on != "admin":
                self.close(on)
        nothing = dict.fromkeys(("metrics", "interval.ms", "match"))
        names = [name for name in self._subscriptions if name]
        if names:
            self.alter_all(dict.fromkeys(names, nothing))
        self._subscriptions.clear()


def _received(client: Client, key: ApiKey, version: int) -> Any:
    try:
        return client.receive(key, version)
    except EOFError:
        return CLOSED


def _plain(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_plain(each) for each in answer]
    if not hasattr(answer, "_fields"):
        return (
            str(answer) if isinstance(answer, UUID) else list(answer) if isinstance(answer, bytes) else answer
        )
    shown = {name: _plain(value) for name, value in zip(answer._fields, answer, strict=True)}
    if "documentation" in shown:
        shown["documentation"] = "<each its own>"
    if len(shown.get("requested_metrics", ())) > 1:
        # Kafka's is a checksum over the order of its hash table
        shown["subscription_id"] = "<subscription id>"
    return shown


@contextmanager
def with_receiver(libs: Path = KAFKA_LIBS) -> Iterator[dict[str, str]]:
    """Settings of Apache Kafka with which it asks clients, for brokers that are started meanwhile."""
    os.environ["BROKER_EXTRA_CLASSPATH"] = str(java.compiled(RECEIVER, libs))
    try:
        yield {"metric.reporters": "Receiver"}
    finally:
        del os.environ["BROKER_EXTRA_CLASSPATH"]


@contextmanager
def both(home: Path, libs: Path = KAFKA_LIBS) -> Iterator[Both]:
    """Two brokers, ready; killed at the end."""
    said = {"telemetry.max.bytes": str(BYTES_MAX), "auto.create.topics.enable": "false"}
    own = {
        "sharecore.metrics.listener": f"127.0.0.1:{free_port()}",
        "sharecore.telemetry.enable": "true",
    }
    with with_receiver(libs) as settings:
        brokers = (
            Broker(home / "apache", "apache", said | settings, libs=libs),
            Broker(home / "ours", "sharecore", said | own),
        )
        try:
            with ThreadPoolExecutor(2) as at_once:
                list(at_once.map(Broker.start, brokers))
            yield Both(brokers)
        finally:
            for broker in brokers:
                broker.kill()
