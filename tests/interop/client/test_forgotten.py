"""A blocking consumer that nobody closes."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time

from tests.harness.broker import Broker
from tests.harness.clients import produce

from sharecore.admin import BlockingAdmin
from sharecore.client.blocking import ShareConsumer


def consumers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "sharecore consumer"}


def members(bootstrap: str, group: str) -> list[str]:
    with BlockingAdmin(bootstrap_servers=bootstrap) as admin:
        return [member.member_id for member in admin.describe(group).members]


def taken_and_not_closed(bootstrap: str, topic: str, group: str) -> list[bytes | None]:
    consumer = ShareConsumer(
        bootstrap_servers=bootstrap, group_id=group, share_acknowledgement_mode="explicit"
    )
    consumer.subscribe([topic])
    values = [record.value for record in consumer.poll(timeout=30)]
    assert members(bootstrap, group) == [consumer.member_id]
    return values


def test_who_is_forgotten_leaves_the_group(broker: Broker, topic: str, group: str) -> None:
    before = consumers()
    produce(broker.bootstrap, topic, [b"left"])
    assert taken_and_not_closed(broker.bootstrap, topic, group) == [b"left"]
    gc.collect()
    until = time.monotonic() + 10
    while consumers() - before and time.monotonic() < until:
        time.sleep(0.05)
    assert consumers() <= before
    assert members(broker.bootstrap, group) == []
    with ShareConsumer(bootstrap_servers=broker.bootstrap, group_id=group) as successor:
        successor.subscribe([topic])
        (record,) = successor.poll(timeout=10)
        assert (record.value, record.delivery_count) == (b"left", 2)


FORGETS = """
import sys
from sharecore.client.blocking import ShareConsumer

bootstrap, topic, group = sys.argv[1:]
consumer = ShareConsumer(bootstrap_servers=bootstrap, group_id=group)
consumer.subscribe([topic])
print(*[record.value for record in consumer.poll(timeout=30)])
raise ValueError("no more")
"""


def test_a_program_that_ends_leaves_the_group(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"left"])
    program = [sys.executable, "-c", FORGETS, broker.bootstrap, topic, group]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "b'left'\n"), ended.stderr
    assert members(broker.bootstrap, group) == []
    with ShareConsumer(bootstrap_servers=broker.bootstrap, group_id=group) as successor:
        successor.subscribe([topic])
        (record,) = successor.poll(timeout=10)
        assert (record.value, record.delivery_count) == (b"left", 2)
