"""A broker that asks clients for their metrics, and what its page then has."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.harness.broker import Broker, free_port
from tests.harness.running import Client

from sharecore.protocol import ApiKey


def telemetry_settings() -> tuple[int, dict[str, str]]:
    """Return the port of a page of metrics, and the settings of a broker that has it and asks clients."""
    port = free_port()
    return port, {
        "sharecore.metrics.listener": f"127.0.0.1:{port}",
        "sharecore.telemetry.enable": "true",
    }


class Watched:
    """A broker that asks every client for all of its metrics, ten times a second.

    Args:
        port: of its page of metrics.
    """

    def __init__(self, broker: Broker, port: int) -> None:
        self.broker = broker
        self._port = port

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    def samples(self) -> list[Any]:
        """All samples of the page."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=20) as page:
                text = page.read().decode()
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise
            return []  # busy: the test asks again
        return [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def pushed(self) -> dict[str, dict[str, Mapping[str, str]]]:
        """The labels of what was pushed, by client id and name."""
        found: dict[str, dict[str, Mapping[str, str]]] = {}
        for sample in self.samples():
            if sample.name.startswith("kafka_client_"):
                found.setdefault(sample.labels["client_id"], {})[sample.name] = sample.labels
        return found

    def until(self, done: Callable[[dict[str, dict[str, Mapping[str, str]]]], bool]) -> None:
        """Wait for a push."""
        until = time.monotonic() + 20
        while not done(self.pushed()):
            assert time.monotonic() < until, sorted(self.pushed())
            time.sleep(0.1)

    def until_asking(self) -> None:
        """Wait until the broker asks clients for metrics; it sends earlier ones away for minutes."""
        until = time.monotonic() + 20
        metrics: list[str] = []
        while not metrics:
            assert time.monotonic() < until, self.broker.read_log()[-2000:]
            client = Client(self.broker.port)
            asked = client.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, client_instance_id=None)
            client.close()
            metrics = asked.requested_metrics
            time.sleep(0.05)


def subscribe_all(port: int) -> None:
    """Has every client asked for everything, ten times a second."""
    settings = {"metrics": "*", "interval.ms": "100"}
    configs = [{"name": name, "config_operation": 0, "value": text} for name, text in settings.items()]
    resources = [{"resource_type": 16, "resource_name": "all", "configs": configs}]
    client = Client(port)
    answer = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources, validate_only=False)
    assert answer.responses[0].error_code == 0, answer
    client.close()
