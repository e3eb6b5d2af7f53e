"""What was answered lies in the slot's log before the next claim: reads the state topic as any node may."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.simulation.auditor import Key
from tests.simulation.tier.log import Batch, Log
from tests.simulation.tier.nodes import SLOTS, STATE_TOPIC, Node

from sharecore import _core
from sharecore.persister import LoadedState
from sharecore.sharestate.records import SNAPSHOT, STATE_BATCH, UPDATE
from sharecore.tier.slots import slot_of_partition

if TYPE_CHECKING:
    from tests.simulation.tier.world import TierWorld

OWN = "-own"
"""So end the names of groups whose state administrators delete."""
_CLAIM = 1000
_ACKNOWLEDGED = 2
_KIND = Struct(">hh")
_EPOCH = Struct(">hii")


@dataclass
class _Slot:
    """A slot's log as it was read so far.

    Attributes:
        producer, epoch, node: of the last claim: what others write behind it does not count.
        newest: sequence of the last batch that counts; a late copy of one before it does not.
        states: what the log says, by share partition.
        lost: the cluster has lost some of it.
        orphaned: who has claimed it was killed, and has not released it.
        taken_at: when it was claimed then; 0 where the last claim is another's.
        settled: what was answered, by share partition and the number of its life.
    """

    lost: bool = False
    orphaned: bool = False
    taken_at: float = 0.0
    producer: tuple[int, int] = (-1, -1)
    newest: int = -1
    epoch: int = -1
    node: int = -1
    states: dict[bytes, _core.StateContent] = field(default_factory=dict)
    settled: dict[tuple[Key, int], set[int]] = field(default_factory=dict)


def slot_of(key: Key) -> int:
    """The slot that a share partition lies in."""
    return slot_of_partition(key[1], key[2], SLOTS)


class StateAudit:
    """Follows the state topic, batch by batch, with its own idea of which batches count."""

    def __init__(self, world: TierWorld) -> None:
        self._world = world
        self._slots = [_Slot() for _ in range(SLOTS)]

    def settled(self, key: Key, offsets: list[int]) -> None:
        """Somebody was told that these records are settled: the log has to say so, behind the last claim."""
        slot = self._slots[slot_of(key)]
        life = self._world.auditor.share(key).lives
        slot.settled.setdefault((key, life), set()).update(offsets)
        self._check(slot, key, offsets)

    def appended(self, log: Log, index: int) -> None:
        """A batch was appended to the state topic."""
        if log.topic != STATE_TOPIC:
            return
        claimant = self._read(log, index)
        for node in self._world.nodes:
            if claimant not in (None, node.node_id) and node.leases(log.index):
                # acquisitions are not written: the log does not stop a node from acquiring
                text = f"slot {log.index}, which node {claimant} claims, is {node.site}'s still"
                self._world.story.broken("two leases", text)

    def _read(self, log: Log, index: int) -> int | None:
        """Reads a batch; returns the node that claims the slot with it."""
        slot, batch = self._slots[log.index], log.batches[index]
        records = self._records(batch, log.index)
        if batch.producer == slot.producer:
            if batch.sequence > slot.newest:
                slot.newest = batch.sequence
                self._take(slot, records)
            else:
                self._world.story.tell("cluster", f"slot {log.index}: late copy at {batch.base}")
            return None
        for at, (key, value) in enumerate(records):
            if _KIND.unpack_from(key + bytes(4))[0] == _CLAIM:
                _, epoch, node = _EPOCH.unpack_from(value or b"")
                if epoch > slot.epoch:
                    self._world.story.tell(
                        "cluster",
                        f"slot {log.index} is claimed by node {node}, epoch {epoch}, at {batch.base}",
                    )
                    slot.producer, slot.newest = batch.producer, batch.sequence
                    slot.epoch, slot.node = epoch, node
                    slot.taken_at = self._world.loop.now if slot.orphaned else 0.0
                    slot.orphaned = False
                    self._take(slot, records[at + 1 :])
                    return int(node)
        self._world.story.tell("cluster", f"slot {log.index}: void batch at {batch.base}")
        return None

    def cut(self, log: Log, *, lost: bool) -> None:
        """The log has lost its end: where replicas in sync had it, what was promised is off."""
        if log.topic != STATE_TOPIC:
            return
        settled = self._slots[log.index].settled
        slot = self._slots[log.index] = _Slot(lost=lost or self._slots[log.index].lost)
        for index in range(len(log.batches)):
            self._read(log, index)
        if lost:
            return
        slot.settled = settled
        for (key, life), offsets in settled.items():
            share = self._world.auditor.share(key)
            if share.lives == life and not share.suspended:
                self._check(slot, key, sorted(offsets))

    def killed(self, node: Node) -> None:
        """A node is about to be killed."""
        for index, slot in enumerate(self._slots):
            slot.orphaned |= slot.node == node.node_id and node.leases(index)

    def waits_until(self, key: Key) -> float:
        """Until when members may hold records of a leader that was killed, as the next one knows."""
        taken_at = self._slots[slot_of(key)].taken_at
        return taken_at + self._world.auditor.share(key).lock_s if taken_at else 0.0

    def may_lead(self, key: Key, node: Node) -> bool:
        """Whether a node may have the last claim; one that was paused goes on with what it had read."""
        slot = self._slots[slot_of(key)]
        return slot.lost or slot.node in (-1, node.node_id)

    def loaded(self, key: Key, state: LoadedState) -> None:
        """A leader begins with this: it has to be what the log says, and no more."""
        slot, share = self._slots[slot_of(key)], self._world.auditor.shares.get(key)
        content = slot.states.get(_tail(key))
        if (
            slot.lost
            or content is None
            or share is None
            or share.suspended
            or key[0] not in self._world.groups
        ):
            return
        found = _settled(state.start_offset, state.batches)
        right = _settled(content.start_offset, STATE_BATCH.iter_unpack(content.batches()))
        if found != right:
            text = f"{share.where}: {_shown(found)}, and {_shown(right)} in the log"
            self._world.story.broken("loaded and not written", text)

    def _records(self, batch: Batch, index: int) -> list[tuple[bytes, bytes | None]]:
        rows, _, _, unreadable = _core.decode_records(
            batch.data, [(batch.base, batch.last, 1)], STATE_TOPIC, index, None
        )
        assert not unreadable, unreadable
        return [(row.key or b"", row.value) for row in rows]

    def _take(self, slot: _Slot, records: list[tuple[bytes, bytes | None]]) -> None:
        for key, value in records:
            (kind,) = _KIND.unpack_from(key + bytes(4))[:1]
            if kind not in (SNAPSHOT, UPDATE):
                continue
            if value is None:
                slot.states.pop(key[2:], None)
                self._deleted(key[2:])
                continue
            content = slot.states.setdefault(key[2:], _core.StateContent())
            (content.replay_snapshot if kind == SNAPSHOT else content.replay_update)(value)

    def _deleted(self, tail: bytes) -> None:
        """State may be deleted where the topic was, or where somebody has asked for that."""
        length = int.from_bytes(tail[:2], "big")
        group, topic_id = tail[2 : 2 + length].decode(), UUID(bytes=tail[2 + length : 18 + length])
        name = self._world.auditor.ledger.names.get(topic_id, "")
        lives = name in self._world.cluster.topics and self._world.auditor.ledger.ids[name] == topic_id
        if lives and not group.endswith(OWN):
            self._world.story.broken("state of a topic that is there is deleted", f"{group} {name}")

    def _check(self, slot: _Slot, key: Key, offsets: list[int]) -> None:
        content = slot.states.get(_tail(key))
        # deleted records count as finished without an acknowledgement
        floor = self._world.auditor.ledger.log(*key[1:]).gone_below
        missing = [each for each in offsets if each >= floor and not (content and _has(content, each))]
        if missing:
            text = f"{self._world.auditor.share(key).where} offsets {missing[:10]}"
            self._world.story.broken("answered and not written", text)


def _settled(start: int, batches: Iterable[tuple[Any, ...]]) -> tuple[int, list[int]]:
    """A start offset, and the offsets behind it that are settled."""
    found = {
        offset
        for first, last, kind, _ in batches
        if kind >= _ACKNOWLEDGED
        for offset in range(max(first, start), last + 1)
    }
    return start, sorted(found)


def _shown(settled: tuple[int, list[int]]) -> str:
    return f"all before {settled[0]} and {settled[1][:10]} are settled"


def _tail(key: Key) -> bytes:
    group = key[0].encode()
    topic_id: UUID = key[1]
    return len(group).to_bytes(2, "big") + group + topic_id.bytes + key[2].to_bytes(4, "big")


def _has(content: _core.StateContent, offset: int) -> bool:
    if offset < content.start_offset:
        return True
    for first, last, state, _ in STATE_BATCH.iter_unpack(content.batches()):
        if first <= offset <= last:
            return bool(state >= _ACKNOWLEDGED)
    return False
