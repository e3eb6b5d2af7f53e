"""One of the two brokers, and what is done to it: topics, settings, records, members of share groups."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from confluent_kafka import Producer
from tests.differential.dlq.gate import Gate, Refused, full_disk
from tests.harness.batches import headers_of, keyed_batch
from tests.harness.broker import ROOT, Broker
from tests.harness.clients import QUIET
from tests.harness.wire import Peer

from sharecore.protocol import ApiKey, codec

LIBS = ROOT / "build/jars/kafka-4.4.0"
SETTINGS = {
    "node.id": "0",
    "auto.create.topics.enable": "false",
    "num.partitions": "2",
    "log.cleaner.backoff.ms": "100",
    "log.retention.ms": "-1",  # hand-made records have timestamps of 1970
    "offsets.topic.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.share.assignor.offload.enable": "false",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.delivery.count.limit": "5",
}
TOPIC, BROKER, GROUP = 2, 4, 32
ALLOWED = {"errors.deadletterqueue.group.enable": "true"}
_SECONDS_MAX = 20.0
_PUBLISHED_SECONDS = 0.3
_LAST_MARKER = 5
_LOADING = {3, 14, 15, 16}
Entry = tuple[bytes | None, bytes | None]


class Side:
    """A broker process.

    Args:
        home: an empty directory.
        kind: `apache` (4.4.0) or `sharecore`.
        more: settings on top.
        gate: in front of Apache's, so that its letters can be refused.
    """

    def __init__(
        self, home: Path, kind: str, more: Mapping[str, str] | None = None, gate: Gate | None = None
    ) -> None:
        home.mkdir(parents=True)
        self.kind = kind
        self.broker = Broker(home, kind, SETTINGS | dict(more or {}), libs=LIBS)
        self._gate = gate
        if gate is not None:
            self.broker.environment["APACHE_LISTENERS"] = f"BETWEEN:{gate.behind}:{gate.port}"
        self._local = threading.local()

    def start(self) -> None:
        """Start it, and wait until its coordinators answer."""
        self.broker.start()
        until = time.monotonic() + _SECONDS_MAX
        while self._loading():
            assert time.monotonic() < until, self.broker.read_log()[-2000:]
            time.sleep(0.05)

    def restart(self, *, warned: bool = False) -> None:
        """End it, without a warning unless told, and start it again."""
        if warned:
            self.broker.terminate()
        self.stop()
        self.start()

    def stop(self) -> None:
        self.broker.kill()
        self._local = threading.local()

    def connect(self) -> Peer:
        return Peer(self.broker.port, _SECONDS_MAX)

    def ask(self, key: ApiKey, version: int, **fields: Any) -> Any:
        """Asks over the thread's own connection."""
        peer = getattr(self._local, "peer", None)
        if peer is None:
            peer = self._local.peer = self.connect()
        return ask(peer, key, version, **fields)

    def reconnect(self) -> None:
        """Asks over another connection from now on: brokers close those that nothing comes over."""
        self._local = threading.local()

    def _loading(self) -> bool:
        for key_type, key in ((0, "warm-up"), (2, "warm-up:AAAAAAAAAAAAAAAAAAAAAQ:0")):
            answer = self.ask(ApiKey.FIND_COORDINATOR, 6, key_type=key_type, coordinator_keys=[key])
            if answer.coordinators[0].error_code in _LOADING:
                return True
        for group in ("warm-up-0", "warm-up-1", "warm-up-2"):
            asked: dict[str, Any] = {"group_id": group, "topics": None}
            found = self.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=[asked]).groups[0]
            if found.error_code in _LOADING:
                return True
        return False

    # topics and settings

    def create(self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
        """Make a topic, and wait until it shows."""
        asked = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": [{"name": key, "value": value} for key, value in (settings or {}).items()],
        }
        answer = self.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=10_000, validate_only=False)
        assert answer.topics[0].error_code == 0, answer
        self._until(lambda: self.partitions(name) == partitions)

    def delete(self, name: str) -> None:
        self.ask(ApiKey.DELETE_TOPICS, 6, topics=[{"name": name}], timeout_ms=10_000)
        self._until(lambda: self.partitions(name) == 0)

    def partitions(self, name: str) -> int:
        """How many partitions a topic has; 0 where it is not there."""
        answer = self.ask(ApiKey.METADATA, 12, topics=[{"name": name}], allow_auto_topic_creation=False)
        return 0 if answer.topics[0].error_code else len(answer.topics[0].partitions)

    def topic_id(self, name: str) -> UUID:
        answer = self.ask(ApiKey.METADATA, 12, topics=[{"name": name}], allow_auto_topic_creation=False)
        found: UUID = answer.topics[0].topic_id
        return found

    def configure(self, kind: int, name: str, settings: Mapping[str, str | None]) -> int:
        """Set what is given and unset what is None, wait until it shows; give the error code."""
        asked = {
            "resource_type": kind,
            "resource_name": name,
            "configs": [
                {"name": key, "config_operation": int(value is None), "value": value}
                for key, value in settings.items()
            ],
        }
        answer = self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=False)
        code: int = answer.responses[0].error_code
        shown = name if kind != BROKER else "0"
        if not code:
            wanted = {key: value for key, value in settings.items() if value is not None}
            self._until(lambda: wanted.items() <= self.settings(kind, shown).items())
        return code

    def settings(self, kind: int, name: str) -> dict[str, str | None]:
        asked = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        answer = self.ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=[asked])
        return {each.name: each.value for each in answer.results[0].configs}

    def group(self, name: str, topic: str | None, *, copy: bool = False, **more: str) -> None:
        """Give a group its dead-letter topic; `_` stands for a dot in what else it gets."""
        wanted: dict[str, str | None] = {"share.auto.offset.reset": "earliest"}
        wanted |= {key.replace("_", "."): value for key, value in more.items()}
        if topic is not None:
            wanted["errors.deadletterqueue.topic.name"] = topic
            wanted["errors.deadletterqueue.copy.record.enable"] = str(copy).lower()
        assert self.configure(GROUP, name, wanted) == 0

    @contextmanager
    def broker_setting(self, name: str, value: str) -> Iterator[None]:
        """Has all brokers set otherwise for a while."""
        assert self.configure(BROKER, "", {name: value}) == 0
        time.sleep(_PUBLISHED_SECONDS)
        try:
            yield
        finally:
            assert self.configure(BROKER, "", {name: None}) == 0
            time.sleep(_PUBLISHED_SECONDS)

    @contextmanager
    def quotas(self, **limits: float) -> Iterator[None]:
        """Has every client held to quotas for a while."""

        def alter(*, remove: bool) -> None:
            ops = [{"key": key, "value": limit, "remove": remove} for key, limit in limits.items()]
            entity = [{"entity_type": "client-id", "entity_name": None}]
            entries = [{"entity": entity, "ops": ops}]
            answer = self.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
            assert answer.entries[0].error_code == 0, answer
            time.sleep(_PUBLISHED_SECONDS)

        alter(remove=False)
        try:
            yield
        finally:
            self.reconnect()
            alter(remove=True)

    @contextmanager
    def letters_refused(self) -> Iterator[Refused]:
        """Has no letter of a large record written: Apache's broker cannot reach itself, our disk is full."""
        gate = self._gate
        if gate is not None:
            with gate.shut():
                yield Refused(lambda: gate.refused)
        else:
            already = self._said()
            with full_disk(self.broker):
                yield Refused(lambda: self._said() - already)

    def _said(self) -> int:
        """How often our broker has told that a letter could not be written."""
        log = self.broker.read_log()
        return sum(
            log.count(words) for words in ("retrying in about", "archived without a dead-letter record")
        )

    def share_version(self, level: int) -> int:
        """Set the feature's level; give the error code."""
        update = {
            "feature": "share.version",
            "max_version_level": level,
            "upgrade_type": 1 if level > 1 else 2,
        }
        answer = self.ask(
            ApiKey.UPDATE_FEATURES, 1, timeout_ms=5000, validate_only=False, feature_updates=[update]
        )
        time.sleep(_PUBLISHED_SECONDS)
        return int(answer.error_code)

    def delete_group(self, name: str) -> int:
        """Delete a group once it has no members; give the error code."""
        answer = self.ask(ApiKey.DELETE_GROUPS, 2, groups_names=[name])
        return int(answer.results[0].error_code)

    def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions."""
        asked = [{"name": name, "count": partitions, "assignments": None}]
        self.ask(ApiKey.CREATE_PARTITIONS, 3, topics=asked, timeout_ms=10_000, validate_only=False)
        self._until(lambda: self.partitions(name) == partitions)

    def write_state(
        self,
        group: str,
        topic_id: UUID,
        batches: Sequence[tuple[int, int, int, int]],
        *,
        partition: int = 0,
        start_offset: int = 0,
    ) -> int:
        """Writes share state as a leader would; gives the error code."""
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        part = {
            "partition": partition,
            "state_epoch": self.read_state(group, topic_id, partition).state_epoch,
            "leader_epoch": 0,
            "start_offset": start_offset,
            "state_batches": [dict(zip(names, each, strict=True)) for each in batches],
        }
        topics = [{"topic_id": topic_id, "partitions": [part]}]
        answer = self.ask(ApiKey.WRITE_SHARE_GROUP_STATE, 0, group_id=group, topics=topics)
        return int(answer.results[0].partitions[0].error_code)

    def read_state(self, group: str, topic_id: UUID, partition: int = 0) -> Any:
        """Share state as a leader would read it."""
        asked = [{"topic_id": topic_id, "partitions": [{"partition": partition, "leader_epoch": 0}]}]
        state = self.ask(ApiKey.READ_SHARE_GROUP_STATE, 0, group_id=group, topics=asked)
        return state.results[0].partitions[0]

    # records

    def produce_in_transactions(self, topic: str, last: int | None = None) -> None:
        """Two records that are committed, then two that are aborted; a control record behind each two.

        Args:
            last: offset of the last control record, where the topic was not empty.
        """
        producer = Producer(
            {"bootstrap.servers": self.broker.bootstrap, "transactional.id": f"{topic}-writer", **QUIET}
        )
        producer.init_transactions(20)
        for end in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            for number in range(2):
                producer.produce(topic, key=b"k", value=f"{end.__name__}-{number}".encode())
            producer.flush(20)
            end(20)
        # the last marker may arrive after the response
        marker = _LAST_MARKER if last is None else last
        self._until(
            lambda: [each["last_offset"] for each in headers_of(self.fetch(topic, 0, marker))] == [marker]
        )

    def produce(
        self,
        topic: str,
        entries: Sequence[Entry],
        *,
        partition: int = 0,
        headers: Sequence[tuple[str, bytes | None]] = (),
        gzipped: bool = False,
        now: bool = False,
    ) -> None:
        """One batch, of 1970 unless it is to be of now."""
        times = [round(time.time() * 1000)] * len(entries) if now else None
        records = keyed_batch(entries, headers=headers, gzipped=gzipped, timestamps=times)
        data = [{"name": topic, "partition_data": [{"index": partition, "records": records}]}]
        answer = self.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5000, topic_data=data)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer

    def fetch(self, topic: str, partition: int, offset: int) -> bytes:
        """Record batches from an offset on; none where there is nothing."""
        asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 8 << 20}
        answer = self.ask(
            ApiKey.FETCH,
            12,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=8 << 20,
            topics=[{"topic": topic, "partitions": [asked]}],
        )
        return answer.responses[0].partitions[0].records or b""

    def produce_with(self, topic: str, compression: str, entries: Sequence[Entry]) -> None:
        """One batch by librdkafka, in a compression."""
        settings = {"bootstrap.servers": self.broker.bootstrap, "linger.ms": 300, "batch.size": 8 << 20}
        producer = Producer(
            {**settings, "message.max.bytes": 8 << 20, "compression.type": compression, **QUIET}
        )
        for key, value in entries:
            producer.produce(topic, value, key, 0)
        assert producer.flush(20) == 0
        (batch,) = headers_of(self.fetch(topic, 0, 0))
        assert batch["attributes"] & 7, f"{compression}: not compressed"

    def delete_records(self, topic: str, before: int) -> None:
        part = {"partition_index": 0, "offset": before}
        self.ask(ApiKey.DELETE_RECORDS, 2, topics=[{"name": topic, "partitions": [part]}], timeout_ms=5000)

    def _until(self, condition: Any) -> None:
        until = time.monotonic() + _SECONDS_MAX
        while not condition():
            assert time.monotonic() < until, f"{self.kind} never came to it"
            time.sleep(0.01)


def ask(peer: Peer, key: ApiKey, version: int, **fields: Any) -> Any:
    """One request over a connection, and its answer."""
    peer.socket.sendall(codec(key, version).write_request(7, "dlq", fields))
    correlation, rest = peer.receive()
    return codec(key, version).read_response(struct.pack(">i", correlation) + rest)[1]
