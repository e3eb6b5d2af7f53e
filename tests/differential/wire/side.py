"""One of the two brokers, with its connections."""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.differential.wire.names import NODE_ID
from tests.differential.wire.script import Ask, Fields
from tests.differential.wire.spoil import spoil
from tests.harness.broker import Broker
from tests.harness.tier import ONE_COPY
from tests.harness.wire import Peer

from sharecore.protocol import ApiKey, codec
from sharecore.protocol.malformed import MalformedMessage

SETTINGS = {
    "node.id": str(NODE_ID),
    "broker.rack": "rack-1",
    "auto.create.topics.enable": "false",
    "log.retention.ms": "-1",
    "log.roll.ms": "1000000000000000",
    "log.initial.task.delay.ms": "0",
    "log.flush.start.offset.checkpoint.interval.ms": "50",
    "offsets.topic.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignor.offload.enable": "false",
    "group.consumer.assignor.offload.enable": "false",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.max.size": "4",
    "group.max.size": "4",
    "group.consumer.max.size": "4",
    "group.consumer.migration.policy": "disabled",
    "group.consumer.session.timeout.ms": "600000",
    "group.consumer.max.session.timeout.ms": "600000",
    "group.min.session.timeout.ms": "1000",
    "group.share.max.share.sessions": "4",
}
"""What both brokers are told: members hear of changes at once, and what runs out may run out soon. Records of
1970 and markers of today stay in one segment, behind the end of which Apache Kafka does not read on. It
writes down soon which records were deleted, or a kill brings them back.
"""

TIER = ONE_COPY | {"sharecore.tier.slots": "2"}
"""And what a node is told."""
CLOSED = "the connection was closed"
SILENT = "no answer"
_SIZE = struct.Struct(">i")
_LOADING = {14, 15, 16}
_START_SECONDS_MAX = 600.0
"""A busy machine takes minutes to start Apache Kafka, and a long run shall not end of that."""
_SECONDS_MAX = 300.0
_PATIENCE_SECONDS = 60.0
_MOMENT_SECONDS = 0.03
_CHECKPOINT_SECONDS = 0.2
_REST_SECONDS_MAX = 5.0
_LOOK_SECONDS = 0.002
_LOOKS = 3
"""That find a broker idle, one after the other: a thread may hand its work on to one that was looked at."""


class Side:
    """A broker process.

    Args:
        home: an empty directory.
        kind: `apache` or `sharecore`.
        libs: the folder with Apache Kafka's jars.
        settings: what it is told otherwise than the other broker.
        upstream: the cluster that it is a node in front of.

    Attributes:
        reads_behind: whether records come to it after their producer was answered.
    """

    def __init__(
        self,
        home: Path,
        kind: str,
        libs: Path | None = None,
        settings: Mapping[str, str] | None = None,
        upstream: str = "",
    ) -> None:
        home.mkdir(parents=True)
        self.kind = kind
        self.reads_behind = bool(upstream)
        given = SETTINGS | (TIER if upstream else {}) | dict(settings or {})
        self._broker = Broker(home, kind, given, ("--upstream", upstream) if upstream else (), libs)
        self._peers: dict[str, Peer] = {}

    @property
    def port(self) -> int:
        return self._broker.port

    def start(self) -> None:
        """Start it, and wait until all its coordinators have loaded."""
        self._broker.start(_START_SECONDS_MAX)
        for wanted in _WARM_UP:
            self._until_loaded(wanted)

    def restart(self) -> None:
        time.sleep(_CHECKPOINT_SECONDS)
        self.stop()
        self.start()

    def stop(self) -> None:
        """Kills it; no connection ends before, or what its sessions held might be given back in time."""
        self._broker.kill()
        for name in list(self._peers):
            self.close(name)

    def close(self, name: str) -> None:
        """End a connection, where there is one of this name."""
        peer = self._peers.pop(name, None)
        if peer is not None:
            with peer:
                pass

    def send(self, ask: Ask, fields: dict[str, Any]) -> None:
        """Send a request with these fields."""
        if ask.on not in self._peers:
            self._peers[ask.on] = Peer(self._broker.port, _PATIENCE_SECONDS)
        frame = codec(ask.key, ask.version).write_request(7, "wire", fields)
        if ask.spoilt:
            frame = _spoilt(frame, ask.spoilt)
        with suppress(BrokenPipeError, ConnectionResetError):  # `receive` shows it
            self._peers[ask.on].socket.sendall(frame)

    def receive(self, ask: Ask) -> Any:
        """The answer to what was sent last on this connection; CLOSED where there is none."""
        try:
            correlation, rest = self._peers[ask.on].receive()
        except EOFError:
            self.close(ask.on)
            return CLOSED
        except TimeoutError:
            self.close(ask.on)
            return SILENT
        frame = struct.pack(">i", correlation) + rest
        if not ask.spoilt:
            return codec(ask.key, ask.version).read_response(frame)[1]
        # a changed byte may make it a request of another API, or of a version that is answered with the
        # oldest
        for key, version in ((ask.key, ask.version), (ApiKey.API_VERSIONS, 0)):
            with suppress(MalformedMessage):
                return codec(key, version).read_response(frame)[1]
        return f"{len(frame)} bytes"

    def is_answered(self, connection: str) -> bool:
        """Whether something has come on a connection, or does within moments."""
        return bool(select.select([self._peers[connection].socket], [], [], _MOMENT_SECONDS)[0])

    def rest(self) -> None:
        """Wait until the broker has read and done whatever it was sent, for some seconds at most: what waits
        for something waits then, on a busy machine too.
        """
        until = time.monotonic() + _REST_SECONDS_MAX
        looks = 0
        while looks < _LOOKS and time.monotonic() < until:
            looks = 0 if self._broker.is_busy() else looks + 1
            time.sleep(_LOOK_SECONDS)

    def ask(self, ask: Ask) -> Any:
        """Send a request whose fields need no translation, and give its answer."""
        self.send(ask, ask.fields)
        return self.receive(ask)

    def _until_loaded(self, ask: Ask) -> None:
        until = time.monotonic() + _SECONDS_MAX
        while _LOADING & set(_codes(self.ask(ask))):
            if time.monotonic() > until:
                raise RuntimeError(
                    f"{self.kind} still loads its coordinators:\n{self._broker.read_log()[-2000:]}"
                )
            time.sleep(0.05)


