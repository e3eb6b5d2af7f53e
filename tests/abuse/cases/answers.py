"""Answers that nobody reads: few are made, and their memory is given back."""

from __future__ import annotations

import contextlib
import socket
import time

from tests.abuse.case import MB, Bounds, case
from tests.abuse.peer import Peer
from tests.abuse.subject import READER, Subject
from tests.harness.batches import batch

_FETCH_BYTES = 55 * MB


def _fill(subject: Subject, name: str, megabytes: int) -> None:
    subject.create_topic(name)
    records = batch([bytes(900_000)])
    data = [{"name": name, "partition_data": [{"index": 0, "records": records}]}]
    with subject.connect() as peer:
        for _ in range(megabytes):
            peer.ask("produce", 9, acks=-1, timeout_ms=60_000, topic_data=data)


def _fetch(peer: Peer, name: str) -> bytes:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": _FETCH_BYTES}
    topics = [{"topic": name, "partitions": [partition]}]
    return peer.frame("fetch", 12, max_bytes=_FETCH_BYTES, session_epoch=-1, topics=topics)


def _ask_and_read_nothing(subject: Subject, frame: bytes, user: str | None, count: int, each: int) -> None:
    peers = []
    for _ in range(count):
        peer = subject.connect(user)
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.socket.setblocking(False)
        with contextlib.suppress(OSError):
            peer.socket.send(frame * each)
        peers.append(peer)
    time.sleep(4)
    for peer in peers:
        peer.close()


@case(bounds=Bounds(peak_bytes=256 * MB, disk_bytes=200 * MB), quick=True)
def fetches_that_nobody_reads(subject: Subject) -> None:
    name = f"{READER}-unread"
    _fill(subject, name, 30)
    with subject.connect(READER) as peer:
        frame = _fetch(peer, name)
    _ask_and_read_nothing(subject, frame, READER, 20, 100)


@case(bounds=Bounds(disk_bytes=200 * MB))
def metadata_that_nobody_reads(subject: Subject) -> None:
    with subject.connect() as peer:
        topics = [
            {"name": f"many-{number}-{'n' * 200}", "num_partitions": 10, "replication_factor": 1}
            for number in range(300)
        ]
        peer.ask("create_topics", 5, topics=topics, timeout_ms=60_000)
        frame = peer.frame("metadata", 12, topics=None)
    _ask_and_read_nothing(subject, frame, None, 100, 500)
