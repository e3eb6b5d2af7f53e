"""One member of a consumer group, and its reconciliation with the target assignment (KIP-848).

A partition is assigned to a member only when no other member has it. It is first revoked from its owner, and
assigned again only after the owner has confirmed the revocation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from uuid import UUID

from sharecore.coordinator.memory_limit import size_of
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Deadline

Assignment = Mapping[UUID, frozenset[int]]
"""Partitions by topic id."""

Partition = tuple[UUID, int]


class MemberState(IntEnum):
    """Reconciliation state of a member; the values are those of Kafka's records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


@dataclass(slots=True, eq=False)
class ConsumerMember:
    """A member as it last reported itself, and its last answer.

    Args:
        assigned: partitions that it may consume, with the epochs of their assignment.
        revoking: partitions that it must revoke.
        noted: partitions that its group has registered for it.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_names: frozenset[str] = frozenset()
    names_bytes: int = 0
    """Approximate memory size of the names."""
    subscribed_regex: str | None = None
    server_assignor: str | None = None
    rebalance_timeout_ms: int = -1
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: dict[Partition, int] = field(default_factory=dict)
    revoking: dict[Partition, int] = field(default_factory=dict)
    noted: frozenset[Partition] = frozenset()
    session: Deadline | None = None
    revocation: Deadline | None = None

    @property
    def reported(self) -> tuple[object, ...]:
        """All fields reported by the member."""
        return (
            self.subscribed_names,
            self.subscribed_regex,
            self.server_assignor,
            self.rack_id,
            self.rebalance_timeout_ms,
            self.client_id,
            self.client_host,
        )

    def subscribe(self, names: Iterable[str]) -> None:
        """Store the topics subscribed to by name."""
        self.subscribed_names = frozenset(names)
        self.names_bytes = size_of(self.subscribed_names)

    def check_epoch(self, epoch: int, owned: frozenset[Partition] | None) -> None:
        """Check that a heartbeat has the current epoch, or the previous one if an answer was lost.

        Raises:
            KafkaError: FENCED_MEMBER_EPOCH.
        """
        if epoch == self.epoch:
            return
        late = epoch == self.previous_epoch and owned is not None and owned <= self.assigned.keys()
        if epoch > self.epoch or not late:
            relation = "greater" if epoch > self.epoch else "smaller"
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by "
                f"the group coordinator ({self.epoch}). The member must abandon all its partitions and "
                "rejoin.",
            )

    def reconcile(
        self,
        target: Assignment,
        target_epoch: int,
        owned: frozenset[Partition] | None,
        is_free: Callable[[Partition], bool],
        unwanted: Collection[Partition] = (),
    ) -> bool:
        """Take one step towards the target; return whether anything changed.

        Args:
            owned: partitions reported by the member; None if it reports none.
            is_free: returns whether no other member has a partition.
            unwanted: partitions of topics it has just unsubscribed from; they are revoked without waiting
                for a target.
        """
        if self.state is MemberState.STABLE and self.epoch == target_epoch:
            return self._let_go(unwanted, owned)
        if self.state is MemberState.UNREVOKED_PARTITIONS and _has_any(self.revoking, owned):
            return self._let_go(unwanted, owned)
        before = self._progress()
        self._step(target, target_epoch, owned, is_free)
        return before != self._progress()

    def _progress(self) -> tuple[object, ...]:
        return self.state, self.epoch, self.previous_epoch, dict(self.assigned), dict(self.revoking)

    def _step(
        self,
        target: Assignment,
        target_epoch: int,
        owned: frozenset[Partition] | None,
        is_free: Callable[[Partition], bool],
    ) -> None:
        wanted = {(topic, partition) for topic, partitions in target.items() for partition in partitions}
        kept = {each: epoch for each, epoch in self.assigned.items() if each in wanted}
        lost = {each: epoch for each, epoch in self.assigned.items() if each not in wanted}
        missing = wanted - kept.keys()
        free = {each for each in missing if is_free(each)}
        # partitions that it never owned need no confirmation
        if _has_any(lost, owned):
            self.assigned, self.revoking = kept, lost
            self.state = MemberState.UNREVOKED_PARTITIONS
            self.previous_epoch = self.epoch
            return
        self.assigned = kept | dict.fromkeys(sorted(free), target_epoch)
        self.revoking = {}
        # a member that knows the new epoch no longer sends the previous one
        self.previous_epoch, self.epoch = self.epoch, target_epoch
        self.state = MemberState.STABLE if free == missing else MemberState.UNRELEASED_PARTITIONS

    def _let_go(self, unwanted: Collection[Partition], owned: frozenset[Partition] | None) -> bool:
        lost = {each: epoch for each, epoch in self.assigned.items() if each in unwanted}
        if not lost:
            return False
        self.assigned = {each: epoch for each, epoch in self.assigned.items() if each not in lost}
        if _has_any(self.revoking | lost, owned):
            self.revoking |= lost
            self.state = MemberState.UNREVOKED_PARTITIONS
        return True

    @property
    def held(self) -> set[Partition]:
        """Partitions that no other member may have yet."""
        return self.assigned.keys() | self.revoking.keys()

    def cancel_timers(self) -> None:
        """Cancel the member's timers."""
        for deadline in (self.session, self.revocation):
            if deadline is not None:
                deadline.cancel()


def _has_any(partitions: Mapping[Partition, int], owned: frozenset[Partition] | None) -> bool:
    """Return whether a member still has any of the partitions, as far as reported."""
    return bool(partitions) and (owned is None or not partitions.keys().isdisjoint(owned))