def _spoilt(frame: bytes, changes: Sequence[Fields]) -> bytes:
    """A frame with changes to what it holds; its length is right again, unless that is changed as well."""
    held = spoil(frame[_SIZE.size :], changes)
    sizes = [change["size"] for change in changes if "size" in change]
    return _SIZE.pack(sizes[-1] if sizes else len(held)) + held


def _codes(answer: Any) -> list[int]:
    """Every error code of an answer."""
    if isinstance(answer, tuple) and hasattr(answer, "_fields"):
        own = [answer.error_code] if hasattr(answer, "error_code") else []
        return own + [code for value in answer for code in _codes(value)]
    return [code for value in answer for code in _codes(value)] if isinstance(answer, list) else []


def _ask(key: ApiKey, version: int, **fields: Any) -> Ask:
    return Ask(key.name, version, fields, "warm-up")


_GROUP_COORDINATOR = _ask(ApiKey.FIND_COORDINATOR, 6, key_type=0, coordinator_keys=["warm-up"])
_TRANSACTION_COORDINATOR = _ask(ApiKey.FIND_COORDINATOR, 6, key_type=1, coordinator_keys=["warm-up"])
_TRANSACTIONS = _ask(
    ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[f"warm-up-{number}" for number in range(8)]
)
_PRODUCER_IDS = _ask(ApiKey.INIT_PRODUCER_ID, 5, transactional_id=None, transaction_timeout_ms=0)
_STATE_COORDINATOR = _ask(
    ApiKey.FIND_COORDINATOR, 6, key_type=2, coordinator_keys=["warm-up:AAAAAAAAAAAAAAAAAAAAAQ:0"]
)
_GROUPS = _ask(ApiKey.LIST_GROUPS, 5, states_filter=[], types_filter=[])
# enough groups and keys to use every partition of both topics
_KEPT = _ask(ApiKey.DESCRIBE_GROUPS, 5, groups=[f"warm-up-{number}" for number in range(8)])
_STATES = [
    _ask(
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        0,
        group_id=f"warm-up-{number}",
        topics=[{"topic_id": UUID(int=1 << 64 | 1), "partitions": [{"partition": 0, "leader_epoch": -1}]}],
    )
    for number in range(8)
]
_WARM_UP = [
    _GROUP_COORDINATOR,
    _TRANSACTION_COORDINATOR,
    _TRANSACTIONS,
    _PRODUCER_IDS,
    _STATE_COORDINATOR,
    _GROUPS,
    _KEPT,
    *_STATES,
]
