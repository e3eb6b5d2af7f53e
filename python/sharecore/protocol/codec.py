"""The reader and writer of one API in one version, loaded the first time a client asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from struct import Struct as Packer
from typing import Any, NamedTuple

from sharecore._core import Layout, Produced, ShareAnswer, read_request_header
from sharecore.protocol import schema
from sharecore.protocol.layout import compile_layout, read_message, skip_tagged_fields
from sharecore.protocol.malformed import MalformedMessage

_HEADER = Packer(">hhih")
_CORRELATION_ID = Packer(">i")


class RequestHeader(NamedTuple):
    """The header of any request, readable for unknown APIs; `end` is the offset after it."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    end: int


def read_header(frame: bytes, offset: int = 0) -> RequestHeader:
    """Read a request header, without its tagged fields, which take the API's schema.

    Raises:
        MalformedMessage: the frame is too short, or the client id is not a string.
    """
    try:
        return RequestHeader(*read_request_header(frame, offset))
    except ValueError as error:
        raise MalformedMessage(str(error)) from error


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
        self.tagged_header = self.response.header_version >= 1

    @cached_property
    def request_layout(self) -> Layout:
        """Layout of requests; decoded requests have the fields of newer versions, with their defaults."""
        newest = schema.newest_version(self.api_key, response=False)
        return compile_layout(
            self.request.struct,
            schema.load(self.api_key, newest, response=False).struct if newest > self.version else None,
        )

    @cached_property
    def response_layout(self) -> Layout:
        """Reads and writes responses."""
        return compile_layout(self.response.struct)

    def read_request(self, frame: bytes, header: RequestHeader) -> Any:
        """Return the body of a request; fields of newer versions have their defaults.

        Raises:
            MalformedMessage: the bytes do not hold this request.
        """
        offset = skip_tagged_fields(frame, header.end) if self.flexible else header.end
        return read_message(self.request_layout, frame, offset)

    def write_response(
        self, correlation_id: int, message: Mapping[str, object] | Produced | ShareAnswer
    ) -> list[bytes]:
        """Return a response frame with its size before it, as buffers to send one after the other."""
        return self.response_layout.write_response(correlation_id, self.tagged_header, message)

    def write_request(
        self, correlation_id: int, client_id: str | None, message: Mapping[str, object] | NamedTuple
    ) -> bytes:
        """Return a request frame with its size before it."""
        name = None if client_id is None else client_id.encode()
        parts = [
            _HEADER.pack(self.api_key, self.version, correlation_id, -1 if name is None else len(name)),
            name or b"",
        ]
        if self.flexible:
            parts.append(b"\x00")
        parts.append(self.request_layout.write(message))
        return b"".join((_CORRELATION_ID.pack(sum(map(len, parts))), *parts))

    def read_response(self, frame: bytes) -> tuple[int, Any]:
        """Return the correlation id and the message of a response frame (without its size).

        Raises:
            MalformedMessage: the bytes do not hold this response.
        """
        if len(frame) < _CORRELATION_ID.size:
            raise MalformedMessage("the frame holds no response header")
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        offset = skip_tagged_fields(frame, 4) if self.tagged_header else 4
        return correlation_id, read_message(self.response_layout, frame, offset)

    def misspelt(self, message: Mapping[str, object]) -> list[str]:
        """Names in a response that no version has."""
        strange = set(schema.unknown_names(message, self.response.struct))
        for version in schema.versions(self.api_key, response=True) if strange else ():
            other = schema.load(self.api_key, version, response=True).struct
            strange.intersection_update(schema.unknown_names(message, other))
        return sorted(strange)


@cache
def codec(api_key: int, version: int) -> Codec:
    """Return the codec of an API in a version; raise KeyError when the schemas do not have it."""
    return Codec(api_key, version)
