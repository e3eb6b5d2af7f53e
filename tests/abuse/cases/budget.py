"""Memory for requests: those that wait, and those that never end, leave room for others."""

from __future__ import annotations

import contextlib
import time

from tests.abuse.case import MB, Bounds, case
from tests.abuse.judge import at_once
from tests.abuse.peer import Closed, Peer, sized
from tests.abuse.subject import NOBODY, READER, Subject

_LONG = 1_800_000
_FOREVER = 2**31 - 1


def _partial(subject: Subject, user: str | None, claimed: int, sent: int, seconds: float) -> None:
    """Begin requests over and over, and end none."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(Closed, OSError), subject.connect(user, timeout_s=2) as peer:
            peer.send(sized(bytes(sent), claimed))
            peer.is_closed()


@case(quick=True)
def large_requests_that_do_not_end(subject: Subject) -> None:
    at_once(6, lambda _: _partial(subject, NOBODY, 100 * MB, 99 * MB, 3))


@case()
def requests_of_a_megabyte_that_do_not_end(subject: Subject) -> None:
    at_once(300, lambda _: _partial(subject, NOBODY, MB, MB - 1000, 6))


@case()
def requests_that_claim_much_and_send_nothing(subject: Subject) -> None:
    at_once(300, lambda _: _partial(subject, NOBODY, 100 * MB, 10, 6))


@case()
def requests_that_come_in_drops(subject: Subject) -> None:
    def drip(_: int) -> None:
        end = time.monotonic() + 6
        while time.monotonic() < end:
            with contextlib.suppress(Closed, OSError), subject.connect(NOBODY, timeout_s=2) as peer:
                peer.send(sized(bytes(900_000), MB))
                while time.monotonic() < end:
                    peer.send(b"x")
                    time.sleep(0.02)

    at_once(100, drip)


@case(quick=True)
def joins_that_wait(subject: Subject) -> None:
    join = {
        "group_id": f"{READER}-parked",
        "session_timeout_ms": _LONG,
        "rebalance_timeout_ms": _LONG,
        "member_id": "",
        "protocol_type": "consumer",
    }
    peers: list[Peer] = []
    for _ in range(8):
        peers.append(subject.connect(READER))
        protocols = [{"name": "range", "metadata": bytes(20 * MB)}]
        with contextlib.suppress(Closed, TimeoutError):
            peers[-1].send(peers[-1].frame("join_group", 3, **join, protocols=protocols))
    for peer in peers:
        peer.close()


@case(quick=True)
def fetches_that_wait(subject: Subject) -> None:
    name = f"{READER}-waits"
    subject.create_topic(name)
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": MB}
    peers: list[Peer] = []
    for _ in range(8):
        peers.append(subject.connect(READER))
        frame = peers[-1].frame(
            "fetch",
            11,
            max_wait_ms=_FOREVER,
            min_bytes=_FOREVER,
            max_bytes=MB,
            session_epoch=-1,
            topics=[{"topic": name, "partitions": [partition]}],
            forgotten_topics_data=[{"topic": "x" * 30_000, "partitions": []}] * 650,
        )
        with contextlib.suppress(Closed, TimeoutError):
            peers[-1].send(frame)
    time.sleep(1)
    for peer in peers:
        peer.close()


@case(bounds=Bounds(peak_bytes=100 * MB), quick=True)
def strangers_that_begin_requests(subject: Subject) -> None:
    def begin(_: int) -> None:
        end = time.monotonic() + 3
        while time.monotonic() < end:
            with contextlib.suppress(Closed, OSError), subject.connect_bare(timeout_s=2) as peer:
                peer.send(sized(bytes(523_000), 524_288))
                peer.is_closed()

    at_once(200, begin)


@case(secure=False)
def anybodys_requests_that_do_not_end(subject: Subject) -> None:
    """Without users all share an address: others get through as those that stall are closed."""
    at_once(6, lambda _: _partial(subject, None, 100 * MB, 99 * MB, 6))
