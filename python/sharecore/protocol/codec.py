"""The reader and writer of one API in one version, loaded the first time a client asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from struct import Struct as Packer
from typing import Any, NamedTuple

from sharecore.protocol import schema
from sharecore.protocol.malformed import MalformedMessage
from sharecore.protocol.reader import Reader, compile_reader, read_message, skip_tagged_fields
from sharecore.protocol.writer import Writer, compile_writer, unknown_names

_HEADER = Packer(">hhih")
_CORRELATION_ID = Packer(">i")
_FRAME = Packer(">ii")
_FRAME_FLEXIBLE = Packer(">iib")
_client_ids: dict[bytes, str] = {}
_CLIENT_IDS_MAX = 4096

COPY_BYTES_MAX = 64 * 1024
"""Answers up to this size are joined into one buffer; in larger ones, parts of this size go out uncopied."""


class RequestHeader(NamedTuple):
    """What every request starts with, read without knowing whether the API exists; `end` is the offset behind
    it.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    end: int


def read_header(frame: bytes, offset: int = 0) -> RequestHeader:
    """Reads a request header, but for its tagged fields, which only the API's schema tells of.

    Raises:
        MalformedMessage: the frame is too short, or the client id is not a string.
    """
    try:
        api_key, api_version, correlation_id, size = _HEADER.unpack_from(frame, offset)
    except Exception as error:
        raise MalformedMessage(f"a frame of {len(frame) - offset} bytes holds no request header") from error
    offset += _HEADER.size
    if size < 0:
        return RequestHeader(api_key, api_version, correlation_id, None, offset)
    raw = frame[offset : offset + size]
    client_id = _client_ids.get(raw)
    if client_id is None:
        if len(raw) < size:
            raise MalformedMessage("the client id reaches past the end")
        try:
            client_id = raw.decode()
        except UnicodeDecodeError as error:
            raise MalformedMessage("the client id is not UTF-8") from error
        if len(_client_ids) >= _CLIENT_IDS_MAX:
            _client_ids.clear()
        _client_ids[raw] = client_id
    return RequestHeader(api_key, api_version, correlation_id, client_id, offset + size)


class Codec:
    """Messages of one API in one version.

    Args:
        api_key: an `ApiKey` or its number.
        version: a version that the schemas know.

    Raises:
        KeyError: there is no such API or version.
    """

    def __init__(self, api_key: int, version: int) -> None:
        self.api_key = int(api_key)
        self.version = version
        self.request = schema.load(self.api_key, version, response=False)
        self.response = schema.load(self.api_key, version, response=True)
        self.flexible = self.request.struct.flexible
        self._tagged_header = self.response.header_version >= 1

    @cached_property
    def _request_reader(self) -> Reader:
        newest = schema.newest_version(self.api_key, response=False)
        return compile_reader(
            self.request.struct,
            schema.load(self.api_key, newest, response=False).struct if newest > self.version else None,
        )

    @cached_property
    def _response_reader(self) -> Reader:
        return compile_reader(self.response.struct)

    @cached_property
    def _request_writer(self) -> Writer:
        return compile_writer(self.request.struct)

    @cached_property
    def _response_writer(self) -> Writer:
        return compile_writer(self.response.struct)

    def read_request(self, frame: bytes, header: RequestHeader) -> Any:
        """The body of the request whose header was read; fields that only newer versions have show their
        defaults.

        Raises:
            MalformedMessage: the bytes do not hold this request.
        """
        offset = header.end
        if self.flexible:
            try:
                offset = skip_tagged_fields(frame, offset)
            except IndexError as error:
                raise MalformedMessage("the header's tagged fields reach past the end") from error
        return read_message(self._request_reader, frame, offset)

    def write_response(self, correlation_id: int, message: Mapping[str, Any]) -> list[bytes]:
        """A response frame with its size before it, as buffers to send one after the other."""
        parts: list[bytes] = []
        self._response_writer(message, parts.append)
        size = sum(map(len, parts)) + (5 if self._tagged_header else 4)
        if self._tagged_header:
            parts.insert(0, _FRAME_FLEXIBLE.pack(size, correlation_id, 0))
        else:
            parts.insert(0, _FRAME.pack(size, correlation_id))
        return [b"".join(parts)] if size <= COPY_BYTES_MAX else _coalesce(parts)

    def write_request(self, correlation_id: int, client_id: str | None, message: Mapping[str, Any]) -> bytes:
        """A request frame with its size before it."""
        name = None if client_id is None else client_id.encode()
        parts = [
            _HEADER.pack(self.api_key, self.version, correlation_id, -1 if name is None else len(name)),
            name or b"",
        ]
        if self.flexible:
            parts.append(b"\x00")
        self._request_writer(message, parts.append)
        body = b"".join(parts)
        return _CORRELATION_ID.pack(len(body)) + body

    def read_response(self, frame: bytes) -> tuple[int, Any]:
        """The correlation id and the message of a response frame (without its size).

        Raises:
            MalformedMessage: the bytes do not hold this response.
        """
        try:
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
            offset = skip_tagged_fields(frame, 4) if self._tagged_header else 4
        except Exception as error:
            raise MalformedMessage("the frame holds no response header") from error
        return correlation_id, read_message(self._response_reader, frame, offset)

    def misspelt(self, message: Mapping[str, Any]) -> list[str]:
        """Names in a response that no version has."""
        strange = set(unknown_names(message, self.response.struct))
        for version in schema.versions(self.api_key, response=True) if strange else ():
            other = schema.load(self.api_key, version, response=True).struct
            strange.intersection_update(unknown_names(message, other))
        return sorted(strange)


@cache
def codec(api_key: int, version: int) -> Codec:
    """The codec of an API in a version; raises KeyError when the schemas do not have it."""
    return Codec(api_key, version)


def _coalesce(parts: list[bytes]) -> list[bytes]:
    out: list[bytes] = []
    small: list[bytes] = []
    for part in parts:
        if len(part) < COPY_BYTES_MAX:
            small.append(part)
            continue
        if small:
            out.append(b"".join(small))
            small = []
        out.append(part)
    if small:
        out.append(b"".join(small))
    return out
