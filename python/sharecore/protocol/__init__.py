"""Kafka's messages to and from bytes.

The schemas come from `kio`, which is generated from Kafka's own; this package compiles a reader and a writer
for each message and version the first time it is met (`codec`). A message read is a named tuple with the
schema's field names in snake case, a message to write is a mapping with the same names, or a tuple for a
struct that has no tagged fields to write; times keep their
`_ms` and are integers, topic ids are `uuid.UUID` or None, arrays of int8 are `bytes`, error codes are
integers.
"""

from __future__ import annotations

from sharecore.protocol.apis import ApiKey
from sharecore.protocol.codec import Codec, RequestHeader, codec, read_header
from sharecore.protocol.malformed import MalformedMessage

__all__ = ["ApiKey", "Codec", "MalformedMessage", "RequestHeader", "codec", "read_header"]
