"""Sends records at a steady rate, each holding the moment it was sent: pacer BOOTSTRAP TOPIC RATE SECONDS."""

from __future__ import annotations

import sys
import time

from confluent_kafka import Producer


def main(bootstrap: str, topic: str, rate: int, seconds: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all", "log_level": 0})
    began = time.monotonic_ns()
    for number in range(rate * seconds):
        due = began + number * 1_000_000_000 // rate
        producer.poll(0)
        # not in `poll`: it knows whole milliseconds, and spins for less, on a CPU that others need
        while (wait := due - time.monotonic_ns()) > 0:
            time.sleep(wait / 1e9)
        producer.produce(topic, b"%d" % time.monotonic_ns(), partition=0)
    producer.flush(30)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
