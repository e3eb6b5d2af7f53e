"""The demo's jobs: run as a program it writes some each second, `sharecore work jobs:resize` does them."""

import itertools
import sys
import time

from confluent_kafka import Producer

from sharecore.client import Record, Retry, worker

TOPIC = "jobs"
POISONED_EACH = 10


def job(number: int) -> bytes:
    """One in ten cannot be done, whoever tries."""
    return b"poisoned" if number % POISONED_EACH == 0 else b"image-%d" % number


@worker(TOPIC, concurrency=4, retry=Retry(attempts=1))
def resize(record: Record) -> None:
    """Take a moment. A job that fails is released; at the group's limit it leaves a dead letter."""
    if record.value == b"poisoned":
        raise ValueError(f"offset {record.offset} is no image")
    time.sleep(0.2)
    print(f"resized {(record.value or b'').decode()}, delivery {record.delivery_count}", flush=True)


def write(bootstrap: str, pause_s: float = 0.1) -> None:
    """Writes jobs until it is stopped."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in itertools.count(1):
        producer.produce(TOPIC, job(number))
        producer.poll(0)
        time.sleep(pause_s)


if __name__ == "__main__":
    write(sys.argv[1])
