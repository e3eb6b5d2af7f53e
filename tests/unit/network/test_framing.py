from __future__ import annotations

import asyncio
import struct
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecore.network import Answer, Connection, Limits, Peer, Server


class Transport:
    """The transport of a client that never reads."""

    def __init__(self) -> None:
        self.closed = False

    def get_extra_info(self, name: str) -> None:
        return None

    def set_write_buffer_limits(self, high: int) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Stream:
    """A connection that is fed bytes, and keeps the resulting frames."""

    def __init__(self, *, buffered: bool, frame_bytes_max: int = 100_000) -> None:
        self.frames: list[bytes] = []
        self.server = Server(self._take, Limits(frame_bytes_max=frame_bytes_max))
        self.connection = Connection(self.server, 1, "PLAINTEXT", Peer("127.0.0.1", 1))
        self.transport = Transport()
        self.connection.connection_made(cast(asyncio.Transport, self.transport))
        self._buffered = buffered

    def feed(self, data: bytes) -> list[bytes]:
        before = len(self.frames)
        if not self._buffered:
            self.connection.data_received(data)
        while self._buffered and data:
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]
        return self.frames[before:]

    def _take(self, connection: Connection, frame: bytes) -> Answer:
        self.frames.append(frame)
        return None


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@pytest.mark.heavy
@pytest.mark.parametrize("buffered", [False, True])
@given(
    bodies=st.lists(st.integers(0, 40) | st.integers(16_000, 80_000), max_size=6),
    cuts=st.lists(st.integers(1, 30) | st.integers(10_000, 70_000), min_size=1, max_size=5),
)
def test_frames_come_out_whole_however_the_stream_is_cut(
    bodies: list[int], cuts: list[int], *, buffered: bool
) -> None:
    frames = [bytes([number + 1]) * size for number, size in enumerate(bodies)]
    data, stream, at, turn = b"".join(map(framed, frames)), Stream(buffered=buffered), 0, 0
    while at < len(data):
        size = cuts[turn % len(cuts)]
        if len(data) > 1000:
            size = max(size, 1000)  # byte by byte is too slow
        stream.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    assert stream.frames == frames
    assert stream.server.budget.used_bytes == 0


@pytest.mark.parametrize("buffered", [False, True])
def test_a_size_that_is_cut_in_two(*, buffered: bool) -> None:
    stream = Stream(buffered=buffered)
    assert stream.feed(framed(b"a") + b"\0\0\0") == [b"a"]
    assert stream.feed(b"\x05hel") == []
    assert stream.feed(b"lo") == [b"hello"]


@pytest.mark.parametrize("size", [1001, 2**31 - 1, -1])
def test_a_frame_that_claims_too_much_closes_its_connection(
    size: int, caplog: pytest.LogCaptureFixture
) -> None:
    stream = Stream(buffered=True, frame_bytes_max=1000)
    assert stream.feed(struct.pack(">i", size)) == []
    assert stream.transport.closed
    assert str(size) in caplog.text
