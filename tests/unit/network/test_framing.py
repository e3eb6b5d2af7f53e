from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecore._core import Framer


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(1, 30), min_size=1, max_size=5))
def test_frames_come_out_whole_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream, framer, frames, at = b"".join(map(framed, bodies)), Framer(1000), [], 0
    while at < len(stream):
        size = cuts[at % len(cuts)]
        frames += framer.feed(stream[at : at + size])
        at += size
    assert frames == bodies


def test_a_size_that_is_cut_in_two() -> None:
    framer = Framer(1000)
    assert framer.feed(framed(b"a") + b"\0\0\0") == [b"a"]
    assert framer.feed(b"\x05hel") == []
    assert framer.feed(b"lo") == [b"hello"]


@pytest.mark.parametrize("size", [1001, 2**31 - 1, -1])
def test_a_frame_that_claims_too_much_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=str(size)):
        Framer(1000).feed(struct.pack(">i", size))
