"""The compose file of two brokers and a bucket, without containers: processes with its settings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from tests.harness.broker import ROOT, SHARECORE, free_port
from tests.harness.clients import QUIET, create_topic
from tests.packaging.test_container import image_environment
from typer.testing import CliRunner

from sharecore.cli.app import app

HOME = (ROOT / "packaging/compose/home.yaml").read_text()
SECONDS_MAX = 60.0


def settings_of(name: str) -> dict[str, str]:
    """Return the settings of a service, with those that both brokers share."""
    own = HOME.partition(f"\n  {name}:\n")[2].partition("\n\n")[0]
    shared = HOME.partition("\nx-home: &home\n")[2].partition("\n\n")[0]
    assert own
    assert shared
    pairs = [re.findall(r"(SHARECORE_\w+): \"?([^\"\n]+)", part) for part in (shared, own)]
    return image_environment() | dict(pairs[0]) | dict(pairs[1])


class Node:
    """A broker of the compose file as a process; a directory takes the place of versitygw."""

    def __init__(self, scratch: Path, name: str) -> None:
        settings = settings_of(name)
        assert settings["SHARECORE_BUCKET_URL"].startswith("s3://")
        ports = {port: str(free_port()) for port in ("9092", "29092", "29093", "9464")}
        environment = {
            key: re.sub(r"(?<=:)\d+", lambda port: ports.get(str(port[0]), str(port[0])), value)
            for key, value in settings.items()
            if key not in {"SHARECORE_BUCKET_ENDPOINT", "SHARECORE_BUCKET_ALLOW_HTTP"}
        }
        advertised = environment["SHARECORE_ADVERTISED_LISTENERS"].replace(f"{name}:", "localhost:")
        environment["SHARECORE_ADVERTISED_LISTENERS"] = advertised
        self.bootstrap = advertised.rpartition("//")[2]
        environment["SHARECORE_BUCKET_URL"] = f"file://{scratch}/bucket"
        environment["SHARECORE_LOG_DIRS"] = str(scratch / name)
        self._log = (scratch / f"{name}.log").open("ab")
        self.process = subprocess.Popen(
            [SHARECORE, "serve"],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=os.environ | environment,
        )

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()

    def leads(self) -> bool:
        """Whether its metadata names it as the controller; false while it does not answer."""
        try:
            found = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET}).list_topics(timeout=2)
        except KafkaException:
            return False
        port = int(self.bootstrap.rpartition(":")[2])
        return found.controller_id in found.brokers and found.brokers[found.controller_id].port == port


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    (tmp_path / "bucket").mkdir()
    started = [Node(tmp_path, "broker-1")]
    try:
        until(started[0].leads)
        started.append(Node(tmp_path, "broker-2"))
        yield started
    finally:
        for node in started:
            node.stop()


def test_the_second_broker_takes_over(nodes: list[Node], tmp_path: Path) -> None:
    first, second = nodes
    create_topic(first.bootstrap, "jobs")

    def is_known() -> bool:
        command = ["bucket", "status", f"file://{tmp_path}/bucket", "--output", "json"]
        return bool(json.loads(CliRunner().invoke(app, command).stdout)["standbys"] == [2])

    until(is_known)
    first.stop()
    until(second.leads)
    found = AdminClient({"bootstrap.servers": second.bootstrap, **QUIET}).list_topics(timeout=10)
    assert "jobs" in found.topics
