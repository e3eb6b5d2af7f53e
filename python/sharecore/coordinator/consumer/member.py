"""One member of a consumer group, and how it gets from what it has to what it shall have (KIP-848).

A partition is given to a member only when nobody else has it: what must be taken from a member is first
taken away, and only when the member has said that it let go is it given to another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from uuid import UUID

from sharecore.coordinator.group_room import size_of
from sharecore.errors import ErrorCode, KafkaError
from sharecore.waiting import Deadline

Assignment = Mapping[UUID, frozenset[int]]
"""Partitions by topic id."""

Partition = tuple[UUID, int]


class MemberState(IntEnum):
    """How far a member is; the values are those of Kafka's records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


@dataclass(slots=True, eq=False)
class ConsumerMember:
    """A member as it last told of itself, and what it has been told.

    Args:
        assigned: partitions that it may consume, each with the epoch in which it got it.
        revoking: partitions that it has to let go.
        noted: what its group has it down for as the holder.
    """

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_names: frozenset[str] = frozenset()
    names_bytes: int = 0
    """About what these take."""
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
    def said(self) -> tuple[object, ...]:
        """Everything that it told of itself."""
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
        """Note the topics that it subscribes to by name."""
        self.subscribed_names = frozenset(names)
        self.names_bytes = size_of(self.subscribed_names)

    def check_epoch(self, epoch: int, owned: frozenset[Partition] | None) -> None:
        """Whether a heartbeat comes from this member as it is now, or as it was before an answer that got
        lost.

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
        """Goes one step towards the target; says whether anything changed.

        Args:
            owned: what the member says that it has; None when it does not say.
            is_free: whether no other member has a partition.
            unwanted: partitions of topics that it has just unsubscribed from; it need not wait for a target
                to let them go.
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
        # partitions that it has never come to own need no word from it
        if _has_any(lost, owned):
            self.assigned, self.revoking = kept, lost
            self.state = MemberState.UNREVOKED_PARTITIONS
            self.previous_epoch = self.epoch
            return
        self.assigned = kept | dict.fromkeys(sorted(free), target_epoch)
        self.revoking = {}
        # who has heard of an epoch no longer comes with the one before
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
        """Partitions that nobody else may have yet."""
        return self.assigned.keys() | self.revoking.keys()

    def cancel_timers(self) -> None:
        """Stop counting its time."""
        for deadline in (self.session, self.revocation):
            if deadline is not None:
                deadline.cancel()


def _has_any(partitions: Mapping[Partition, int], owned: frozenset[Partition] | None) -> bool:
    """Whether a member still has one of these, as far as it says what it has."""
    return bool(partitions) and (owned is None or not partitions.keys().isdisjoint(owned))
