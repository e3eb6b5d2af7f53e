"""A broker in a process of its own: sharecore as it was installed, or Apache Kafka to judge the tests."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARECORE = os.environ.get("SHARECORE", str(Path(sys.executable).with_name("sharecore")))
KAFKA_LIBS = Path(os.environ.get("KAFKA_LIBS", ROOT / "build/jars/kafka-4.3.1"))
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 60.0

# share groups that notice every change at once and allow short locks
QUICK_GROUPS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
}
ONE_NODE = {
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


# below the kernel's ports for clients; each of up to 16 parallel test processes uses its own part
_PORTS = range(12_000, 32_000)
_PORT_SHARES = 16
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PORT_SHARES
_ports = (port for port in random.sample(_PORTS, len(_PORTS)) if port % _PORT_SHARES == _WORKER)


def free_port() -> int:
    """Return a port that nothing listens on, and that no other test of this run was given."""
    for port in _ports:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


def answers(port: int, timeout: float = 2.0) -> bool:
    """Whether ApiVersions v0 is answered without an error."""
    client = b"harness"
    request = struct.pack(">hhih", 18, 0, 1, len(client)) + client
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout) as peer:
            peer.sendall(struct.pack(">i", len(request)) + request)
            with peer.makefile("rb") as stream:
                head = stream.read(10)
    except OSError:
        return False
    return len(head) == 10 and struct.unpack(">iih", head)[1:] == (1, 0)


class Broker:
    """One broker with a home of its own: properties, data and log; it may be killed and started again.

    Args:
        home: an empty directory.
        kind: `sharecore` or `apache`.
        settings: server properties beyond those that make Apache Kafka a cluster of one.
        arguments: more of `sharecore serve`'s command line.
        libs: where Apache Kafka's jars are; the ones of the tests when not given.
        program: another `sharecore` than the one of the tests.
    """

    def __init__(
        self,
        home: Path,
        kind: str = "sharecore",
        settings: Mapping[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        libs: Path | None = None,
        program: str = SHARECORE,
    ) -> None:
        self._libs = libs or KAFKA_LIBS
        self._program = program
        self.environment: dict[str, str] = {}
        """More variables of the process."""
        self.kind = kind
        self.home = home
        self.port = free_port()
        self.log = home / "output.log"
        self.arguments = arguments
        self._settings = ONE_NODE | dict(settings or {})
        self._extra_port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        (home / "data").mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker was never started"
        return self._process.pid

    def start(self, seconds_max: float = START_SECONDS_MAX) -> float:
        """Start the process; return the seconds until it answered its first request.

        Args:
            seconds_max: it fails where the broker takes longer.
        """
        properties = self.home / "server.properties"
        settings = dict(self._settings)
        if self.kind == "sharecore":
            settings |= {
                "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
                "log.dirs": str(self.home / "data"),
            }
            command = [self._program, "serve", "--config", str(properties), *self.arguments]
        else:
            command = ["bash", str(ROOT / "tests/conformance/brokers/apache.sh")]
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        began = time.monotonic()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | self._apache_environment(properties) | self.environment,
                start_new_session=True,
            )
        while not answers(self.port):
            if self._process.poll() is not None:
                raise RuntimeError(
                    f"the broker ended with {self._process.returncode}:\n{self.read_log()[-4000:]}"
                )
            if time.monotonic() - began > seconds_max:
                self.kill()
                raise RuntimeError(f"no answer within {seconds_max} s:\n{self.read_log()[-4000:]}")
            time.sleep(0.01)
        return time.monotonic() - began

    def _apache_environment(self, properties: Path) -> dict[str, str]:
        return {
            "KAFKA_LIBS": str(self._libs),
            "APACHE_UNSTABLE": "false",
            "SUITE_ROLE": "broker",
            "SUITE_NODE_ID": self._settings.get("node.id", "0"),
            "SUITE_HOST": "127.0.0.1",
            "SUITE_LISTENER": "EXTERNAL",
            "SUITE_PORT": str(self.port),
            "SUITE_EXTRA_PORT": str(self._extra_port),
            "SUITE_DATA": str(self.home / "data"),
            "SUITE_PROPS": str(properties),
            "SUITE_METADATA_VERSION": "",
            "SUITE_FEATURES": "",
        }

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def terminate(self) -> int:
        """SIGTERM; returns the exit status, and fails where the broker does not end in time."""
        assert self._process is not None, "the broker was never started"
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end of the process; return its exit status."""
        assert self._process is not None, "the broker was never started"
        try:
            return self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """SIGKILL, to everything that the command started."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def read_log(self) -> str:
        return self.log.read_text(errors="replace")

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_busy(self) -> bool:
        """Whether any of its threads runs, is ready to, or waits for the disk; a JIT's do not count."""
        for thread in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                name, _, fields = (thread / "stat").read_text().rpartition(") ")
                if fields[0] in "RD" and "CompilerThre" not in name:
                    return True
        return False

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
