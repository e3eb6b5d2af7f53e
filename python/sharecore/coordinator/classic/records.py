"""Records of classic groups in `__consumer_offsets` (GroupMetadata): key and value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharecore.coordinator_log.record_schema import RecordSchema, VersionedSchema, field
from sharecore.protocol.schema import FieldSpec

if TYPE_CHECKING:
    from sharecore.coordinator import record_values

GROUP_METADATA = 2

_KEY = RecordSchema("GroupMetadataKey", GROUP_METADATA, field("group", "string"))

_INSTANCE_ID = field("instance_id", "string", nullable=True)
_REBALANCE_TIMEOUT = field("rebalance_timeout_ms", "int32", default=-1)


def _value(version: int, *, flexible: bool = False) -> RecordSchema:
    members: tuple[FieldSpec, ...] = (
        field("member_id", "string"),
        *((_INSTANCE_ID,) if version >= 3 else ()),
        field("client_id", "string"),
        field("client_host", "string"),
        *((_REBALANCE_TIMEOUT,) if version >= 1 else ()),
        field("session_timeout_ms", "int32"),
        field("subscription", "bytes"),
        field("assignment", "bytes"),
    )
    fields = (
        field("protocol_type", "string"),
        field("generation", "int32"),
        field("protocol", "string", nullable=True),
        field("leader", "string", nullable=True),
        *((field("state_ms", "int64", default=-1),) if version >= 2 else ()),
        field("members", members, array=True),
    )
    return RecordSchema("GroupMetadataValue", version, *fields, flexible=flexible)


_WRITTEN = _value(3)
VALUES = VersionedSchema(_value(0), _value(1), _value(2), _WRITTEN, _value(4, flexible=True))


def encode_group_key(group_id: str) -> bytes:
    """Return the key of a classic group."""
    return _KEY.write(group=group_id)


def decode_group_key(data: bytes) -> str:
    """Return the group's name; raise ValueError if the key is invalid."""
    name: str = _KEY.read(data).group
    return name


def encode_group(**values: object) -> bytes:
    """Return the value of a classic group, in Kafka's current version."""
    return _WRITTEN.pack(values)


def decode_group(data: bytes) -> record_values.GroupMetadata:
    """Read a value of any version, without fields that it lacks; raise ValueError if it is invalid."""
    value: record_values.GroupMetadata = VALUES.read(data)
    return value
