"""What is measured: a broker that runs, and the load generator against it."""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar
from uuid import uuid4

from tests.harness.broker import Broker
from tests.harness.clients import configure_group, create_topic
from tests.harness.running import Client

from sharecore.protocol import ApiKey

_FILLING_CLIENTS = 50
_SECONDS_MAX = 120
_TOPIC = "small-requests"
_METADATA_VERSION = 12
_HEARTBEAT_VERSION = 1
_FIND_VERSION = 4


class Subject(ABC):
    """A broker under measurement.

    Args:
        generator: the load generator's program.
        partitions: of the topic, or streams in its place.
    """

    protocols: ClassVar[Mapping[str, str]]
    """Names of the load generator's protocols, by step."""

    def __init__(self, generator: str, partitions: int) -> None:
        self._generator = generator
        self._partitions = partitions

    @abstractmethod
    def start(self) -> None:
        """Starts it, and makes what the steps need."""

    @abstractmethod
    def kill(self) -> None:
        """Ends it."""

    @abstractmethod
    def resident_bytes(self) -> int:
        """Of its process, now."""

    @property
    @abstractmethod
    def address(self) -> tuple[int, int]:
        """Port and process id."""

    @property
    def pids(self) -> list[int]:
        """All processes whose CPU time counts."""
        return [self.address[1]]

    def prepare(self, step: str, count: int, round: int) -> list[str]:
        """Make what one run needs; give words of the load generator's command line."""
        return []

    def fill(self, records: int) -> None:
        """Write what the steps that share will read."""
        words = [f"requests={records}", "warm_up=0"]
        self._generate("produce", _FILLING_CLIENTS, _SECONDS_MAX, words)

    def measure(
        self, step: str, count: int, seconds: float, rate: int, round: int, more: Sequence[str] = ()
    ) -> dict[str, float]:
        """One run; the figures by the load generator's names.

        Args:
            more: further words of the load generator's command line.
        """
        words = [*self.prepare(step, count, round), f"rate={rate}", *more]
        return self._generate(step, count, seconds, words)

    def _generate(self, step: str, count: int, seconds: float, words: list[str]) -> dict[str, float]:
        port, _ = self.address
        pids = ",".join(map(str, self.pids))
        command = [self._generator, self.protocols[step], f"127.0.0.1:{port}", str(count), str(seconds)]
        command += [*self._common(), f"pid={pids}", f"partitions={self._partitions}", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return {name: float(value) for name, value in map(str.split, done.stdout.splitlines())}

    def _common(self) -> list[str]:
        return []


class KafkaSubject(Subject):
    """sharecore, or Apache Kafka."""

    protocols: ClassVar = {name: name for name in ("produce", "share", "share-ride", "end-to-end")}

    def __init__(self, generator: str, broker: Broker, partitions: int) -> None:
        super().__init__(generator, partitions)
        self._broker = broker
        self._topic_ids: dict[str, str] = {}

    def start(self) -> None:
        self._start_brokers()
        self._create(_TOPIC)

    def _start_brokers(self) -> None:
        self._broker.start()

    def kill(self) -> None:
        self._broker.kill()

    def resident_bytes(self) -> int:
        return self._broker.resident_bytes()

    @property
    def address(self) -> tuple[int, int]:
        return self._broker.port, self._broker.pid

    def prepare(self, step: str, count: int, round: int) -> list[str]:
        if step == "produce":
            return []
        group = f"{step}-{count}-{round}"
        topic = _TOPIC
        if step == "end-to-end":
            topic = group
            self._create(topic)
        configure_group(self._broker.bootstrap, group, share_auto_offset_reset="earliest")
        self._join(group, topic)
        return [f"topic={self._topic_ids[topic]}", f"group={group}"]

    def _common(self) -> list[str]:
        return [f"topic={self._topic_ids[_TOPIC]}"]

    def _create(self, topic: str) -> None:
        self._make_topic(topic)
        client, until = Client(self._broker.port), time.monotonic() + _SECONDS_MAX
        try:
            # other brokers of a cluster learn of a topic later
            while True:
                metadata = client.ask(ApiKey.METADATA, _METADATA_VERSION, topics=[{"name": topic}])
                found = metadata.topics[0]
                if not found.error_code:
                    break
                if time.monotonic() > until:
                    raise RuntimeError(f"{topic} has no leader: error {found.error_code}")
                time.sleep(0.1)
        finally:
            client.close()
        self._topic_ids[topic] = found.topic_id.hex

    def _make_topic(self, topic: str) -> None:
        create_topic(self._broker.bootstrap, topic, self._partitions)

    def _join(self, group: str, topic: str) -> None:
        """A member subscribes, and leaves when it has partitions: so the group's state is made."""
        client, member, epoch = Client(self._coordinator_port(group)), str(uuid4()), 0
        until = time.monotonic() + _SECONDS_MAX
        try:
            while True:
                answer = client.ask(
                    ApiKey.SHARE_GROUP_HEARTBEAT,
                    _HEARTBEAT_VERSION,
                    group_id=group,
                    member_id=member,
                    member_epoch=epoch,
                    subscribed_topic_names=[topic] if not epoch else None,
                )
                if answer.assignment is not None and answer.assignment.topic_partitions:
                    break
                if time.monotonic() > until:
                    raise RuntimeError(f"{group} is assigned nothing: error {answer.error_code}")
                epoch = answer.member_epoch
                time.sleep(0.1)
        finally:
            client.close()

    def _coordinator_port(self, group: str) -> int:
        """The port of a group's coordinator. Apache Kafka makes its topic when somebody looks for it."""
        client, until = Client(self._broker.port), time.monotonic() + _SECONDS_MAX
        try:
            while True:
                answer = client.ask(
                    ApiKey.FIND_COORDINATOR, _FIND_VERSION, key_type=0, coordinator_keys=[group]
                )
                found = answer.coordinators[0]
                if not found.error_code:
                    return int(found.port)
                if time.monotonic() > until:
                    raise RuntimeError(f"{group} has no coordinator: error {found.error_code}")
                time.sleep(0.1)
        finally:
            client.close()
