"""Frames out of a stream, for those who watch one or speak on it."""

from __future__ import annotations

import struct

_SIZE = struct.Struct(">i")
_FRAME_BYTES_MAX = 1 << 30


class Framer:
    """Collects chunks of a stream until frames are whole."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; return the frames that they complete, without their sizes.

        Raises:
            ValueError: a frame claims a size that none has.
        """
        self._data += chunk
        frames, at = [], 0
        while len(self._data) - at >= _SIZE.size:
            size = _SIZE.unpack_from(self._data, at)[0]
            if not 0 <= size <= _FRAME_BYTES_MAX:
                raise ValueError(f"a frame claims {size} bytes")
            end = at + _SIZE.size + size
            if end > len(self._data):
                break
            frames.append(bytes(self._data[at + _SIZE.size : end]))
            at = end
        del self._data[:at]
        return frames
