"""A broker that asks who its clients are and what they may do, each kind from the same settings."""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.differential.telemetry.both import RECEIVER
from tests.harness import java
from tests.harness.broker import KAFKA_LIBS, SHARECORE, Broker, answers, free_port
from tests.harness.tier import ONE_COPY, SMALL
from tests.harness.wire import Peer

from sharecore.protocol import ApiKey, codec
from sharecore.tier.membership.view import FIRST_NODE_ID

CLOSED = "the connection was closed"
INSIDE = "inside"
"""The connection of the listener without SASL, whose clients may do everything."""
_BEHIND = {
    "group.consumer.max.session.timeout.ms": "3600000",
    "group.consumer.session.timeout.ms": "3600000",
    "group.consumer.assignment.interval.ms": "0",
    # record timestamps come from the requests, and may be old
    "log.retention.ms": "-1",
    # no group may expire during the matrix, which takes longer than the default of ten minutes
    "offsets.retention.check.interval.ms": "86400000",
}
_SECURITY = "org.apache.kafka.common.security"
_PROPERTIES = """
process.roles=broker,controller
node.id=0
log.dirs={home}/data
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=INSIDE://127.0.0.1:{inside},SASL_PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=INSIDE://127.0.0.1:{inside},SASL_PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=INSIDE:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INSIDE
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
listener.name.sasl_plaintext.plain.sasl.jaas.config={security}.plain.PlainLoginModule required {users};
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config={security}.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:super
connection.failed.authentication.delay.ms=20
log.retention.ms=-1
offsets.retention.check.interval.ms=86400000
auto.create.topics.enable=true
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
group.share.assignment.interval.ms=0
group.share.max.session.timeout.ms=3600000
group.share.session.timeout.ms=3600000
group.consumer.assignment.interval.ms=0
group.consumer.max.session.timeout.ms=3600000
group.consumer.session.timeout.ms=3600000
sharecore.telemetry.enable=true
sharecore.metrics.listener=127.0.0.1:{metrics}
"""


class Guarded:
    """One broker process.

    Args:
        home: an empty directory.
        kind: `apache`, `sharecore`, or `node`: one of a tier, in front of an Apache Kafka that asks nobody.
        users: names; the password of each is `of-` and the name.
        more: settings on top.
    """

    def __init__(
        self, home: Path, kind: str, users: Iterable[str], more: Mapping[str, str] | None = None
    ) -> None:
        home.mkdir(parents=True)
        self.kind = kind
        self.node_id = FIRST_NODE_ID if kind == "node" else 0
        self.inside, self.port, controller = free_port(), free_port(), free_port()
        self._home = home
        self._peers: dict[str, Peer] = {}
        self._process: subprocess.Popen[bytes] | None = None
        behind = SMALL | _BEHIND
        self._cluster = (
            Broker(home / "cluster", "apache", behind, libs=KAFKA_LIBS) if kind == "node" else None
        )
        logins = " ".join(f'user_{user}="of-{user}"' for user in (*users, "super"))
        (home / "server.properties").write_text(
            _PROPERTIES.format(
                home=home,
                inside=self.inside,
                port=self.port,
                controller=controller,
                users=logins,
                security=_SECURITY,
                metrics=free_port(),
            )
            + "".join(f"{name}={value}\n" for name, value in (more or {}).items())
        )

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        properties = self._home / "server.properties"
        if self.kind == "apache":
            identity = ("-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(properties), "--standalone")
            java.run("kafka.tools.StorageTool", "format", *identity)
            with properties.open("a") as settings:
                settings.write("metric.reporters=Receiver\n")
            receiver = java.compiled(RECEIVER, KAFKA_LIBS)
            command = java.command("kafka.Kafka", str(properties), classes=receiver)
        else:
            # Apache Kafka 4.3.1 has no dead-letter topics
            features = ("--set", "sharecore.features=share.version=1")
            command = [SHARECORE, "serve", "--config", str(properties), *features]
            if self._cluster is not None:
                self._cluster.start()
                own = [f"{key}={value}" for key, value in ONE_COPY.items()]
                command += ["--upstream", self._cluster.bootstrap]
                command += [part for each in own for part in ("--set", each)]
        with (self._home / "output.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while not answers(self.inside):
            assert self._process.poll() is None, self.log()[-4000:]
            assert time.monotonic() < until, "the broker does not start"
            time.sleep(0.05)

    def stop(self) -> None:
        for name in list(self._peers):
            self.close(name)
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._cluster is not None:
            self._cluster.kill()

    def log(self) -> str:
        return (self._home / "output.log").read_text(errors="replace")

    def close(self, name: str) -> None:
        """End a connection, where there is one of this name."""
        peer = self._peers.pop(name, None)
        if peer is not None:
            with peer:
                pass

    def ask(self, user: str, key: ApiKey, version: int, fields: Mapping[str, Any]) -> Any:
        """Asks as a user, or INSIDE as somebody who may do everything; CLOSED where there is no answer."""
        if user not in self._peers:
            self._peers[user] = self.connect(user)
        return self.exchange(self._peers[user], key, version, fields) or self._lost(user)

    def super(self, key: ApiKey, version: int, **fields: Any) -> Any:
        """Asks as somebody who may do everything."""
        return self.ask(INSIDE, key, version, fields)

    def exchange(
        self, peer: Peer, key: ApiKey, version: int, fields: Mapping[str, Any], client_id: str = "access"
    ) -> Any:
        """Send one request; None where there is no answer."""
        messages = codec(key, version)
        peer.socket.sendall(messages.write_request(7, client_id, fields))
        try:
            correlation, rest = peer.receive()
        except (EOFError, TimeoutError):
            return None
        return messages.read_response(struct.pack(">i", correlation) + rest)[1]

    def _lost(self, user: str) -> str:
        self.close(user)
        return CLOSED

    def connect(self, user: str) -> Peer:
        """Return a connection of a user's own, which the caller closes."""
        peer = Peer(self.inside if user == INSIDE else self.port, 20)
        if user != INSIDE:
            self.exchange(peer, ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
            token = f"\0{user}\0of-{user}".encode()
            answer = self.exchange(peer, ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": token})
            assert answer is not None
            assert answer.error_code == 0, answer
        return peer
