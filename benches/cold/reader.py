"""Reads a topic from its beginning, and tells how many records it got, in how many seconds.

python -m benches.cold.reader KIND BOOTSTRAP TOPIC PARTITIONS RECORDS GROUP
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sized

from confluent_kafka import Consumer, ShareConsumer, TopicPartition

_SECONDS_MAX = 600


def main() -> None:
    kind, bootstrap, topic, partitions, records, group = sys.argv[1:]
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0}
    poll: Callable[[], Sized]
    if kind == "share":
        member = ShareConsumer(settings)
        member.subscribe([topic])
        poll = lambda: member.poll(timeout=1.0)  # noqa: E731
    else:
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(topic, number, 0) for number in range(int(partitions))])
        poll = lambda: consumer.consume(500, timeout=1.0)  # noqa: E731
    seen, began, deadline = 0, None, time.monotonic() + _SECONDS_MAX
    while seen < int(records) and time.monotonic() < deadline:
        got = poll()
        began = began or time.monotonic()
        seen += len(got)
    print(seen, time.monotonic() - (began or deadline))


if __name__ == "__main__":
    main()
