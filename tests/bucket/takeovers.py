"""Kill the leader of a home again and again; say how long nothing was answered, and what is lost.

    python -m tests.bucket.takeovers --kills 100 --json takeovers.json

Two brokers share a bucket. One leads and the other stands by; the leader is killed, or stopped, and started
again as the standby. One producer and one member of a share group go on all the time.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from tests.bucket.home import TOPIC, home_settings, numbers_in
from tests.harness.broker import Broker, free_port
from tests.harness.clients import QUIET, configure_group, create_topic

from sharecore.client.blocking import ShareConsumer
from sharecore.errors import KafkaError

GROUP = "workers"
_WAIT_S = 120.0
_PAUSE_S = 0.05


class Clients:
    """A producer and a member, which go on while leaders come and go.

    Args:
        bootstrap: the addresses of the brokers.
    """

    def __init__(self, bootstrap: str) -> None:
        self.answered: dict[int, float] = {}
        """Records by number, and when they were answered."""
        self.settled: dict[int, float] = {}
        """Records whose acknowledgement was answered, and when that was first so."""
        self.again: set[int] = set()
        """Records that came once more after their acknowledgement had been answered."""
        self._bootstrap = bootstrap
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._produce, self._consume)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _produce(self) -> None:
        # unconfirmed records are sent again, in order
        settings = {"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "linger.ms": 0}
        producer = Producer(settings | QUIET)
        number = 0
        while not self._ends.is_set():
            producer.produce(TOPIC, b"%d" % number, on_delivery=self._noted(number))
            number += 1
            producer.poll(0)
            time.sleep(0.01)
        producer.flush(60)

    def _noted(self, number: int) -> Callable[[object, Message], None]:
        def noted(error: object, message: Message) -> None:
            if error is None:
                self.answered[number] = time.monotonic()

        return noted

    def _consume(self) -> None:
        while not self._ends.is_set():
            try:
                self._consume_until_an_error()
            except KafkaError:  # noqa: PERF203 - a broker is away
                time.sleep(_PAUSE_S)

    def _consume_until_an_error(self) -> None:
        settings = {"bootstrap.servers": self._bootstrap, "group.id": GROUP}
        with ShareConsumer(settings, share_acknowledgement_mode="explicit") as consumer:
            consumer.subscribe([TOPIC])
            while not self._ends.is_set():
                batch = consumer.poll(timeout=0.2)
                numbers = [int(record.value or b"") for record in batch]
                self.again.update(each for each in numbers if each in self.settled)
                for record in batch:
                    consumer.acknowledge(record)
                errors = consumer.commit_sync()
                now = time.monotonic()
                if not any(errors.values()):
                    for each in numbers:
                        self.settled.setdefault(each, now)


def first_after(times: Iterable[float], moment: float) -> float | None:
    """Return how long after a moment the first of some times lies."""
    return min((each - moment for each in list(times) if each > moment), default=None)


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for something; fail if it takes too long."""
    end = time.monotonic() + _WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(_PAUSE_S)


def outage(clients: Clients, pause_s: float, end: Callable[[], object]) -> dict[str, float]:
    """End the leader after a pause; return how long no record, and no acknowledgement, is confirmed."""
    began = time.monotonic()
    until(lambda: first_after(clients.settled.values(), began), "a record is acknowledged")
    time.sleep(pause_s)
    moment = time.monotonic()
    end()
    # confirmations of the former leader may still be in transit
    after = time.monotonic() + 0.2
    waited = {}
    for what, times in {"produced": clients.answered, "acknowledged": clients.settled}.items():
        until(partial(_has_after, times, after), f"a record is {what}")
        seconds = first_after(times.values(), after)
        assert seconds is not None
        waited[what] = seconds + after - moment
    return waited


def _has_after(times: dict[int, float], moment: float) -> bool:
    return first_after(times.values(), moment) is not None


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def names_both(bootstrap: str) -> bool:
    """Whether a leader has read of its standby, so that clients know it."""
    try:
        found = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics(timeout=5)
    except KafkaException:
        return False
    return len(found.brokers) == 2


def run(home: Path, url: str, kills: int, stops: int, seed: int) -> dict[str, object]:
    """Kill and stop leaders; return the figures."""
    moments = random.Random(seed)
    brokers = [
        Broker(home / f"broker{node}", settings=home_settings(url, free_port()) | {"node.id": str(node)})
        for node in (1, 2)
    ]
    leader, standby = brokers
    leader.start()
    create_topic(leader.bootstrap, TOPIC, 2)
    configure_group(leader.bootstrap, GROUP, share_auto_offset_reset="earliest")
    standby.start()
    until(lambda: names_both(leader.bootstrap), "the leader names its standby")
    clients = Clients(",".join(each.bootstrap for each in brokers))
    figures: dict[str, dict[str, list[float]]] = {
        how: {"produced": [], "acknowledged": []} for how in ("killed", "stopped")
    }
    hows = ["killed"] * kills + ["stopped"] * stops
    moments.shuffle(hows)
    try:
        for number, how in enumerate(hows):
            end = leader.kill if how == "killed" else leader.terminate
            for what, seconds in outage(clients, moments.uniform(0.5, 2.5), end).items():
                figures[how][what].append(seconds)
            print(
                number + 1,
                how,
                *(f"{what} {each[-1]:.2f} s" for what, each in figures[how].items()),
                flush=True,
            )
            leader, standby = standby, leader
            standby.start()
    finally:
        clients.stop()
        for broker in brokers:
            if broker.running():
                broker.terminate()
    there = numbers_in(leader.home / "data", TOPIC)
    summary: dict[str, object] = {
        "answered": len(clients.answered),
        "lost": len(clients.answered.keys() - there),
        "acknowledged": len(clients.settled),
        "acknowledged_and_delivered_again": len(clients.again),
    }
    for how, measured in figures.items():
        for what, times in measured.items():
            if times:
                summary[f"{how}_{what}_s"] = {
                    "n": len(times),
                    "p50": round(percentile(times, 0.5), 2),
                    "p99": round(percentile(times, 0.99), 2),
                    "max": round(max(times), 2),
                }
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="kill -9 of the leader")
    parser.add_argument("--stops", type=int, default=10, help="SIGTERM to the leader")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--url", help="the bucket; without it a directory")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        (home / "bucket").mkdir()
        url = asked.url or f"file://{home}/bucket"
        print(f"seed {asked.seed}")
        found = run(home, url, asked.kills, asked.stops, asked.seed)
    print(json.dumps(found, indent=2))
    if asked.json is not None:
        asked.json.write_text(json.dumps(found))
    assert found["lost"] == 0
    assert found["acknowledged_and_delivered_again"] == 0


if __name__ == "__main__":
    main()
