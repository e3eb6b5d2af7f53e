"""Instructions that a small request takes on the event loop, by callgrind: no other program changes them.

`make callgrind-requests` runs each step in a process of its own: a broker, and clients that hand their bytes
to its connections without sockets. Only the loop's thread counts, with the clients in it, which take some
2,000 a request.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import itertools
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from tests.harness.batches import batch

from sharecore import network
from sharecore.broker.broker import Broker
from sharecore.config import BrokerConfig
from sharecore.network import Connection, loop_factory
from sharecore.protocol import ApiKey, codec

RECORD = batch([b"x" * 100])
MARKS = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_ZERO_STATS; }
void end(void) { CALLGRIND_DUMP_STATS; }
"""
_PRODUCE, _FETCH, _ACKNOWLEDGE = (ApiKey.PRODUCE, 13), (ApiKey.SHARE_FETCH, 2), (ApiKey.SHARE_ACKNOWLEDGE, 2)
# where the answer to a ShareFetch says which partition it brings, and where its only batch begins
_PARTITION_AT, _OFFSET_AT = 38, 59
_PLACE = struct.Struct(">i")
_EPOCH = struct.Struct(">i")
_SPAN = struct.Struct(">qq")

Frames = Generator[bytes, bytes, None]


class Peer:
    """A client, as the transport of its connection in the broker: what is written to it is its answer."""

    def __init__(self, broker: Broker, number: int) -> None:
        self.connection = Connection(broker.server, number, "PLAINTEXT", network.Peer("127.0.0.1"))
        self.answered: Callable[[Peer, bytes], None] = lambda peer, answer: None
        self.frames: Frames | None = None
        self.connection.connection_made(cast(asyncio.Transport, self))

    def write(self, data: bytes) -> None:
        self.answered(self, data)

    def get_write_buffer_size(self) -> int:
        return 0  # it reads at once

    def writelines(self, parts: Sequence[bytes]) -> None:
        self.answered(self, b"".join(parts))

    def get_extra_info(self, name: str) -> None:
        return None

    def set_write_buffer_limits(self, high: int) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        raise RuntimeError("the broker has ended a connection")

    def close(self) -> None:
        raise RuntimeError("the broker has closed a connection")

    async def ask(self, api: ApiKey, version: int, **fields: Any) -> Any:
        """One request of whatever kind."""
        answer = asyncio.get_running_loop().create_future()
        self.answered = lambda peer, data: answer.set_result(data)
        self.connection.data_received(codec(api, version).write_request(1, "small", fields))
        return codec(api, version).read_response((await answer)[4:])[1]


class Load:
    """Peers that send their next request in the turn behind the one that answered them."""

    def __init__(self, peers: Sequence[Peer]) -> None:
        self._peers = peers
        self._ready: list[tuple[Peer, bytes]] = []
        self._woken: asyncio.Future[None] | None = None
        for peer in peers:
            peer.answered = self._answered

    async def run(self, rounds: int) -> None:
        """So many rounds of every peer; each ends with its frames' generator yielding nothing."""
        left = dict.fromkeys(self._peers, rounds)
        for peer in self._peers:
            assert peer.frames is not None
            peer.connection.data_received(next(peer.frames))
        while left:
            if not self._ready:
                self._woken = asyncio.get_running_loop().create_future()
                await self._woken
            ready, self._ready = self._ready, []
            for peer, answer in ready:
                assert peer.frames is not None
                frame = peer.frames.send(answer)
                if not frame:  # a round is over
                    left[peer] -= 1
                    if not left[peer]:
                        del left[peer]
                        continue
                    frame = next(peer.frames)
                peer.connection.data_received(frame)
            await asyncio.sleep(0)

    def _answered(self, peer: Peer, answer: bytes) -> None:
        self._ready.append((peer, answer))
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)


