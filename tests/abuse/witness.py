"""A client that means well, in a process of its own: how long does it wait while a broker is attacked?

Each request goes on a connection of its own kind, and each kind waits for nobody but the broker:
a small one, one of 750 kB, and a record of 1 kB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from typing import NamedTuple

from tests.abuse.peer import Peer
from tests.harness.batches import batch

TOPIC = "witness"
ANSWER_S_MAX = 120.0
_PAUSE_S = {"small": 0.02, "large": 0.2, "record": 0.1}


class Waits(NamedTuple):
    """The longest waits in seconds; one that has not ended counts as long as it took."""

    small: float
    large: float
    record: float
    error: str

    @property
    def longest(self) -> float:
        return max(self.small, self.large, self.record)


class Witness:
    """Starts the process, and ends it.

    Args:
        port: of a listener without SASL.
    """

    def __init__(self, port: int) -> None:
        command = [sys.executable, "-m", "tests.abuse.witness", str(port)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            self._process.kill()
            raise RuntimeError("the broker does not serve the witness")

    def waits(self) -> Waits:
        """End the process, and return how long it has waited."""
        out, _ = self._process.communicate("\n")
        return Waits(**json.loads(out))

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def _watch(port: int) -> None:
    longest = dict.fromkeys(_PAUSE_S, 0.0)
    since: dict[str, float] = {}
    errors: list[str] = []
    ended = threading.Event()
    record = batch([b"x" * 1000])

    def ask(kind: str, peer: Peer) -> None:
        if kind == "small":
            peer.ask("api_versions", 0)
        elif kind == "large":
            peer.ask("find_coordinator", 4, key_type=0, coordinator_keys=["k" * 30_000] * 25)
        else:
            data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": record}]}]
            answer = peer.ask("produce", 9, acks=-1, timeout_ms=60_000, topic_data=data)
            assert answer.responses[0].partition_responses[0].error_code == 0, answer

    def watch(kind: str, peer: Peer) -> None:
        try:
            while not ended.is_set():
                since[kind] = time.monotonic()
                ask(kind, peer)
                longest[kind] = max(longest[kind], time.monotonic() - since.pop(kind))
                ended.wait(_PAUSE_S[kind])
        except Exception as error:
            errors.append(f"{kind}: {type(error).__name__} {error}"[:200])

    with Peer(port) as peer:
        peer.ask("create_topics", 5, topics=[{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}])
    threads = []
    for kind in _PAUSE_S:
        peer = Peer(port, ANSWER_S_MAX)
        ask(kind, peer)  # what the first one loads is not a delay caused by an attack
        threads.append(threading.Thread(target=watch, args=(kind, peer), daemon=True))
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    sys.stdin.readline()
    ended.set()
    end = time.monotonic() + ANSWER_S_MAX
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))
    for kind, began in since.items():
        longest[kind] = max(longest[kind], time.monotonic() - began)
    print(json.dumps({**longest, "error": "; ".join(errors)}))


if __name__ == "__main__":
    _watch(int(sys.argv[1]))
