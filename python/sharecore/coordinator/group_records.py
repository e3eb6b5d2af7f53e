"""Common parts of the consumer-group and share-group records in `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Generic, Protocol, TypeVar

from sharecore.coordinator_log.record_schema import RecordSchema, field
from sharecore.coordinator_log.topic_log import Record
from sharecore.protocol.schema import FieldSpec

GROUP = (field("group_id", "string"),)
MEMBER = (*GROUP, field("member_id", "string"))
PARTITIONS = (field("topic_id", "uuid"), field("partitions", "int32", array=True))

Kind = TypeVar("Kind", bound=IntEnum)
Fields = tuple[FieldSpec, ...]


class ReplayedGroup(Protocol):
    """A group being replayed."""

    def replay(self, kind: int, about: str, value: object) -> None:
        """Apply the content of a record.

        Args:
            about: the record's subject, usually a member id; empty for the group itself.
            value: None for a tombstone.
        """


Group = TypeVar("Group", bound=ReplayedGroup)


class GroupRecords(Generic[Kind]):
    """Records of one group type, each about a group or a part of it, usually a member.

    Args:
        name: the prefix of their names in Kafka.
        fields: fields of key and value by kind; a kind's number is its key's type.
        group: the kind whose tombstone deletes the group.
    """

    def __init__(self, name: str, fields: Mapping[Kind, tuple[Fields, Fields]], group: Kind) -> None:
        self._keys = {
            kind: RecordSchema(f"{name}{kind.name}Key", kind, *key) for kind, (key, _) in fields.items()
        }
        self._values = {
            kind: RecordSchema(f"{name}{kind.name}Value", 0, *value, flexible=True)
            for kind, (_, value) in fields.items()
        }
        self._kinds = {int(kind): kind for kind in fields}
        self._group = group

    def record(self, kind: Kind, group_id: str, value: Mapping[str, object] | None, **about: str) -> Record:
        """Return a record; without a value, a tombstone.

        Args:
            about: the other fields of the key.
        """
        key = self._keys[kind].write(group_id=group_id, **about)
        return key, None if value is None else self._values[kind].pack(value)

    def replay(
        self,
        groups: dict[str, Group],
        make: Callable[[str], Group],
        number: int,
        key: bytes,
        value: bytes | None,
    ) -> None:
        """Apply a record to its group, which is created or deleted as needed.

        Args:
            groups: the existing groups by name.
            make: creates a group.
            number: the key's type.

        Raises:
            ValueError: the record is damaged.
        """
        kind = self._kinds[number]
        group_id, *about = self._keys[kind].read(key)
        if kind is self._group and value is None:
            groups.pop(group_id, None)
            return
        group = groups.get(group_id)
        if group is None:
            if value is None:
                return
            group = groups[group_id] = make(group_id)
        group.replay(kind, "".join(about), None if value is None else self._values[kind].read(value))