class Relay:
    """A producer; a consumer whose fetches acknowledge one record and wait for the next."""

    def __init__(self, consumer: Peer, producer: Peer) -> None:
        self._peers = consumer, producer
        self._got: list[bytes] = []
        self._woken: asyncio.Future[None] | None = None
        for peer in self._peers:
            peer.answered = self._answered

    async def run(self, rounds: int) -> None:
        """So many records."""
        for _ in range(rounds):
            for peer in self._peers:
                assert peer.frames is not None
                peer.connection.data_received(next(peer.frames))
                for _ in range(3):  # what the request has left for later turns of the loop
                    await asyncio.sleep(0)
            while len(self._got) < len(self._peers):
                self._woken = asyncio.get_running_loop().create_future()
                await self._woken
            for peer, answer in zip(self._peers, sorted(self._got, key=len, reverse=True), strict=True):
                assert peer.frames is not None
                assert not peer.frames.send(answer)
            self._got.clear()

    def _answered(self, peer: Peer, answer: bytes) -> None:
        self._got.append(answer)
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)


def _produces(topic_id: Any, partitions: Sequence[int]) -> Frames:
    """A Produce of one record, each round to the next partition."""
    frames = []
    for partition in partitions:
        data = [{"topic_id": topic_id, "partition_data": [{"index": partition, "records": RECORD}]}]
        fields = {"acks": -1, "timeout_ms": 5000, "topic_data": data}
        frames.append(codec(*_PRODUCE).write_request(1, "small", fields))
    expected: int | None = None
    for frame in itertools.cycle(frames):
        answer = yield frame
        expected = expected or len(answer)
        assert len(answer) == expected
        yield b""


def _shares(topic_id: Any, group: str, member: str, partitions: Sequence[int], *, rides: bool) -> Frames:
    """A ShareFetch for one record and what acknowledges it, each round."""
    own = {"group_id": group, "member_id": member}
    limits = {"max_wait_ms": 5000, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 1, "batch_size": 1}
    marks = 0x11223344, 0x1122334455667788

    def frame(kind: tuple[ApiKey, int], topics: list[Any], **fields: Any) -> bytearray:
        return bytearray(
            codec(*kind).write_request(
                1, "small", {**own, "share_session_epoch": marks[0], "topics": topics, **fields}
            )
        )

    def named(indexes: Sequence[int], batches: list[Any]) -> list[Any]:
        parts = [{"partition_index": index, "acknowledgement_batches": batches} for index in indexes]
        return [{"topic_id": topic_id, "partitions": parts}]

    settled = [{"first_offset": marks[1], "last_offset": marks[1], "acknowledge_types": b"\1"}]
    acknowledged = named([marks[0] + 1], settled)
    first = frame(_FETCH, named(partitions, []), **limits)
    plain = frame(_FETCH, [], **limits)
    riding = frame(_FETCH, acknowledged, **limits)
    alone = frame(_ACKNOWLEDGE, acknowledged)
    epoch_at = first.index(_EPOCH.pack(marks[0]))

    def filled(template: bytearray, answer: bytes) -> bytes:
        _EPOCH.pack_into(template, epoch_at, epoch)
        if answer:
            place = answer[_PARTITION_AT : _PARTITION_AT + 4]
            at = places[id(template)]
            template[at[0] : at[0] + 4] = place
            offset = answer[_OFFSET_AT : _OFFSET_AT + 8]
            template[at[1] : at[1] + 16] = offset + offset
        return bytes(template)

    places = {
        id(template): (
            template.index(_PLACE.pack(marks[0] + 1)),
            template.index(_SPAN.pack(marks[1], marks[1])),
        )
        for template in (riding, alone)
    }
    epoch, answer = 0, b""
    while True:
        if rides:
            answer = yield filled(riding if answer else first, answer)
        else:
            answer = yield filled(plain if epoch else first, b"")
            epoch += 1
            done = yield filled(alone, answer)
            assert len(done) < 100, "an error"
        assert len(answer) > 200, "no record"
        epoch += 1
        yield b""


class Step(NamedTuple):
    """One kind of load.

    Args:
        partitions: of each client.
        warm_up, measured: requests, or cycles, of each client; records from end to end.
    """

    clients: int
    partitions: int
    kind: str
    warm_up: int = 40
    measured: int = 60


STEPS = {
    "share-1": Step(1, 16, "share"),
    "share-20": Step(20, 1, "share"),
    "share-1000": Step(1000, 1, "share", 4, 6),
    "ride-1": Step(1, 16, "ride"),
    "ride-20": Step(20, 1, "ride"),
    "produce-100": Step(100, 16, "produce"),
    "end-to-end": Step(2, 16, "end-to-end", 200, 400),
}


