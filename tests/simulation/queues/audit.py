"""What queue settings promise, held against every delivery: order, times, bounds.

Where the wire leaves open which settings are in force, or when a record was acquired, a promise counts
only where it holds for all that is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.simulation.leases import RELEASE, RENEW, Claim, Entry, SharePartition
from tests.simulation.ledger import Ledger, transaction_of
from tests.simulation.queues.notes import Notes
from tests.simulation.queues.settings import Queue, Settings

if TYPE_CHECKING:
    from tests.simulation.loop import Clock

Key = tuple[str, UUID, int]
Report = Callable[[str, str], None]
_TICK_S = 0.002
_OVERDRAWN = 60
"""A fetch may overdraw the rate by a record batch, or by what it asks for."""
_EARLY, _CLOCK_S = "a record comes early", 61.0
"""A clock that is set anew is noticed after a minute."""


@dataclass
class Delivery:
    """One partition of an answer.

    Args:
        since, now: the records were acquired in this time.
        committed: transactions count.
        surely: the leader has not changed meanwhile.
    """

    key: Key
    share: SharePartition
    member: str
    offsets: Sequence[int]
    since: float
    now: float
    committed: bool
    surely: bool


@dataclass
class _Flow:
    """What a group got at one rate."""

    rate: int
    since: float
    records: int = 0


class QueueAudit:
    """Promises of queue settings.

    Args:
        lag_s: how long those who lead may take to know of a change of settings.
        pace: how fast a clock may go.
        leader: who leads a share partition; each leader has bounds of its own.

    Attributes:
        groups: settings of those that have some.
        clock: the wall clock that records' times count by.
    """

    def __init__(
        self,
        shares: Mapping[Key, SharePartition],
        ledger: Ledger,
        report: Report,
        lag_s: float = 0.0,
        pace: float = 1.0,
        leader: Callable[[Key], str] = lambda key: "",
    ) -> None:
        self.groups: dict[str, Settings] = {}
        self.clock: Clock | None = None
        self._shares = shares
        self._ledger = ledger
        self._report = report
        self._lag_s = lag_s
        self._pace = pace
        self._leader = leader
        self._flows: dict[tuple[str, str], _Flow] = {}

    # settings

    def asked(self, now: float, request: Any) -> list[tuple[str, dict[str, object]]]:
        """Somebody alters settings; gives the groups and what is altered."""
        found = []
        for resource in request.resources:
            change: dict[str, object] = {
                each.name: each.value for each in resource.configs if each.config_operation == 0
            }
            if resource.resource_type == 32 and resource.resource_name in self.groups:
                found.append((resource.resource_name, change))
                self.groups[resource.resource_name].asked(now, change)
        return found

    def answered(self, now: float, changes: Iterable[tuple[str, dict[str, object]]], answer: Any) -> None:
        """What of that is in force."""
        done = {each.resource_name for each in answer.responses if not each.error_code}
        for group, change in changes:
            if group in done:
                self.groups[group].answered(now, change)

    def watch(self, group: str) -> None:
        """From now on the settings of a group count."""
        self.groups.setdefault(group, Settings(self._lag_s))

    def lost(self, now: float) -> None:
        """The disk may have lost settings."""
        for settings in self.groups.values():
            settings.lose(now)

    def restarted(self) -> None:
        """A broker begins anew: what it counts, too."""
        self._flows.clear()

    def led_anew(self, leader: str) -> None:
        """Somebody begins or ends to lead: what it counts may begin anew."""
        self._flows = {place: flow for place, flow in self._flows.items() if place[1] != leader}

    # deliveries

    def delivered(self, delivery: Delivery) -> None:
        """A member was told that it holds records, of which the model does not know yet."""
        group = delivery.key[0]
        settings = self.groups.get(group)
        if settings is None or delivery.share.unsure or self._ledger.harmed:
            return
        queues = settings.over(delivery.since, delivery.now)
        if not queues:
            return
        name = self._ledger.names.get(delivery.key[1], "")
        if not self._ledger.retained(name) and name not in self._ledger.compacted:
            self._in_order(delivery, queues)
        self._at_its_time(delivery, queues, settings)
        self._after_takeover(delivery, queues)
        self._not_paused(delivery, queues)
        self._within_rate(delivery, settings)

    def _broken(self, kind: str, delivery: Delivery, offset: int, text: str) -> None:
        at = f"{delivery.share.where} offset {offset} to {delivery.member}"
        self._report(kind, f"{at}: {text}")

    def _notes(self, key: Key) -> Notes:
        return self._ledger.log(*key[1:]).notes

    def _in_order(self, delivery: Delivery, queues: Sequence[Queue]) -> None:
        """Of a key only the first records that are not settled are out, with one member (I1, I2, I3)."""
        queue = queues[0]
        if any((each.ordering, each.key_header) != (queue.ordering, queue.key_header) for each in queues):
            return
        if queue.ordering == "none":
            return
        notes, here = self._notes(delivery.key), set(delivery.offsets)
        runs: dict[bytes, int] = {}
        for offset in delivery.offsets:
            note = notes.by_offset.get(offset)
            key = None if note is None else note.key_of(queue)
            if key is None:
                continue
            runs[key] = runs.get(key, 0) + 1
            for other in notes.of_key(queue, key):
                if other in here:
                    continue
                entry = delivery.share.entries.get(other)
                if entry is not None and self._is_held(delivery, entry):
                    text = f"{entry.member} holds {other} of key {key!r}"
                    self._broken("a key with two members", delivery, offset, text)
                    return
                if other < offset and not self._may_be_over(delivery.key, delivery.share, other):
                    is_back = entry is not None and entry.lease > 0
                    kind = (
                        "a record overtakes one that came back" if is_back else "a record overtakes another"
                    )
                    self._broken(kind, delivery, offset, f"{other} of key {key!r} is not settled")
                    return
        longest = max(queue.run_max for queue in queues)
        for key, count in runs.items():
            if count > longest:
                text = f"{count} records of key {key!r} at once, {longest} may be"
                self._broken("a long run", delivery, delivery.offsets[0], text)

    @staticmethod
    def _is_held(delivery: Delivery, entry: Entry) -> bool:
        is_sure = entry.held and not entry.perhaps and delivery.surely
        return is_sure and delivery.now < entry.free_from - _TICK_S

    def _may_be_over(self, key: Key, share: SharePartition, offset: int) -> bool:
        """Whether nobody needs a record any more, by all that is possible."""
        log = self._ledger.log(*key[1:])
        entry = share.entries.get(offset)
        if offset < log.gone_below or share.may_be_over(offset) or offset not in log.answered:
            return True
        if entry is not None and entry.doubtful and share.loaded_at >= entry.doubted_at:
            return True
        transaction = transaction_of(log.values.get(offset, b""))
        return transaction is not None and transaction not in self._ledger.sure

    def may_have_expired(self, key: Key, offset: int) -> bool:
        """Whether a group may have given up a record for its age."""
        settings = self.groups.get(key[0])
        if settings is None or self.clock is None:
            return False
        if settings.ever_lost():
            return True
        note = self._notes(key).by_offset.get(offset)
        for queue in settings.ever():
            if queue.ttl_ms < 0 and not queue.ttl_header:
                continue
            expires_ms = None if note is None else note.expires_ms(queue)
            latest_ms = self.clock.between(0.0, self.clock.monotonic_ms() / 1000)[1]
            if note is None or (expires_ms is not None and expires_ms <= latest_ms):
                return True
        return False

    def _at_its_time(self, delivery: Delivery, queues: Sequence[Queue], settings: Settings) -> None:
        """Nothing comes before its time or its back-off, nor once it has expired (I4, I7)."""
        notes = self._notes(delivery.key)
        assert self.clock is not None
        for offset in delivery.offsets:
            note = notes.by_offset.get(offset)
            if note is not None:
                latest_ms = self.clock.between(note.since, delivery.now)[1]
                times = [note.number(queue.deliver_at) for queue in queues]
                due_ms = min((time or 0 for time in times), default=0)
                if latest_ms < due_ms:
                    self._broken(_EARLY, delivery, offset, f"{due_ms - latest_ms} ms before its time")
                earliest_ms = self.clock.between(delivery.since, delivery.now)[0]
                ends = [note.expires_ms(queue) for queue in queues]
                if all(end is not None and end < earliest_ms - _TICK_S * 1000 for end in ends):
                    self._broken("an expired record", delivery, offset, f"it ended at {ends}, {earliest_ms}")
            entry = delivery.share.entries.get(offset)
            if entry is not None and entry.lease and delivery.surely:
                self._after_its_wait(delivery, offset, entry, settings)

    def _after_its_wait(self, delivery: Delivery, offset: int, entry: Entry, settings: Settings) -> None:
        begin, causes, count = entry.back_from, entry.causes, entry.counts[0] - 1
        if causes == {"load"}:
            begin, count = delivery.share.loaded_at, entry.durable
        elif "timeout" in causes:
            begin = min(entry.free_from, begin) if "release" in causes else entry.free_from
        queues = settings.over(begin, delivery.now)
        waits = [queue.wait_s(count, cause) for queue in queues for cause in causes]
        early_s = begin + min(waits, default=0.0) / self._pace - delivery.now
        if waits and early_s > _TICK_S:
            text = f"{early_s:.3f} s before the end of its back-off after {sorted(causes)}, delivery {count}"
            self._broken(_EARLY, delivery, offset, text)

    def _after_takeover(self, delivery: Delivery, queues: Sequence[Queue]) -> None:
        """After a leader was killed nothing is acquired while members may hold what it gave them (I1)."""
        left_s = delivery.share.taken_over_until - delivery.now
        waits = all(queue.ordering != "none" and queue.waits_after_takeovers for queue in queues)
        if waits and left_s > _TICK_S:
            text = f"members of a leader that was killed may hold records for {left_s:.3f} s"
            self._broken("no wait after a takeover", delivery, delivery.offsets[0], text)

    def _not_paused(self, delivery: Delivery, queues: Sequence[Queue]) -> None:
        """Nothing is acquired while a group is paused (I8)."""
        assert self.clock is not None
        latest_ms = self.clock.between(delivery.since - _CLOCK_S, delivery.now)[1]
        if all(queue.paused or latest_ms < queue.until_ms for queue in queues):
            self._broken("a paused group gets records", delivery, delivery.offsets[0], f"{queues[0]}")

    def _within_rate(self, delivery: Delivery, settings: Settings) -> None:
        """A group gets no more records than its rate allows (I8)."""
        place, now = (delivery.key[0], self._leader(delivery.key)), delivery.now
        if not delivery.surely:
            return
        flow = self._flows.get(place)
        rates = {queue.rate for queue in settings.over(now if flow is None else flow.since, now)}
        if len(rates) != 1 or flow is None or rates != {flow.rate}:
            rates = {queue.rate for queue in settings.over(now, now)}
            if len(rates) != 1:
                self._flows.pop(place, None)
                return
            self._flows[place] = _Flow(rates.pop(), now)
            return
        if not flow.rate or delivery.since < flow.since:
            return
        flow.records += len(delivery.offsets)
        most = flow.rate * (self._pace * (now - flow.since) + 1) + _OVERDRAWN
        if flow.records > most:
            text = f"{flow.records} records in {now - flow.since:.3f} s at {flow.rate} a second"
            self._broken("more than the rate allows", delivery, delivery.offsets[0], text)

    def holds(self, delivery: Delivery) -> None:
        """A member was told that it holds records, as the model knows: not more than it may (I8)."""
        settings = self.groups.get(delivery.key[0])
        if settings is None or not delivery.surely or delivery.share.unsure:
            return
        queues = settings.over(delivery.since, delivery.now)
        if not queues or not all(queue.member_max for queue in queues):
            return
        leader = self._leader(delivery.key)
        held = sum(
            1
            for key, share in self._shares.items()
            if key[0] == delivery.key[0] and self._leader(key) == leader
            for entry in share.entries.values()
            if entry.member == delivery.member and self._is_held(delivery, entry)
        )
        most = max(queue.member_max for queue in queues)
        if held > most:
            text = f"it holds {held} records, {most} are allowed"
            self._broken("more than a member may hold", delivery, delivery.offsets[0], text)

    # acknowledgements

    def claimed(self, now: float, share: SharePartition, claims: Iterable[Claim]) -> None:
        """Somebody asks for records to be settled, released or renewed."""
        for claim, entry in _leased(share, claims):
            if claim.kind == RELEASE:
                entry.back_from, entry.causes = now, entry.causes | {"release"}

    def settled(self, asked: float, share: SharePartition, claims: Iterable[Claim]) -> None:
        """That has been done."""
        for claim, entry in _leased(share, claims):
            if claim.kind == RELEASE:
                entry.back_from, entry.causes = asked, {"release"}

    def not_settled(self, asked: float, key: Key, share: SharePartition, claims: Iterable[Claim]) -> None:
        """It could not be written: nothing of the same key may have come for it (I1, I2)."""
        settings = self.groups.get(key[0])
        if settings is None or share.unsure or share.loaded_at >= asked:
            return
        for claim, _ in _leased(share, claims):
            if claim.kind in (RELEASE, RENEW) or claim.late or self._may_be_over(key, share, claim.offset):
                continue
            for queue in settings.over(asked, asked)[:1]:
                self._free_meanwhile(asked, key, claim.offset, queue)

    def _free_meanwhile(self, asked: float, key: Key, offset: int, queue: Queue) -> None:
        notes, share = self._notes(key), self._shares[key]
        note = notes.by_offset.get(offset)
        name = None if note is None else note.key_of(queue)
        after = [] if name is None else [other for other in notes.of_key(queue, name) if other > offset]
        begun = {other: share.entries[other].leased_from for other in after if other in share.entries}
        taken = {other: since for other, since in begun.items() if since > asked}
        if taken:
            orders = self.groups[key[0]].over(asked, max(taken.values()))
            if {(each.ordering, each.key_header) for each in orders} == {(queue.ordering, queue.key_header)}:
                text = f"{share.where} offset {min(taken)}: {offset} was not settled, and its key was free"
                self._report("a record overtakes another", text)


def _leased(share: SharePartition, claims: Iterable[Claim]) -> Iterator[tuple[Claim, Entry]]:
    for claim in claims:
        entry = share.entries.get(claim.offset)
        if entry is not None and claim.lease and entry.lease == claim.lease:
            yield claim, entry
