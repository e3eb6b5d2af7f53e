"""A producer and a member of a share group that gets each record at once: how long that took.

Says `ready` once it runs smoothly, and the milliseconds of each record since then when its input ends.

python -m benches.cold.hot BOOTSTRAP TOPIC SECONDS
"""

from __future__ import annotations

import json
import sys
import threading
import time

from confluent_kafka import Producer, ShareConsumer

_WARM_UP_RECORDS = 200


def main() -> None:
    bootstrap, topic, every_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
    connection = {"bootstrap.servers": bootstrap, "log_level": 0}
    ended = threading.Event()

    def produce() -> None:
        producer = Producer(connection | {"linger.ms": 0})
        while not ended.wait(every_s):
            producer.produce(topic, str(time.monotonic_ns()).encode())
            producer.poll(0)

    def watch() -> None:
        sys.stdin.read()
        ended.set()

    consumer = ShareConsumer(connection | {"group.id": "hot"})
    consumer.subscribe([topic])
    for work in (produce, watch):
        threading.Thread(target=work, daemon=True).start()
    waits: list[float] = []
    ready = False
    while not ended.is_set():
        messages = consumer.poll(timeout=0.2)
        now_ns = time.monotonic_ns()
        waits += [(now_ns - int(message.value() or b"0")) / 1e6 for message in messages]
        if not ready and len(waits) >= _WARM_UP_RECORDS:
            print("ready", flush=True)
            ready = True
            waits.clear()
    print(json.dumps(waits), flush=True)
    consumer.close()


if __name__ == "__main__":
    main()