async def _prepare(broker: Broker, step: Step) -> list[Peer]:
    peers = [Peer(broker, number + 1) for number in range(step.clients)]
    ask = peers[0].ask
    count = step.clients * step.partitions if step.kind in ("share", "ride") else step.partitions
    topic = {"name": "small", "num_partitions": count, "replication_factor": 1}
    await ask(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000)
    found = await ask(ApiKey.METADATA, 12, topics=[{"name": "small"}])
    topic_id = found.topics[0].topic_id
    if step.kind == "produce":
        for number, peer in enumerate(peers):
            peer.frames = _produces(topic_id, [number % count])
        return peers
    for partition in range(count if step.kind != "end-to-end" else 0):
        data = [{"topic_id": topic_id, "partition_data": [{"index": partition, "records": RECORD}]}]
        for _ in range((step.warm_up + step.measured) // step.partitions + 2):
            await ask(*_PRODUCE, acks=-1, timeout_ms=5000, topic_data=data)
    configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
    resources = [{"resource_type": 32, "resource_name": "g", "configs": configs}]
    await ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    member = {"group_id": "g", "member_id": "joins"}
    epoch = 0
    while True:
        subscribed = None if epoch else ["small"]
        answer = await ask(
            ApiKey.SHARE_GROUP_HEARTBEAT, 1, **member, member_epoch=epoch, subscribed_topic_names=subscribed
        )
        if answer.assignment is not None and answer.assignment.topic_partitions:
            break
        epoch = answer.member_epoch
        await asyncio.sleep(0.05)
    if step.kind == "end-to-end":
        peers[0].frames = _shares(topic_id, "g", "member", range(count), rides=True)
        peers[1].frames = _produces(topic_id, range(count))
        return peers
    for number, peer in enumerate(peers):
        own = range(number * step.partitions, (number + 1) * step.partitions)
        peer.frames = _shares(topic_id, "g", f"member-{number}", own, rides=step.kind == "ride")
    return peers


async def _measured(step: Step, home: str, begin: Callable[[], object], end: Callable[[], object]) -> None:
    config = BrokerConfig.from_properties(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": home,
            "sharecore.durability": "os",
            "connections.max.idle.ms": "-1",
            "offsets.topic.num.partitions": "2",
            "share.coordinator.state.topic.num.partitions": "2",
        }
    )
    broker = Broker(config)
    await broker.start()
    peers = await _prepare(broker, step)
    load = Relay(*peers) if step.kind == "end-to-end" else Load(peers)
    await load.run(step.warm_up)
    begin()
    await load.run(step.measured)
    end()


def _run(work: Awaitable[None]) -> None:
    async def whole() -> None:
        await work

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(whole())


def _inside(name: str, library: str) -> None:
    """In callgrind."""
    marks = ctypes.CDLL(library)
    with tempfile.TemporaryDirectory() as home:
        _run(_measured(STEPS[name], home, marks.begin, marks.end))
        sys.stdout.flush()
        # what is behind the measurement needs no end
        __import__("os")._exit(0)


def count(name: str, scratch: Path, library: Path) -> int:
    """Instructions that one request, or cycle, takes."""
    out = scratch / f"{name}.out"
    command = ["valgrind", "-q", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}"]
    inside = [sys.executable, "-m", "benches.requests.instructions", "--inside", str(library), "--only", name]
    subprocess.run([*command, *inside], check=True)
    found = re.search(r"^(?:totals|summary): (\d+)", Path(f"{out}.1-01").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"callgrind counted nothing for {name}")
    step = STEPS[name]
    return int(found[1]) // (step.measured * (1 if step.kind == "end-to-end" else step.clients))


def main() -> None:
    parser = argparse.ArgumentParser(prog="make callgrind-requests", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--keep", type=Path, help="a directory that exists, for callgrind_annotate")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        _inside(chosen.only[0], chosen.inside)
    with tempfile.TemporaryDirectory() as directory:
        scratch = chosen.keep or Path(directory)
        library = scratch / "marks.so"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)], input=MARKS, text=True, check=True
        )
        for name in chosen.only:
            print(f"{name:12} {count(name, scratch, library):9,} instructions", flush=True)


if __name__ == "__main__":
    main()
