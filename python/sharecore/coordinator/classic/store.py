"""Classic groups in `__consumer_offsets`: written at the end of each rebalance, read back when the broker
starts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

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

logger = logging.getLogger(__name__)


class ClassicStore:
    """Writes groups, and keeps what was read of them until they are made.

    Args:
        records: `__consumer_offsets`.
        made: makes the groups out of `loaded`.
    """

    kinds: Collection[int] = (GROUP_METADATA,)

    def __init__(self, records: CoordinatorRuntime, made: Callable[[], None]) -> None:
        self._records = records
        self._made = made
        self.loaded: dict[str, Any] = {}
        self._emptied: dict[str, list[Done]] = {}
        """Who waits for the last write of a group without members, while it is under way."""
        records.register(self)

    def write(self, group: ClassicGroup, assignments: Mapping[str, bytes], done: Done) -> None:
        """Write a group with these assignments of its members."""
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
        """Write a group without members; see `when_emptied`.

        Args:
            failed: called when it was not written.
        """
        waiting = self._emptied[group.group_id] = []

        def written(error: KafkaError | None) -> None:
            if self._emptied.get(group.group_id) is waiting:
                del self._emptied[group.group_id]
            settle(waiting, error)
            if error is not None:
                about = {"group": group.group_id}
                logger.error("that group %s is empty was not written: %s", group.group_id, error, extra=about)
                failed()

        self.write(group, {}, written)

    def when_emptied(self, group_id: str, done: Done) -> None:
        """Tells when what `write_empty` writes of a group is durable: at once where nothing is under way."""
        waiting = self._emptied.get(group_id)
        if waiting is None:
            done(None)
        else:
            waiting.append(done)

    def deleted_record(self, group_id: str) -> Record:
        """Says that there is no such group any more."""
        return encode_group_key(group_id), None

    def check(self, group_id: str) -> None:
        """Raise KafkaError(COORDINATOR_LOAD_IN_PROGRESS) while the records of a group cannot be read."""
        self._records.check(group_id)

    def resign(self, partition: int) -> None:
        """What the log says of groups is not kept beside them."""

    def start(self) -> None:
        """The coordinator makes the groups."""
        self._made()

    def replay(self, partition: int, kind: int, key: bytes, value: bytes | None) -> None:
        group_id = decode_group_key(key)
        if value is None:
            self.loaded.pop(group_id, None)
        else:
            self.loaded[group_id] = decode_group(value)
