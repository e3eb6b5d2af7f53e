"""Kill the leader of a home again and again; say how long nothing was answered, and what is lost.

    python -m tests.bucket.takeovers --kills 100 --json takeovers.json

Two brokers share a bucket. One leads and the other stands by; the leader is killed, stopped (SIGTERM),
suspended (SIGSTOP) or cut off from the bucket, and started again as the standby. One producer and one member
of a share group go on all the time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
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
HOWS = ("killed", "stopped", "suspended", "cut off")
_UNSENT_MAX = 1000
_WAIT_S = 120.0
_PAUSE_S = 0.05


class Clients:
    """A producer and a member, which go on while leaders come and go.

    Args:
        bootstrap: the addresses of the brokers.
        rate: records a second.
    """

    def __init__(self, bootstrap: str, rate: int = 100) -> None:
        self.answered: set[int] = set()
        """Numbers of confirmed records."""
        self.answered_at: list[float] = []
        """When records were confirmed, in order."""
        self.settled: set[int] = set()
        """Numbers of records whose acknowledgement was confirmed."""
        self.settled_at: list[float] = []
        """When acknowledgements were confirmed, in order."""
        self.again: set[int] = set()
        """Records that came once more after their acknowledgement had been answered."""
        self._bootstrap = bootstrap
        self._rate = rate
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
        number, began = 0, time.monotonic()
        while not self._ends.is_set():
            due = min(int((time.monotonic() - began) * self._rate), number + _UNSENT_MAX)
            for each in range(number, due):
                while True:
                    try:
                        producer.produce(TOPIC, b"%d" % each, on_delivery=self._noted(each))
                        break
                    except BufferError:
                        producer.poll(0.1)
            number = max(number, due)
            producer.poll(0)
            time.sleep(0.01)
        producer.flush(60)

    def _noted(self, number: int) -> Callable[[object, Message], None]:
        def noted(error: object, message: Message) -> None:
            if error is None:
                self.answered.add(number)
                self.answered_at.append(time.monotonic())

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
                if numbers and not any(errors.values()):
                    self.settled.update(numbers)
                    self.settled_at.append(now)


def first_after(times: Sequence[float], moment: float) -> float | None:
    """Return how long after a moment the first of some times lies, which are in order."""
    place = bisect_right(times, moment)
    return times[place] - moment if place < len(times) else None


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
    until(lambda: first_after(clients.settled_at, began), "a record is acknowledged")
    time.sleep(pause_s)
    moment = time.monotonic()
    end()
    # confirmations of the former leader may still be in transit
    after = time.monotonic() + 0.2
    waited = {}
    for what, times in {"produced": clients.answered_at, "acknowledged": clients.settled_at}.items():
        until(partial(_has_after, times, after), f"a record is {what}")
        seconds = first_after(times, after)
        assert seconds is not None
        waited[what] = seconds + after - moment
    return waited


def _has_after(times: Sequence[float], moment: float) -> bool:
    return first_after(times, moment) is not None


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


class Member:
    """One of the two brokers, with a relay of its own to the bucket if it is to be cut off.

    Args:
        broker: not started.
        relay: forwards its requests to the bucket.
    """

    def __init__(self, broker: Broker, relay: subprocess.Popen[str] | None) -> None:
        self.broker, self._relay = broker, relay

    def end(self, how: str) -> None:
        """End its leadership in one of the `HOWS`."""
        if how == "killed":
            self.broker.kill()
        elif how == "stopped":
            self.broker.terminate()
        elif how == "suspended":
            os.kill(self.broker.pid, signal.SIGSTOP)
        else:
            assert self._relay is not None
            self._relay.send_signal(signal.SIGSTOP)

    def come_back(self, how: str) -> None:
        """Start again as the standby. A broker that has lost its leadership ends first, by itself."""
        if how == "suspended":
            os.kill(self.broker.pid, signal.SIGCONT)
            self.broker.wait()
        elif how == "cut off":
            self.reconnect()
            self.broker.wait()
        self.broker.start()

    def reconnect(self) -> None:
        """Let it reach the bucket again."""
        assert self._relay is not None
        self._relay.send_signal(signal.SIGCONT)


@contextmanager
def relay(endpoint: str) -> Iterator[subprocess.Popen[str]]:
    """Run a relay to a server; the first line that it prints is its port."""
    port = endpoint.rpartition(":")[2]
    command = [sys.executable, "-m", "benches.bucket.latency", port, "--p50", "0", "--p99", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def run(
    home: Path, url: str, counts: Mapping[str, int], seed: int, rate: int = 100, pause_s: float = 2.5
) -> dict[str, object]:
    """End leaderships; return the figures.

    Args:
        home: an empty directory.
        url: the bucket.
        counts: how often, by the `HOWS`; cutting off needs a bucket with `AWS_ENDPOINT_URL`.
        seed: of the moments and the order.
        rate: records a second.
        pause_s: the longest pause between a takeover and the next end.
    """
    moments = random.Random(seed)
    with two(home, url, are_cut_off=bool(counts.get("cut off"))) as members:
        return _run(members, counts, moments, rate, pause_s)


@contextmanager
def two(home: Path, url: str, *, are_cut_off: bool) -> Iterator[Sequence[Member]]:
    """Make two brokers of a home, which are not started.

    Args:
        home: an empty directory.
        url: the bucket.
        are_cut_off: whether each gets a relay to `AWS_ENDPOINT_URL`.
    """
    with ExitStack() as relays:
        members = []
        for node in (1, 2):
            settings = home_settings(url, free_port()) | {"node.id": str(node)}
            between = None
            if are_cut_off:
                between = relays.enter_context(relay(os.environ["AWS_ENDPOINT_URL"]))
                assert between.stdout is not None
                settings["sharecore.bucket.endpoint"] = f"http://127.0.0.1:{int(between.stdout.readline())}"
            members.append(Member(Broker(home / f"broker{node}", settings=settings), between))
        yield members


def _run(
    members: Sequence[Member], counts: Mapping[str, int], moments: random.Random, rate: int, pause_s: float
) -> dict[str, object]:
    leader, standby = members
    leader.broker.start()
    create_topic(leader.broker.bootstrap, TOPIC, 2)
    configure_group(leader.broker.bootstrap, GROUP, share_auto_offset_reset="earliest")
    standby.broker.start()
    until(lambda: names_both(leader.broker.bootstrap), "the leader names its standby")
    clients = Clients(",".join(each.broker.bootstrap for each in members), rate)
    figures: dict[str, dict[str, list[float]]] = {how: {"produced": [], "acknowledged": []} for how in HOWS}
    hows = [how for how in HOWS for _ in range(counts.get(how, 0))]
    moments.shuffle(hows)
    try:
        for number, how in enumerate(hows):
            pause = moments.uniform(0.5, pause_s)
            for what, seconds in outage(clients, pause, partial(leader.end, how)).items():
                figures[how][what].append(seconds)
            print(
                number + 1,
                how,
                *(f"{what} {each[-1]:.2f} s" for what, each in figures[how].items()),
                f"{len(clients.answered):,} records",
                flush=True,
            )
            leader.come_back(how)
            leader, standby = standby, leader
    finally:
        clients.stop()
        for member in members:
            if member.broker.running():
                member.broker.terminate()
    there = numbers_in(leader.broker.home / "data", TOPIC)
    summary: dict[str, object] = {
        "answered": len(clients.answered),
        "lost": len(clients.answered - there.keys()),
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
    parser.add_argument(
        "--suspends", type=int, default=0, help="SIGSTOP of the leader until another one leads"
    )
    parser.add_argument(
        "--cuts",
        type=int,
        default=0,
        help="the leader alone does not reach the bucket: takes AWS_ENDPOINT_URL",
    )
    parser.add_argument("--rate", type=int, default=100, help="records a second")
    parser.add_argument("--pause", type=float, default=2.5, help="seconds at most until the next end")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 16))
    parser.add_argument("--url", help="the bucket; without it a directory")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        (home / "bucket").mkdir()
        url = asked.url or f"file://{home}/bucket"
        print(f"seed {asked.seed}")
        counts = dict(zip(HOWS, (asked.kills, asked.stops, asked.suspends, asked.cuts), strict=True))
        found = run(home, url, counts, asked.seed, asked.rate, asked.pause)
    print(json.dumps(found, indent=2))
    if asked.json is not None:
        asked.json.write_text(json.dumps(found))
    assert found["lost"] == 0
    assert found["acknowledged_and_delivered_again"] == 0


if __name__ == "__main__":
    main()
