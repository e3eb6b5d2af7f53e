"""Each client of clients.toml, the same program on sharecore and on Apache Kafka: nothing lost or doubled.

`make clients`; KAFKA_LIBS names another release of Apache Kafka. A program writes a line for each record:
`produced N`, `committed N` (in a transaction), `consumed N`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.clients.environments import Client, clients, prepare
from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import QUIET, configure_group, create_topic, produce

COUNT = 200
PARTITIONS = 3
SECONDS_MAX = 240
EACH_ONCE = Counter(map(str, range(COUNT)))

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module", params=["sharecore", "apache"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    made = Broker(tmp_path_factory.mktemp(request.param), request.param, QUICK_GROUPS)
    made.start()
    yield made
    made.kill()


@pytest.mark.parametrize("client", clients(), ids=lambda client: client.topic)
def test_nothing_is_lost_or_doubled(client: Client, broker: Broker, tmp_path: Path) -> None:
    command = [*prepare(client), broker.bootstrap, client.topic, client.topic]
    for topic in (client.topic, f"{client.topic}-tx", client.copied):
        create_topic(broker.bootstrap, topic, PARTITIONS)
    {"log": _log, "share": _share, "copy": _copy}[client.kind](client, broker, command, tmp_path)


def _log(client: Client, broker: Broker, command: list[str], home: Path) -> None:
    said = _finish([*command, str(COUNT), *client.arguments], home)
    assert said["produced"] == EACH_ONCE
    assert said["consumed"] == EACH_ONCE
    assert Counter(_read(broker, client.topic)) == EACH_ONCE
    if "committed" in said:
        assert said["committed"] == EACH_ONCE
        assert Counter(_read(broker, f"{client.topic}-tx")) == EACH_ONCE
    assert _committed(broker, client.topic) == COUNT


def _share(client: Client, broker: Broker, command: list[str], home: Path) -> None:
    configure_group(broker.bootstrap, client.topic, share_auto_offset_reset="earliest")
    _fill(broker, client.topic, range(COUNT))
    said = _finish([*command, str(COUNT), *client.arguments], home)
    assert said["consumed"] == EACH_ONCE
    assert set(said["released"].values()) <= {1}


def _copy(client: Client, broker: Broker, command: list[str], home: Path) -> None:
    """Half of the records are there before the program, and half come while it runs."""
    _fill(broker, client.topic, range(COUNT // 2))
    with _started([*command, *client.arguments], home) as program:
        _wait_for(broker, client, COUNT // 2, program, home)
        _fill(broker, client.topic, range(COUNT // 2, COUNT))
        _wait_for(broker, client, COUNT, program, home)
    # a duplicate would arrive now
    with _started([*command, *client.arguments], home) as program:
        _fill(broker, client.topic, [COUNT])
        _wait_for(broker, client, COUNT + 1, program, home)
    assert Counter(_read(broker, client.copied)) == EACH_ONCE | Counter([str(COUNT)])


def _finish(command: list[str], home: Path) -> dict[str, Counter[str]]:
    """Run a program to its end; return what it said, by the first word of each line."""
    with (home / "errors").open("wb") as errors:
        done = subprocess.run(
            command, cwd=home, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=SECONDS_MAX
        )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{(home / 'errors').read_text()[-4000:]}"
    said: dict[str, Counter[str]] = {}
    for line in done.stdout.splitlines():
        word, _, value = line.partition(" ")
        said.setdefault(word, Counter())[value] += 1
    return said | {word: said.get(word, Counter()) for word in ("produced", "consumed", "released")}


@contextlib.contextmanager
def _started(command: list[str], home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Provide a program that runs; it is asked to end, as an operator does."""
    with (home / "output").open("ab") as output:
        program = subprocess.Popen(
            command, cwd=home, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield program
        program.terminate()
        program.wait(60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()


def _wait_for(
    broker: Broker, client: Client, count: int, program: subprocess.Popen[bytes], home: Path
) -> None:
    until = time.monotonic() + SECONDS_MAX
    while len(_read(broker, client.copied)) < count:
        told = (home / "output").read_text(errors="replace")[-4000:]
        assert program.poll() is None, f"the program ended with {program.returncode}:\n{told}"
        assert time.monotonic() < until, f"{_read(broker, client.copied)} was copied:\n{told}"
        time.sleep(0.5)


def _fill(broker: Broker, topic: str, numbers: range | list[int]) -> None:
    for partition in range(PARTITIONS):
        part = [b"%d" % n for n in numbers if n % PARTITIONS == partition]
        produce(broker.bootstrap, topic, part, partition)


def _read(broker: Broker, topic: str) -> list[str]:
    """Return the values of all committed records."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "reader", "enable.partition.eof": True}
    reader = Consumer(settings | QUIET | {"enable.auto.commit": False, "fetch.wait.max.ms": 50})
    reader.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    values, ends = [], 0
    while ends < PARTITIONS:
        for message in reader.consume(500, 1.0):
            if message.error() is not None:
                ends += 1
            else:
                values.append((message.value() or b"").decode())
    reader.close()
    return values


def _committed(broker: Broker, group: str) -> int:
    """Return the sum of the offsets that a group has committed."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(20)
    return sum(each.offset for each in answer.topic_partitions)
