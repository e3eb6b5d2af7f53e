"""Rebalances of a classic group, from one generation to the next.

All members join again, the leader assigns, and all members sync. A member that does not join within the
rebalance timeout is removed. A new group waits a little for more members
(`group.initial.rebalance.delay.ms`).
"""

from __future__ import annotations

import logging

from sharecore.clock import Clock
from sharecore.coordinator.classic.group import ClassicGroup, ClassicState
from sharecore.coordinator.classic.member import ClassicMember, JoinResult, SyncResult
from sharecore.coordinator.classic.store import ClassicStore
from sharecore.errors import ErrorCode
from sharecore.waiting import Timers

logger = logging.getLogger(__name__)

NEW_MEMBER_JOIN_MS = 300_000
"""Timeout for a new member's first generation."""

_CAN_REBALANCE = (ClassicState.STABLE, ClassicState.COMPLETING, ClassicState.EMPTY)


class Rebalancer:
    """Move groups through their rebalance states.

    Args:
        store: persists generations without members.
        initial_delay_ms: `group.initial.rebalance.delay.ms`.
    """

    def __init__(self, store: ClassicStore, clock: Clock, timers: Timers, initial_delay_ms: int) -> None:
        self._store = store
        self._clock = clock
        self._timers = timers
        self._initial_delay_ms = initial_delay_ms

    def request(self, group: ClassicGroup, reason: str) -> None:
        """Start a rebalance; if one is being prepared, complete it once all members have joined."""
        if group.state in _CAN_REBALANCE:
            self._prepare(group, reason)
        elif group.state is ClassicState.PREPARING:
            self.complete_if_all_joined(group)

    def complete_if_all_joined(self, group: ClassicGroup, *, at_once: bool = False) -> None:
        """Complete the join phase once all members have joined; a new group waits for its delay first.

        Args:
            at_once: do not wait for the delay.
        """
        waits = group.newcomers_wait and not at_once
        if group.state is ClassicState.PREPARING and group.all_joined and not waits:
            self._complete(group)

    def _prepare(self, group: ClassicGroup, reason: str) -> None:
        if group.state is ClassicState.COMPLETING:
            self.fail_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.cancel_timers()
        initial = group.state is ClassicState.EMPTY
        group.move_to(ClassicState.PREPARING, self._clock.now_ms())
        about = {"group": group.group_id}
        logger.debug(
            "group %s rebalances after generation %d: %s",
            group.group_id,
            group.generation,
            reason,
            extra=about,
        )
        if initial:
            # an assigned member id that was never used delays nobody
            group.newcomers_wait = True
            group.newcomers = False
            delay_ms = self._initial_delay_ms
            self._wait_for_newcomers(group, delay_ms, max(0, group.rebalance_timeout_ms - delay_ms))
            return
        self._wait_for_members(group)
        self.complete_if_all_joined(group)

    def _wait_for_newcomers(self, group: ClassicGroup, delay_ms: int, rest_ms: int) -> None:
        def fired() -> None:
            if group.newcomers and rest_ms > 0:
                group.newcomers = False
                again_ms = min(self._initial_delay_ms, rest_ms)
                self._wait_for_newcomers(group, again_ms, rest_ms - again_ms)
            else:
                group.newcomers_wait = False
                self._complete(group)

        group.rebalance_timer = self._timers.call_later(delay_ms / 1000, fired)

    def _wait_for_members(self, group: ClassicGroup) -> None:
        group.rebalance_timer = self._timers.call_later(
            group.rebalance_timeout_ms / 1000, lambda: self._complete(group)
        )

    def _complete(self, group: ClassicGroup) -> None:
        group.cancel_timers()
        group.newcomers_wait = False
        if group.state is not ClassicState.PREPARING:
            return
        for member in [m for m in group.members.values() if m.join_done is None and m.instance_id is None]:
            group.remove(member)
        if group.members and not group.elect_leader():
            # only static members, none of which has returned yet: wait until their sessions expire
            self._wait_for_members(group)
            return
        now_ms = self._clock.now_ms()
        group.next_generation(now_ms)
        if not group.members:
            self._store.write_empty(group)
            return
        for member in list(group.members.values()):
            member.is_new = False
            group.pending_syncs.add(member.member_id)
            self.keep_alive(member)
            member.finish_join(group.join_result(member))
        self._wait_for_syncs(group, group.generation)

    def _wait_for_syncs(self, group: ClassicGroup, generation: int) -> None:
        def fired() -> None:
            if group.generation != generation or group.state not in (
                ClassicState.COMPLETING,
                ClassicState.STABLE,
            ):
                return
            late = [
                group.members[member_id] for member_id in group.pending_syncs if member_id in group.members
            ]
            for member in late:
                group.remove(member)
            if late:
                self.request(group, "members did not sync in time")

        group.sync_timer = self._timers.call_later(group.rebalance_timeout_ms / 1000, fired)

    def keep_alive(self, member: ClassicMember) -> None:
        """Renew the member's session."""
        member.session.set(NEW_MEMBER_JOIN_MS if member.is_new else member.session_timeout_ms)

    def assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        """Apply the leader's durable assignment, and answer the waiting members."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        group.move_to(ClassicState.STABLE, self._clock.now_ms())
        for member in list(group.members.values()):
            if member.sync_done is not None:
                self.synced(group, member)

    def synced(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Answer a member that waits for its assignment."""
        self.keep_alive(member)
        group.pending_syncs.discard(member.member_id)
        if not group.pending_syncs and group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None
        member.finish_sync(group.sync_result(member))

    def fail_syncs(self, group: ClassicGroup, error: ErrorCode) -> None:
        """Discard the assignment, and fail the waiting members."""
        for member in list(group.members.values()):
            member.assignment = b""
            if member.sync_done is not None:
                self.keep_alive(member)
                member.finish_sync(SyncResult(error))

    def remove(self, group: ClassicGroup, member: ClassicMember, reason: str) -> None:
        """Remove a member, and continue a rebalance that waited for it."""
        self.take_out(group, member)
        self.lost(group, reason, at_once=True)

    def take_out(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Remove a member, and fail its pending requests; call `lost` afterwards."""
        member.finish_join(JoinResult(ErrorCode.UNKNOWN_MEMBER_ID))
        member.finish_sync(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member)

    def lost(self, group: ClassicGroup, reason: str, *, at_once: bool = False) -> None:
        """Continue a group's rebalance after the loss of members; see `complete_if_all_joined`."""
        if group.state in (ClassicState.STABLE, ClassicState.COMPLETING):
            self._prepare(group, reason)
        else:
            self.complete_if_all_joined(group, at_once=at_once)
