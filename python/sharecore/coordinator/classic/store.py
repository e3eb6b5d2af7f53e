"""Classic groups in `__consumer_offsets`, written after each rebalance and replayed at startup."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from sharecore.coordinator.classic.group import ClassicGroup
from sharecore.coordinator.classic.records import (
    GROUP_METADATA,
    decode_group,
    decode_group_key,
    encode_group,
    encode_group_key,
)
from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import KafkaError
from sharecore.waiting import Done, settle

if TYPE_CHECKING:
    from sharecore.coordinator import record_values

logger = logging.getLogger(__name__)


class ClassicStore:
    """Persist groups, and hold replayed ones until they are created.

    Args:
        records: `__consumer_offsets`.
        made: creates the groups from `loaded`.
    """

    kinds: Collection[int] = (GROUP_METADATA,)

    def __init__(self, records: CoordinatorRuntime, made: Callable[[], None]) -> None:
        self._records = records
        self._made = made
        self.loaded: dict[str, record_values.GroupMetadata] = {}
        self._emptied: dict[str, list[Done]] = {}
        """Callers waiting for the pending write of an empty group."""
        records.register(self)

    def write(self, group: ClassicGroup, assignments: Mapping[str, bytes], done: Done) -> None:
        """Persist a group with its members' assignments."""
        members = [
            {
                "member_id": member.member_id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "rebalance_timeout_ms": member.rebalance_timeout_ms,
                "session_timeout_ms": member.session_timeout_ms,
                "subscription": member.metadata(group.protocol),
                "assignment": assignments.get(member.member_id, b""),
            }
            for member in group.members.values()
        ]
        value = encode_group(
            protocol_type=group.protocol_type,
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader,
            state_ms=group.state_ms,
            members=members,
        )
        self._records.append(group.group_id, [(encode_group_key(group.group_id), value)], done)

    def write_empty(self, group: ClassicGroup, failed: Callable[[], None] = lambda: None) -> None:
        """Persist a group without members; see `when_emptied`.

        Args:
            failed: called if the write failed.
        """
        waiting = self._emptied[group.group_id] = []

        def written(error: KafkaError | None) -> None:
            if self._emptied.get(group.group_id) is waiting:
                del self._emptied[group.group_id]
            settle(waiting, error)
            if error is not None:
                about = {"group": group.group_id}
                logger.error("cannot persist that group %s is empty: %s", group.group_id, error, extra=about)
                failed()

        self.write(group, {}, written)

    def when_emptied(self, group_id: str, done: Done) -> None:
        """Call back once the pending write of `write_empty` is durable; immediately without one."""
        waiting = self._emptied.get(group_id)
        if waiting is None:
            done(None)
        else:
            waiting.append(done)

    def deleted_record(self, group_id: str) -> Record:
        """Return the tombstone of a group."""
        return encode_group_key(group_id), None

    def check(self, group_id: str) -> None:
        """Raise KafkaError(COORDINATOR_LOAD_IN_PROGRESS) while the records of a group cannot be read."""
        self._records.check(group_id)

    def resign(self, partition: int) -> None:
        """Do nothing: no replayed group is kept here."""

    def start(self) -> None:
        """Create the replayed groups."""
        self._made()

    def replay(self, partition: int, kind: int, key: bytes, value: bytes | None) -> None:
        group_id = decode_group_key(key)
        if value is None:
            self.loaded.pop(group_id, None)
        else:
            self.loaded[group_id] = decode_group(value)
