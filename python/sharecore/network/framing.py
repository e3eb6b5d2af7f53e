"""Cuts a stream of bytes into frames: four bytes of size, big-endian, then so many bytes."""

from __future__ import annotations

SIZE_BYTES = 4


class FrameTooLarge(Exception):
    """A frame claims a size that is negative or above the limit."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"a frame claims {size} bytes, {limit} are allowed (socket.request.max.bytes)")


class Framer:
    """Collects chunks of a stream until frames are whole.

    Args:
        frame_bytes_max: a frame that claims more is refused before its body is kept.
    """

    __slots__ = ("_awaited", "_buffered", "_chunks", "frame_bytes_max")

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self._chunks: list[bytes] = []
        self._buffered = 0
        self._awaited = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Takes the next bytes of the stream and gives the frames that they complete, without their sizes.

        Raises:
            FrameTooLarge: nothing after this can be trusted; the connection must go.
        """
        if self._chunks:
            self._chunks.append(chunk)
            self._buffered += len(chunk)
            if self._buffered < self._awaited + SIZE_BYTES:
                return []
            chunk = b"".join(self._chunks)
            self._chunks = []
        self._awaited = 0
        frames = []
        offset, end = 0, len(chunk)
        while end - offset >= SIZE_BYTES:
            size = int.from_bytes(chunk[offset : offset + SIZE_BYTES], "big", signed=True)
            if not 0 <= size <= self.frame_bytes_max:
                raise FrameTooLarge(size, self.frame_bytes_max)
            start = offset + SIZE_BYTES
            if end - start < size:
                self._awaited = size
                break
            offset = start + size
            frames.append(chunk[start:offset])
        if offset < end:
            self._chunks = [chunk[offset:] if offset else chunk]
            self._buffered = end - offset
        return frames
