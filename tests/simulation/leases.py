"""The auditor's own model of a share partition: one entry an offset, far simpler than the engine.

Where the wire does not tell what the broker has done, the model takes what would be right in either case: it
knows from when on a record *may* be given to another, not from when on it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

RELEASE, RENEW = 2, 4
ACCEPTED, REJECTED = "accept", "reject"
NAMES = ("gap", ACCEPTED, "release", REJECTED, "renew")
_TICK_S = 0.002
"""Locks count whole milliseconds."""


@dataclass(slots=True)
class Entry:
    """One offset.

    Args:
        member: who holds it, or held it last.
        lease: number of that delivery.
        free_from: from when on another may have it, in seconds.
        counts: lowest and highest delivery count that the next delivery may have.
        durable: the count that is known to be on the disk.
        settled: an acknowledgement was answered; it never comes back.
        perhaps: an acknowledgement may have taken effect.
        unanswered: an acknowledgement has had no answer yet.
        doubtful: an acknowledgement failed, or had no answer until another delivery: it has not taken effect,
            but after a restart it may have, even if the record was delivered again meanwhile.
        doubted_at: when that acknowledgement was sent.
        hidden: how many deliveries there were that nobody was told of.
        leased_from: when the last delivery began, at the earliest.
        causes: why it may come again, and `back_from`: since when it may wait for that.
    """

    member: str = ""
    lease: int = 0
    free_from: float = 0.0
    held: bool = False
    counts: tuple[int, int] = (1, 1)
    durable: int = 0
    settled: str = ""
    perhaps: bool = False
    unanswered: bool = False
    doubtful: bool = False
    doubted_at: float = 0.0
    hidden: int = 0
    leased_from: float = 0.0
    back_from: float = 0.0
    causes: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Claim:
    """What one request says about one offset that its member held then.

    Args:
        perhaps: an earlier acknowledgement may have taken effect.
        late: the record's lock may have run out, and it was the last one or the record may have expired: the
            leader archives the record then and ignores its acknowledgement, which is confirmed all the same.
    """

    offset: int
    lease: int
    kind: int
    perhaps: bool = False
    late: bool = False


@dataclass
class SharePartition:
    """What is known of one share partition.

    Args:
        where: its name in the story.
        lock_s: the shortest acquisition lock that was ever set.
        limits: the lowest and the highest delivery limit that were ever set.
        hidden: fetches so far that may have leased records without an answer.
        first: lowest and highest count of the first delivery.
        floor: records below may be gone from the log.
        loaded_at: when it was led anew for the last time.
        taken_over_until: until when members may hold what a leader gave them that was killed, at least.
        start_may_fall: its state was lost, and who leads it may not know.
        suspended: resets that are under way.
        going: somebody asked for its deletion and was refused: that may be tried again at any time.
        lives: how often it was begun anew.
        may_count_undone: the coordinator may count acknowledgements that were reported as failed: as Apache's
            it keeps the highest start offset, and the highest count for it.
        set_to: where an administrator had it begin, as long as nothing was delivered since the answer; else
            None.
        wanted: where the resets that are under way would have it begin.
        renewed: a leader has begun there since they were asked for.
        given_meanwhile: what was given out since then, until the answer; None if nobody knew of this share
            partition when the reset was asked for.
        over_below: records below may have been settled, as far as is known.
        over: records that were settled, or may have been, before it was perhaps begun anew.
        may_have_expired: whether a record may have been given up for its age.
    """

    where: str
    lock_s: float
    limits: tuple[int, int]
    entries: dict[int, Entry] = field(default_factory=dict)
    deliveries: int = 0
    start_offset: int = -1
    suspended: int = 0
    going: bool = False
    hidden: int = 0
    floor: int = 0
    over_below: int = 0
    over: set[int] = field(default_factory=set)
    lives: int = 0
    loaded_at: float = 0.0
    taken_over_until: float = 0.0
    start_may_fall: bool = False
    may_count_undone: bool = False
    set_to: int | None = None
    wanted: set[int] = field(default_factory=set)
    renewed: bool = False
    given_meanwhile: set[int] | None = None
    first: tuple[int, int] = (1, 1)
    may_have_expired: Callable[[int], bool] = lambda offset: False

    @property
    def unsure(self) -> bool:
        """Whether it may be begun anew at this moment."""
        return self.suspended > 0 or self.going

    def suspend(self, start: int | None = None) -> None:
        """Somebody asks for a reset, to a start offset if it is known."""
        if not self.suspended:
            self.wanted, self.renewed, self.given_meanwhile = set(), False, set()
        if start is not None:
            self.wanted.add(start)
        self.suspended += 1

    def led(self, now: float, start: int) -> None:
        """Somebody begins to lead it, from what was written: the leases are gone."""
        self.loosen(restarted=False)
        self.loaded_at = now
        self.renewed |= start in self.wanted

    def begin_at(self, offset: int) -> None:
        """An administrator was told that it begins here now.

        A reset takes effect before its answer arrives: a member that has left but still has its session may
        be given records of the new state in between, and settle them.
        """
        if self.given_meanwhile is not None:
            self.set_to = offset

    def deliver(
        self, now: float, since: float, member: str, ranges: Iterable[tuple[int, int, int]]
    ) -> list[tuple[str, str]]:
        """A member was told that it holds records; gives what is wrong with that.

        Args:
            since: the earliest moment at which their locks can have begun.
        """
        wrong = []
        for first, last, count in ranges:
            for offset in range(first, last + 1):
                entry = self.entries.get(offset)
                if entry is None:
                    entry = self.entries[offset] = Entry(counts=self.first)
                self.set_to = None
                if self.suspended and self.renewed and self.given_meanwhile is not None:
                    self.given_meanwhile.add(offset)
                at = f"{self.where} offset {offset}, delivery {count} to {member}"
                if not self.unsure:
                    if entry.settled:
                        wrong.append(("settled record delivered", f"{at}: {entry.settled} was answered"))
                    if entry.held and now < entry.free_from - _TICK_S:
                        left = entry.free_from - now
                        wrong.append(
                            ("two owners", f"{at}: {entry.member} holds it for another {left:.3f} s")
                        )
                    low, high = self._counts(entry)
                    if not low <= count <= high:
                        wrong.append(("delivery count", f"{at}: {low} to {high} would be right"))
                    if count > self.limits[1]:
                        wrong.append(("delivery limit", f"{at}: the limit is {self.limits[1]}"))
                self.deliveries += 1
                entry.member, entry.lease, entry.held = member, self.deliveries, True
                entry.free_from = since + self.lock_s
                entry.leased_from, entry.causes = since, {"timeout"}
                entry.counts, entry.hidden = (count + 1, count + 1), self.hidden
                # an unanswered acknowledgement was undone or never arrived: after a restart it may take
                # effect
                entry.doubtful |= entry.unanswered
                self.may_count_undone |= entry.unanswered
                entry.settled, entry.perhaps, entry.unanswered = "", False, False
        return wrong

    def _counts(self, entry: Entry) -> tuple[int, int]:
        low, high = entry.counts
        return low, high + self.hidden - entry.hidden

    def may_be_over(self, offset: int) -> bool:
        """Whether nobody needs to get a record any more."""
        entry = self.entries.get(offset)
        if offset < self.over_below or offset in self.over or self.may_have_expired(offset):
            return True
        if entry is None:
            return self.hidden + self.first[1] > self.limits[0]
        return bool(entry.settled) or entry.perhaps or self._counts(entry)[1] > self.limits[0]

    def given_up(self) -> Iterator[tuple[int, str]]:
        """Records that nobody is given any more without having accepted them, for sure, and why."""
        for offset, entry in self.entries.items():
            if entry.settled == REJECTED:
                yield offset, "was rejected"
            elif entry.counts[0] > self.limits[1] and not (
                entry.settled
                or entry.perhaps
                or entry.doubtful
                or offset in self.over
                or self.may_have_expired(offset)
            ):
                yield offset, "was delivered as often as may be"

    def accepted(self) -> Iterator[int]:
        """Records that were accepted, for sure, and by nobody before perhaps rejected, nor as often delivered
        as may be: what could not be written as the last lock ran out has its letter all the same.
        """
        for offset, entry in self.entries.items():
            sure = not entry.doubtful and offset not in self.over and entry.counts[0] <= self.limits[0]
            sure = sure and not self.may_have_expired(offset)
            if entry.settled == ACCEPTED and sure:
                yield offset

    def claims(self, now: float, member: str, batches: Iterable[tuple[int, int, bytes]]) -> list[Claim]:
        """A request acknowledges records: what of it the member may do."""
        found = []
        for first, last, types in batches:
            if not types or last - first > 100_000:
                continue
            for offset in range(first, last + 1):
                at = offset - first
                kind = types[at] if len(types) > at else types[0]
                entry = self.entries.get(offset)
                if entry is None or not entry.held or entry.member != member:
                    found.append(Claim(offset, 0, kind))
                    continue
                late = now > entry.free_from - _TICK_S and (
                    self._counts(entry)[1] > self.limits[0] or self.may_have_expired(offset)
                )
                found.append(Claim(offset, entry.lease, kind, entry.perhaps, late))
                if kind == RELEASE:
                    entry.free_from = min(entry.free_from, now)
                elif kind == RENEW:
                    # the lock starts again, and may be shorter than before
                    entry.free_from = min(entry.free_from, now + self.lock_s)
                else:
                    entry.perhaps = entry.unanswered = True
        return found

    def answered(
        self, asked: float, now: float, member: str, claims: Iterable[Claim]
    ) -> list[tuple[str, str]]:
        """Acknowledgements were answered without an error; gives what is wrong with that."""
        wrong = []
        for claim in claims:
            entry = self.entries.get(claim.offset)
            if entry is None:
                continue
            if claim.lease == 0:
                foreign = entry.held and entry.member != member and claim.offset >= self.floor
                # the start offset may have passed what its member acknowledges at this moment
                foreign = foreign and not entry.perhaps
                if foreign and entry.free_from - self.lock_s < asked and now < entry.free_from:
                    wrong.append(
                        (
                            "foreign acknowledgement",
                            f"{self.where} offset {claim.offset}: {member} settled what {entry.member} holds",
                        )
                    )
                continue
            if entry.lease != claim.lease:
                if claim.kind not in (RELEASE, RENEW) and entry.member == member:
                    # its earlier fetch has acquired it again, and the acknowledgement applies to that
                    entry.perhaps = True
                elif claim.kind not in (RELEASE, RENEW):
                    wrong.append(
                        (
                            "settled record delivered",
                            f"{self.where} offset {claim.offset}: {entry.member} got it while {member}'s "
                            f"{NAMES[claim.kind]} was under way",
                        )
                    )
                continue
            if claim.kind == RENEW:
                if entry.held:
                    entry.free_from = max(entry.free_from, asked + self.lock_s)
            elif claim.kind == RELEASE:
                entry.held = False
                entry.durable = entry.counts[0] - 1
                # this was written after all earlier writes, though it does not move the start offset back
                entry.doubtful &= self._start_may_be_behind(claim.offset)
                entry.free_from = now
            elif claim.late:
                entry.held = entry.unanswered = False
                entry.perhaps = True
            else:
                entry.held = entry.unanswered = False
                entry.settled = NAMES[claim.kind]
        return wrong

    def _start_may_be_behind(self, offset: int) -> bool:
        """Whether a write that failed may have moved the start offset past this one."""
        return all(
            each.doubtful or self.may_be_over(before)
            for before, each in self.entries.items()
            if before < offset
        )

    def refused(self, asked: float, claims: Iterable[Claim], *, certain: bool) -> None:
        """Acknowledgements were answered with an error; `certain`ly nothing has changed then."""
        # a new leader may have found the write that was reported as failed
        found = not certain and self.loaded_at >= asked
        for claim in claims:
            entry = self.entries.get(claim.offset)
            if entry is not None and entry.lease == claim.lease and claim.kind not in (RELEASE, RENEW):
                self.may_count_undone |= not certain
                entry.perhaps &= claim.perhaps or found
                entry.unanswered &= claim.perhaps
                if not certain:
                    entry.doubtful, entry.doubted_at = True, asked

    def let_go(self, now: float, member: str) -> None:
        """The member's session ended: what it holds may be free."""
        for entry in self.entries.values():
            if entry.held and entry.member == member:
                entry.free_from = min(entry.free_from, now)
                entry.causes |= {"session"}

    def loosen(self, *, restarted: bool) -> None:
        """Leases may be gone, and counts as they are on the disk."""
        for entry in self.entries.values():
            entry.free_from = 0.0
            entry.causes = {"load"}
            entry.counts = min(entry.counts[0], entry.durable + 1), entry.counts[1]
            if restarted:
                entry.held = False
                entry.perhaps |= entry.doubtful
                entry.doubtful = entry.unanswered = False

    def forget(self, *, perhaps: bool = False) -> None:
        """The share partition was begun anew, or `perhaps` it was."""
        # if the leader continues after all, finished records do not lag and are not redelivered
        over = {o for o, each in self.entries.items() if each.doubtful or self.may_be_over(o)}
        given = self.given_meanwhile or set()
        self.over = self.over | over if perhaps else set(given)
        self.entries.clear()
        self.lives += 1
        self.going = False
        self.first = 1, self.limits[1] if perhaps or given else 1
        self.set_to = None
        self.start_offset = -1
