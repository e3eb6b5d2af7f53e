"""The broker under attack, its users, and how much of the machine it takes."""

from __future__ import annotations

import contextlib
import os
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import uuid4

from tests.abuse.peer import Peer
from tests.harness.broker import SHARECORE, Broker, free_port
from tests.harness.tier import ONE_COPY

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

PASSWORD = "secret"
ADMIN, NOBODY, READER = "admin", "mallory", "eve"
"""A super user, a user without rights, and one who may read topics and groups that begin with `eve-`."""
_JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_{ADMIN}="{PASSWORD}" user_{NOBODY}="{PASSWORD}" user_{READER}="{PASSWORD}";'
)
_SECURITY = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": _JAAS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{ADMIN}",
    "sharecore.telemetry.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
}
_TOPIC, _GROUP, _PREFIXED, _READ, _ALLOW = 2, 3, 4, 3, 3


class Subject:
    """A broker process with all its listeners.

    The listener without SASL serves whoever connects: as super user where there are rights.

    Args:
        home: an empty directory.
        settings: more server properties.
        secure: whether there are users and rights, and a listener with SASL.
        program: the `sharecore` to attack.
        upstream: bootstrap servers of a cluster; the subject is a node of a tier in front of it.

    Attributes:
        is_node: whether it is such a node.
    """

    def __init__(
        self,
        home: Path,
        settings: Mapping[str, str] | None = None,
        *,
        secure: bool = True,
        program: str = SHARECORE,
        upstream: str = "",
    ) -> None:
        self.secure, self.is_node = secure, bool(upstream)
        self.sasl_port, self.metrics_port, self.page_port = free_port(), free_port(), free_port()
        properties = {
            "sharecore.metrics.listener": f"127.0.0.1:{self.metrics_port}",
            "sharecore.page.listener": f"127.0.0.1:{self.page_port}",
            **(_SECURITY if secure else {}),
            **(settings or {}),
        }
        arguments: tuple[str, ...] = ()
        if upstream:
            properties |= ONE_COPY | {"sharecore.tier.state.topic": f"__abused-{uuid4()}"}
            arguments = ("--upstream", upstream)
        self._broker = Broker(home, "sharecore", properties, program=program)
        if secure:
            listeners = (
                f"listeners=PLAINTEXT://127.0.0.1:{self.port},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}"
            )
            arguments += ("--set", listeners)
        self._broker.arguments = arguments
        self._offered: dict[int, int] = {}

    @property
    def port(self) -> int:
        """Port of the listener without SASL."""
        return self._broker.port

    @property
    def pid(self) -> int:
        return self._broker.pid

    def start(self) -> None:
        """Start the broker, and give the reader its right."""
        self._broker.start()
        if self.secure:
            allowed = [
                {
                    "resource_type": kind,
                    "resource_name": f"{READER}-",
                    "resource_pattern_type": _PREFIXED,
                    "principal": f"User:{READER}",
                    "host": "*",
                    "operation": _READ,
                    "permission_type": _ALLOW,
                }
                for kind in (_TOPIC, _GROUP)
            ]
            with self.connect() as peer:
                peer.ask("create_acls", 3, creations=allowed)
        with self.connect() as peer:  # what a client's first request loads is not growth
            peer.ask("metadata", 12, topics=None)
            offered = peer.ask("api_versions", 3, client_software_name="abuse", client_software_version="1")
        self._offered = {each.api_key: each.max_version for each in offered.api_keys}

    def newest(self, api: ApiKey, wanted: int) -> int:
        """Return the newest version up to `wanted` that is offered; -1 if the API is not.

        A node of a tier offers no more than its cluster serves.
        """
        return min(wanted, self._offered.get(api, -1))

    def stop(self) -> None:
        """Kill the broker."""
        self._broker.kill()

    def connect(self, user: str | None = None, *, timeout_s: float = 30) -> Peer:
        """Connect, and log in as `user` where one is named."""
        peer = Peer(self.port if user is None else self.sasl_port, timeout_s)
        if user is not None:
            peer.log_in(user, PASSWORD)
        return peer

    def connect_bare(self, *, timeout_s: float = 30) -> Peer:
        """Connect to the listener that asks who the client is, and say nothing yet."""
        return Peer(self.sasl_port, timeout_s)

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic, with settings whose dots are written as underscores."""
        settings = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": settings}
        with self.connect() as peer:
            created = peer.ask("create_topics", 5, topics=[topic], timeout_ms=30_000).topics[0]
        # the upstream cluster keeps the topics of earlier cases
        assert created.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), created

    def is_running(self) -> bool:
        return self._broker.running()

    def memory_bytes(self) -> int:
        """Return the resident memory of the process."""
        return self._broker.resident_bytes()

    def memory_peak_bytes(self) -> int:
        """Return the highest resident memory since `forget_peak`."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) << 10

    def forget_peak(self) -> None:
        """Begin a new peak of resident memory."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def log_bytes(self) -> int:
        return self._broker.log.stat().st_size

    def log_text(self) -> str:
        return self._broker.read_log()

    def disk_bytes(self) -> int:
        """Return how much the files of the data directory take."""
        return sum(_file_bytes(self._broker.home / "data"))

    def descriptors(self) -> int:
        """Return how many file descriptors the process has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def scrape(self) -> str:
        """Return the metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=60) as answer:
            text: str = answer.read().decode()
        return text


def _file_bytes(directory: Path) -> Iterator[int]:
    for path in directory.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            if path.is_file():
                yield status.st_blocks * 512


def wait_until(held: object, seconds: float = 30) -> bool:
    """Wait until `held()` is true; return whether it came true in time."""
    assert callable(held)
    end = time.monotonic() + seconds
    while not held():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
