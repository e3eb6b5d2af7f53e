"""All share partitions led by this broker."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from sharecore._core import ExpandedCache, GroupBounds, Leaders
from sharecore.clock import Clock
from sharecore.config import GroupConfig
from sharecore.deadletters import DeadLetterService
from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition.leader import SharePartition
from sharecore.partition.pausing import Pauses
from sharecore.partition.predecessors import Predecessors
from sharecore.partition.tally import Tally
from sharecore.persister import Persister, SharePartitionKey
from sharecore.plural import counted
from sharecore.waiting import CallLater, Done, Spans

if TYPE_CHECKING:
    from sharecore.storage import Log

logger = logging.getLogger(__name__)

_IDLE_MS = 300_000
_IDLE_BYTES_MAX = 128 << 20
"""Memory of idle leaders that know since when records wait: a million waiting records take about 40 MB."""
_LEADER_BYTES = 4096
"""What a leader takes beside its engine, about."""
_CONFIGS_MAX = 1_000
"""Number of cached group configurations; bounded because a group id can have up to 32,767 bytes."""

Which = Callable[[UUID, int], bool]
"""Selects topic partitions."""


class SharePartitions(Leaders):
    """Share-partition leaders by group, topic and partition, created on first use.

    Args:
        find_log: returns the log of a topic partition; raises UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION,
            or NOT_LEADER_OR_FOLLOWER if another broker leads it.
        group_config: returns the current configuration of a group.
        persister: stores the state.
        call_later: schedules lock expiry.
        dead_letter_service: writes dead-letter records; None disables them.
        leader_epoch: returns this broker's leader epoch for a topic partition.
        stateless: called if the persister has no state for a requested share partition.
        is_connected: returns whether a group member has a share session on this broker.
        expanded_bytes: memory for batches that are delivered in parts.
        when_configured: calls back once `group_config` returns the current settings of every node.
    """

    def __init__(
        self,
        find_log: Callable[[UUID, int], Log],
        group_config: Callable[[str], GroupConfig],
        *,
        persister: Persister,
        clock: Clock,
        call_later: CallLater,
        dead_letter_service: DeadLetterService | None = None,
        leader_epoch: Callable[[UUID, int], int] = lambda topic_id, partition: 0,
        stateless: Callable[[SharePartitionKey], None] = lambda key: None,
        is_connected: Callable[[str, str], bool] = lambda group_id, member_id: False,
        expanded_bytes: int = 0,
        when_configured: Callable[[Done], object] = lambda done: done(None),
    ) -> None:
        self.expanded = ExpandedCache(expanded_bytes)
        self._find_log = find_log
        self._leader_epoch = leader_epoch
        self._config_of = group_config
        self._persister = persister
        self._clock = clock
        self._call_later = call_later
        self._dead_letters = dead_letter_service
        self._stateless = stateless
        self._is_connected = is_connected
        self._when_configured = when_configured
        self._bounds: dict[str, GroupBounds] = {}
        """Bounds of groups with a rate, a member limit, topic weights or a breaker."""
        self._pauses = Pauses(clock, call_later, self._pause_ended)
        self.predecessors = Predecessors(clock)
        self._resting: dict[int, Which] = {}
        self._held: Counter[tuple[str, UUID | None]] = Counter()
        self.loads = Spans()
        self.repaired = 0
        """State batches that were repaired on load."""
        self.idle_kept = 0
        """Idle leaders that know since when records wait, at the last look."""
        self.idle_bytes = 0
        """Memory of those."""
        self.idle_dropped = 0
        """Such leaders that were ended for lack of memory."""
        self.retired: dict[tuple[str, UUID], Tally] = {}
        """Counters of closed leaders, by group and topic."""

    def _group_config(self, group_id: str) -> GroupConfig:
        """Return a group's configuration; `config` caches it for any group that a client names."""
        if len(self._configs) >= _CONFIGS_MAX:
            self._configs.clear()
        return self._config_of(group_id)

    def __len__(self) -> int:
        return sum(map(len, self._leaders.values()))

    def by_topic(self) -> Mapping[tuple[str, UUID], Mapping[int, SharePartition]]:
        """Return the leaders by group and topic, then by partition."""
        return self._leaders

    def get(self, group_id: str, topic_id: UUID, partition: int) -> SharePartition:
        """Return the leader of a share partition; replace one that failed to load.

        Raises:
            KafkaError: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER.
        """
        known: SharePartition | None = self.peek(group_id, topic_id, partition)
        if known is not None:
            return known
        log = self._log_to_lead(group_id, topic_id, partition)
        config = self.config(group_id)
        leader = SharePartition(
            SharePartitionKey(group_id, topic_id, partition),
            log,
            config,
            persister=self._persister,
            clock=self._clock,
            call_later=self._call_later,
            fenced=self._fenced,
            leader_epoch=self._leader_epoch(topic_id, partition),
            loads=self.loads,
            dead_letter_service=self._dead_letters,
            stateless=self._stateless,
            repaired=self._count_repaired,
            is_connected=self._is_connected,
            when_configured=self._when_configured,
            expanded=self.expanded,
            predecessor_ms=self.predecessors.since_ms(SharePartitionKey(group_id, topic_id, partition)),
        )
        leader.rest(resting=any(which(topic_id, partition) for which in self._resting.values()))
        leader.pause(paused=self._pauses.is_paused(group_id, config))
        if config.is_bounded:
            if group_id not in self._bounds:
                self._bound(group_id, config)
            self._bounds[group_id].add(leader)
            leader.bounds = self._bounds[group_id]
        self._leaders.setdefault((group_id, topic_id), {})[partition] = leader
        return leader

    def lacks(self, group_id: str, topic_id: UUID, partition: int) -> bool:
        """Return whether a share partition could have a leader but has none yet."""
        if self.peek(group_id, topic_id, partition) is not None:
            return False
        try:
            self._log_to_lead(group_id, topic_id, partition)
        except KafkaError:
            return False
        return True

    def _log_to_lead(self, group_id: str, topic_id: UUID, partition: int) -> Log:
        log = self._find_log(topic_id, partition)
        if self._held and ((group_id, None) in self._held or (group_id, topic_id) in self._held):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return log

    def get_all(
        self, group_id: str, partitions: Iterable[tuple[UUID, int]]
    ) -> tuple[list[SharePartition], dict[tuple[UUID, int], KafkaError]]:
        """Return the leaders of many partitions in order, and the errors of the others; see `get`."""
        found: list[SharePartition] = []
        refused: dict[tuple[UUID, int], KafkaError] = {}
        topic, leaders = None, dict[int, SharePartition]()
        for topic_id, partition in partitions:
            if topic_id is not topic:
                topic, leaders = topic_id, self._leaders.get((group_id, topic_id), {})
            leader = leaders.get(partition)
            if leader is None:
                try:
                    leader = self.get(group_id, topic_id, partition)
                except KafkaError as error:
                    refused[topic_id, partition] = error
                    continue
            found.append(leader)
        return found, refused

    def release(self, group_id: str, member_id: str, partitions: Iterable[tuple[UUID, int]]) -> None:
        """Release a member's records after its session ended."""
        for topic_id, partition in partitions:
            leader = self.peek(group_id, topic_id, partition)
            if leader is not None:
                leader.release(member_id)

    def reconfigure(self, group_id: str | None = None) -> None:
        """Apply a changed configuration of a group, or of the broker to all groups."""
        if group_id is None:
            self._configs.clear()
        else:
            self._configs.pop(group_id, None)
        paused: dict[str, bool] = {}
        for leader in self._all():
            if group_id is None or leader.key.group_id == group_id:
                config = self.config(leader.key.group_id)
                if leader.key.group_id not in paused:
                    paused[leader.key.group_id] = self._pauses.is_paused(leader.key.group_id, config)
                leader.pause(paused=paused[leader.key.group_id])
                leader.configure(config)
        # a group without leaders keeps its bounds too
        bounded = self._bounds.keys() if group_id is None else self._bounds.keys() & {group_id}
        for group in paused.keys() | bounded:
            self._bound(group, self.config(group))

    def is_bounded(self, group_id: str) -> bool:
        """Return whether a rate, a member limit, topic weights or a breaker applies to a group."""
        return group_id in self._bounds

    def held_back(self, group_id: str) -> tuple[int, int, int]:
        """Count a group's fetches held back by its rate, by a member limit and by its breaker."""
        bounds = self._bounds.get(group_id)
        return (0, 0, 0) if bounds is None else bounds.held_back()

    def breaker(self, group_id: str) -> tuple[int, int | None, int] | None:
        """Return the state of a group's breaker; None without one.

        The state is 0 (closed), 1 (half open) or 2 (open). The other values are the time at which an open
        breaker next admits records, and how often it has opened.
        """
        bounds = self._bounds.get(group_id)
        return None if bounds is None else bounds.breaker()

    def _bound(self, group_id: str, config: GroupConfig) -> None:
        """Create, update or remove the delivery bounds of a group and its members."""
        bounds = self._bounds.get(group_id)
        if bounds is None:
            if not config.is_bounded:
                return
            broken = partial(self._broken, group_id)
            bounds = GroupBounds(self._clock.monotonic_ms, self._call_later, broken)
            self._bounds[group_id] = bounds
            for leader in self._all():
                if leader.key.group_id == group_id:
                    bounds.add(leader)
                    leader.bounds = bounds
        elif not config.is_bounded:
            del self._bounds[group_id]
            for leader in self._all():
                if leader.key.group_id == group_id:
                    leader.bounds = None
        bounds.configure(
            config.share_records_per_second,
            config.share_member_max_record_locks,
            config.topic_weights,
            config.breaker,
        )

    def _broken(self, group_id: str, given_up: int, ended: int) -> None:
        logger.warning(
            "share group %s: breaker open: %d of %d records were archived; delivery is paused for %d ms",
            group_id,
            given_up,
            ended,
            self.config(group_id).share_breaker_pause_ms,
            extra={"group": group_id},
        )

    def _pause_ended(self, group_id: str) -> None:
        for leader in self._all():
            if leader.key.group_id == group_id:
                leader.pause(paused=False)
                leader.wake()

    def rest(self, part: int, which: Which) -> list[SharePartition]:
        """Stop acquiring records of the selected partitions until `resume`; return their leaders.

        Args:
            part: identifies the selection for `resume`.
            which: selects the partitions.
        """
        self._resting[part] = which
        found = [leader for leader in self._all() if which(leader.key.topic_id, leader.key.partition)]
        for leader in found:
            leader.rest(resting=True)
        return found

    def resume(self, part: int) -> None:
        """Resume acquiring records of a selection."""
        which = self._resting.pop(part, None)
        for leader in self._all() if which is not None else ():
            if which is not None and which(leader.key.topic_id, leader.key.partition):
                leader.rest(resting=False)
                leader.wake()

    def groups_with_leases(self) -> set[str]:
        """Return the groups whose members hold records, of those that wait after a takeover."""
        return {
            leader.key.group_id
            for leader in self._all()
            if leader.config.share_ordering_takeover_wait and (leader.holds or leader.takeover_left_ms)
        }

    def drop_topic(self, topic_id: UUID) -> None:
        """End the leaders of a deleted topic."""
        error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._drop(lambda leader: leader.key.topic_id == topic_id, error)
        self.retired = {key: tally for key, tally in self.retired.items() if key[1] != topic_id}

    def drop_partitions(self, which: Which) -> None:
        """End the leaders of partitions that another broker leads from now on."""
        error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._drop(lambda leader: which(leader.key.topic_id, leader.key.partition), error)

    def drop_all(self) -> None:
        """End every leader: all share-partition state is gone, or the broker shuts down."""
        self._drop(lambda leader: True, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        self._pauses.close()

    def drop_one(self, key: SharePartitionKey) -> None:
        """End the leader of a share partition whose state was deleted or reset; the next use reloads it."""
        leader = self.peek(*key)
        if leader is not None:
            self._fenced(leader)

    def hold(self, group_id: str, topics: Iterable[UUID] | None = None) -> Callable[[], None]:
        """End the leaders of some or all topics of a group before their state is replaced.

        No leader is created until the returned callback is called: a leader with the old state would
        overwrite the new one.
        """
        chosen: set[UUID] | None = None if topics is None else set(topics)
        held: list[tuple[str, UUID | None]] = [
            (group_id, topic_id) for topic_id in ((None,) if chosen is None else chosen)
        ]
        self._held.update(held)
        self._drop(
            lambda leader: (
                leader.key.group_id == group_id and (chosen is None or leader.key.topic_id in chosen)
            ),
            KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        )

        def release() -> None:
            self._held -= Counter(held)

        return release

    def forget_group(self, group_id: str) -> None:
        """Forget the configuration and counters of a deleted group."""
        self._configs.pop(group_id, None)
        self._pauses.forget(group_id)
        self._bounds.pop(group_id, None)
        self.retired = {key: tally for key, tally in self.retired.items() if key[0] != group_id}

    def drop_idle(self, idle_ms: int = _IDLE_MS, bytes_max: int = _IDLE_BYTES_MAX) -> int:
        """End leaders that were idle for `idle_ms`; return their number. The next use reloads them.

        Those that know since when records wait remain, the ones used last, up to `bytes_max`: a reload would
        start their back-offs anew.
        """
        before = len(self)
        oldest = self._clock.monotonic_ms() - idle_ms
        idle = [each for each in self._all() if each.used_ms < oldest and not each.busy]
        kept: set[SharePartition] = set()
        self.idle_bytes = 0
        waiting = [each for each in idle if each.knows_waits]
        for leader in sorted(waiting, key=lambda each: each.used_ms, reverse=True):
            size = _LEADER_BYTES + leader.memory_bytes
            if self.idle_bytes + size > bytes_max:
                break
            self.idle_bytes += size
            kept.add(leader)
        self.idle_kept = len(kept)
        if dropped := len(waiting) - len(kept):
            self.idle_dropped += dropped
            logger.warning(
                "unloaded %s that no member uses, although records wait there: together they take more than "
                "%d MiB. Their back-offs begin anew when a member fetches",
                counted(dropped, "share partition"),
                bytes_max >> 20,
            )
        gone = set(idle) - kept
        self._drop(gone.__contains__, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return before - len(self)

    def _count_repaired(self, batches: int) -> None:
        self.repaired += batches

    def _fenced(self, leader: SharePartition) -> None:
        if leader.config.share_ordering_takeover_wait:
            self.predecessors.failed(leader.key)
        self._forget(leader)
        leader.close(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def _drop(self, which: Callable[[SharePartition], bool], error: KafkaError) -> None:
        for leader in filter(which, self._all()):
            self._forget(leader)
            leader.close(error)

    def _all(self) -> list[SharePartition]:
        return [leader for of_topic in self._leaders.values() for leader in of_topic.values()]

    def _forget(self, leader: SharePartition) -> None:
        group_id, topic_id, partition = leader.key
        of_topic = self._leaders.get((group_id, topic_id), {})
        if of_topic.get(partition) is leader:
            if leader.engine is not None:
                with suppress(KafkaError):  # a failed engine has no counters
                    self.retired.setdefault((group_id, topic_id), Tally()).take(leader.engine)
            del of_topic[partition]
            self._let_go(leader)
            if not of_topic:
                del self._leaders[group_id, topic_id]
