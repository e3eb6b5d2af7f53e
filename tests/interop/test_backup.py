"""`sharecore backup` under load: what was answered before it began is in the copy, which a broker serves."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.harness.broker import QUICK_GROUPS, SHARECORE, Broker
from tests.harness.clients import QUIET, commit, configure_group, create_topic, share_consumer


class Load:
    """Writes numbered records and accepts them, until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._stopping = threading.Event()
        self.written = 0
        self.accepted: set[int] = set()
        self._threads = [threading.Thread(target=each) for each in (self._write, self._accept)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _write(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True, **QUIET})
        while not self._stopping.is_set():
            for number in range(self.written, self.written + 50):
                producer.produce("jobs", b"%d" % number)
            assert producer.flush(30) == 0
            self.written += 50
        producer.close()

    def _accept(self) -> None:
        with share_consumer(self._bootstrap, "workers", ["jobs"]) as consumer:
            while not self._stopping.is_set():
                taken = list(consumer.poll(0.1))
                for message in taken:
                    consumer.acknowledge(message)
                if taken:
                    commit(consumer)
                    self.accepted |= {message.offset() or 0 for message in taken}


def test_backups_under_load_hold_what_was_answered(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "broker", settings=QUICK_GROUPS)
    broker.start()
    create_topic(broker.bootstrap, "jobs")
    configure_group(broker.bootstrap, "workers", share_auto_offset_reset="earliest")
    load = Load(broker.bootstrap)
    load.start()
    try:
        for number, at_least in enumerate((200, 400)):
            until = time.monotonic() + 60
            while len(load.accepted) < at_least:
                assert time.monotonic() < until
                time.sleep(0.01)
            written, accepted = load.written, set(load.accepted)
            copy = tmp_path / f"copy-{number}"
            command = [SHARECORE, "backup", "--data-dir", str(broker.home / "data"), str(copy)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            assert "is whole" in done.stderr
    finally:
        load.stop()
    assert broker.terminate() == 0

    restored = Broker(tmp_path / "restored", settings=QUICK_GROUPS)
    (restored.home / "data").rmdir()
    copy.rename(restored.home / "data")
    restored.start()
    reader = Consumer({"bootstrap.servers": restored.bootstrap, "group.id": "reader", **QUIET})
    reader.assign([TopicPartition("jobs", 0, 0)])
    read: list[bytes | None] = []
    while len(read) < written:
        read += [message.value() for message in reader.consume(written - len(read), timeout=20)]
    reader.close()
    assert read == [b"%d" % number for number in range(written)]
    again: set[int] = set()
    with share_consumer(restored.bootstrap, "workers", ["jobs"]) as consumer:
        while messages := list(consumer.poll(3)):
            again |= {message.offset() or 0 for message in messages}
            for message in messages:
                consumer.acknowledge(message)
            commit(consumer)
    assert again & accepted == set(), "what was accepted before the backup is accepted in it"
    assert again | load.accepted >= set(range(written)), "the rest is delivered"
    assert restored.terminate() == 0
