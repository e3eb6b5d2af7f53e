"""Many consumers of one partition: each record is leased to one of them at a time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from tests.harness.broker import ROOT, Broker
from tests.harness.clients import ACCEPT, commit, produce, settle, share_consumer

RECORDS = 5_000
BATCH = 100
HOLDER = """
import sys
from tests.harness.clients import share_consumer, take
bootstrap, group, topic = sys.argv[1:]
with share_consumer(bootstrap, group, [topic]) as consumer:
    print(*(message.offset() for message in take(consumer)), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("members", [2, 10])
def test_no_record_is_delivered_twice_while_leased(
    broker: Broker, topic: str, group: str, members: int
) -> None:
    for _ in range(RECORDS // BATCH):
        # one batch per record: a fetch takes whole batches, and must leave some
        produce(broker.bootstrap, topic, [b"x" * 50] * BATCH)
    taken: list[list[tuple[int, int]]] = [[] for _ in range(members)]
    failures: list[BaseException] = []
    all_here = threading.Barrier(members)
    shared = threading.Event()
    until = time.monotonic() + 120

    def member(number: int) -> None:
        mine = taken[number]
        settings = {"max.poll.records": 50}
        try:
            with share_consumer(broker.bootstrap, group, [topic], **settings) as consumer:
                all_here.wait(60)
                while sum(map(len, taken)) < RECORDS:
                    assert time.monotonic() < until, "not everything was delivered"
                    for message in consumer.poll(0.2):
                        mine.append((message.offset() or 0, message.delivery_count() or 0))
                        consumer.acknowledge(message, ACCEPT)
                    if sum(1 for theirs in taken if theirs) > 1:
                        shared.set()
                    elif mine:
                        # on a busy machine one could finish before the next has started
                        assert shared.wait(30), "one member got everything"
                    commit(consumer)
        except BaseException as failure:  # raised by the test
            failures.append(failure)

    threads = [threading.Thread(target=member, args=(number,)) for number in range(members)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    deliveries = Counter(delivery for mine in taken for delivery in mine)
    assert deliveries == {(offset, 1): 1 for offset in range(RECORDS)}


def test_a_killed_consumer_loses_its_records_to_the_next(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"x"] * 20)
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, broker.bootstrap, group, topic],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert child.stdout is not None
    held = {int(offset) for offset in child.stdout.readline().split()}
    assert held
    child.kill()
    child.communicate()
    # its connection is closed, which ends its session: the lock of 30 s is not waited for
    with share_consumer(broker.bootstrap, group, [topic]) as successor:
        seen = settle(successor, 20, timeout=15)
    assert {message.offset() for message in seen} == set(range(20))
    assert {message.offset() for message in seen if message.delivery_count() == 2} == held
