"""How long nothing is confirmed after the leader is killed, and what is lost or delivered again."""

from __future__ import annotations

import random
import socket
import statistics
import time
from pathlib import Path

from benches.bucket.subjects import THREE_COPIES, NatsCluster
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.bucket.home import TOPIC
from tests.bucket.takeovers import GROUP, Clients, outage, run
from tests.harness.broker import QUICK_GROUPS
from tests.harness.clients import QUIET, configure_group
from tests.harness.tier import Cluster

Outages = dict[str, float | None]
"""Figures by name; None: not measured."""
_TIMEOUT_S = 60.0
_READ_S = 10.0


def of_home(scratch: Path, url: str, kills: int, seed: int) -> Outages:
    """Kill the leader of a home, which its standby replaces."""
    found = run(scratch, url, {"killed": kills}, seed)
    produced, settled = found["killed_produced_s"], found["killed_acknowledged_s"]
    assert isinstance(produced, dict)
    assert isinstance(settled, dict)
    return {
        "produced": produced["p50"],
        "longest": produced["max"],
        "acknowledged": settled["p50"],
        "lost": _number(found["lost"]),
        "again": _number(found["acknowledged_and_delivered_again"]),
    }


def _number(value: object) -> float:
    assert isinstance(value, int)
    return value


def of_apache(scratch: Path, kills: int, seed: int) -> Outages:
    """Kill the broker that leads the topic's partitions, and start it again."""
    moments = random.Random(seed)
    cluster = Cluster(scratch, "4.3.1", QUICK_GROUPS | THREE_COPIES)
    cluster.start()
    clients = None
    try:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
        admin.create_topics([NewTopic(TOPIC, 2, replica_assignment=[[0, 1, 2]] * 2)])[TOPIC].result(30)
        configure_group(cluster.bootstrap, GROUP, share_auto_offset_reset="earliest")
        clients = Clients(cluster.bootstrap)
        times: list[dict[str, float]] = []
        for _ in range(kills):
            number = _leader(admin)
            leader = cluster.brokers[number]
            times.append(outage(clients, moments.uniform(0.5, 2.5), leader.kill))
            leader.start()
        clients.stop()
        there = _read(cluster.bootstrap)
        lost, again = len(clients.answered - there), len(clients.again)
        clients = None
    finally:
        if clients is not None:
            clients.stop()
        cluster.kill()
    produced = [each["produced"] for each in times]
    return {
        "produced": statistics.median(produced),
        "longest": max(produced),
        "acknowledged": statistics.median(each["acknowledged"] for each in times),
        "lost": lost,
        "again": again,
    }


def _leader(admin: AdminClient) -> int:
    """Return the broker that leads the first partition."""
    end = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < end:
        leader = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions[0].leader
        if leader >= 0:
            return int(leader)
        time.sleep(0.1)
    raise TimeoutError("the topic has no leader")


def _read(bootstrap: str) -> set[int]:
    """Return the numbers in the topic."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "all", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings | QUIET)
    found: set[int] = set()
    try:
        consumer.subscribe([TOPIC])
        end = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < end:
            messages = consumer.consume(10_000, _READ_S)
            if not messages and found:
                break
            found.update(int(each.value() or b"") for each in messages if each.error() is None)
    finally:
        consumer.close()
    return found


def of_nats(generator: str, scratch: Path, kills: int, seed: int) -> Outages:
    """Kill the server that leads the stream, and start it again."""
    moments = random.Random(seed)
    cluster = NatsCluster(generator, scratch, 1)
    cluster.start()
    produced = []
    try:
        for _ in range(kills):
            cluster.find_any_leader()
            _publish(cluster, _TIMEOUT_S)
            time.sleep(moments.uniform(0.5, 2.5))
            leader, moment = cluster.leader, time.monotonic()
            leader.kill()
            _publish(cluster, _TIMEOUT_S)
            produced.append(time.monotonic() - moment)
            leader.launch()
    finally:
        cluster.kill()
    figures: Outages = dict.fromkeys(("acknowledged", "lost", "again"))
    return {"produced": statistics.median(produced), "longest": max(produced)} | figures


def _publish(cluster: NatsCluster, seconds: float) -> None:
    """Publish until a server confirms that the stream has it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for server in cluster.servers:
            try:
                peer = socket.create_connection(("127.0.0.1", server.address[0]), timeout=1)
            except OSError:
                continue
            try:
                with peer, peer.makefile("rb") as answers:
                    peer.sendall(b'CONNECT {"verbose":false}\r\nSUB inbox 1\r\nPUB work.0 inbox 1\r\nx\r\n')
                    while line := answers.readline():
                        if b'"seq"' in line:
                            return
            except OSError:
                continue
        time.sleep(0.02)
    raise TimeoutError("the stream takes nothing")
