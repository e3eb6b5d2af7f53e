"""Two leases of one record at the same time."""

from __future__ import annotations

from sharecore.verify.check.doubts import Doubt, Doubts
from sharecore.verify.check.tables import Settle, Share, SharePage, Take
from sharecore.verify.check.world import TERMINAL, World
from sharecore.verify.history import Op


class Overlap:
    """A member acquired a record while another certainly held it.

    The first lease is certain from the end of the call that acquired it until the start of that call plus the
    lock duration, or until the member starts to release it. The second lease certainly began within its own
    call. All times are from one clock.

    An acknowledgement confirmed after another member acquired the record, and before that one acknowledged
    it, proves the same without a clock.
    """

    def __init__(self, world: World, uncertainty_ms: float) -> None:
        self._world, self._uncertainty_ms = world, uncertainty_ms
        self._doubts = Doubts(world)
        self._young: dict[tuple[str, int], Doubt] = {}
        self._late: dict[tuple[str, int], Doubt] = {}
        self.handlers = {"lost": self._lost, "leave": self._lost}

    def delivered(self, share: Share, page: SharePage, at: int, offset: int, count: int, take: Take) -> None:
        """Check a delivery against the previous lease."""
        holder = page.client[at]
        slack = self._uncertainty_ms
        if not holder or take.start <= page.end[at] + slack or take.end >= page.until[at] - slack:
            return
        names = self._world.client_names
        text = (
            f"{share.name}, offset {offset}: {names[take.client - 1]} got it while "
            f"{names[holder - 1]} held it"
        )
        doubt = Doubt(
            "overlap",
            text,
            (page.line[at], take.line),
            holder,
            share.group.name,
            page.start[at],
            take.end,
        )
        self._young[share.name, offset] = doubt

    def settled(self, share: Share, page: SharePage, at: int, offset: int, settle: Settle) -> None:
        """Drop the suspicion about a lease that its holder had started to release; check who holds it."""
        if self._young:
            doubt = self._young.get((share.name, offset))
            if doubt is not None and doubt.holder == settle.client and settle.kind != "renew":
                del self._young[share.name, offset]
                if settle.start > doubt.until_ms + self._uncertainty_ms:
                    self._doubts.add(doubt)
        if self._late and settle.kind in TERMINAL and settle.outcome != "failed":
            late = self._late.get((share.name, offset))
            if late is not None and late.holder == settle.client and settle.start <= late.until_ms:
                del self._late[share.name, offset]
        if settle.outcome == "ok" and self._is_with_another(share, page, at, settle):
            names = self._world.client_names
            text = (
                f"{share.name}, offset {offset}: the {settle.kind} of {names[settle.client - 1]} "
                f"was confirmed after {names[page.client[at] - 1]} had got the record"
            )
            lines = (page.line[at], settle.line)
            self._late[share.name, offset] = Doubt(
                "overlap", text, lines, page.client[at], share.group.name, page.end[at], settle.end
            )
        elif settle.kind != "renew" and page.client[at] == settle.client and settle.outcome != "failed":
            page.until[at] = min(page.until[at], settle.start)

    @staticmethod
    def _is_with_another(share: Share, page: SharePage, at: int, settle: Settle) -> bool:
        """Return whether another member certainly acquired the record before this request, and may still hold
        it.

        Acknowledged and archived records may be before the start offset, where brokers confirm everything.
        """
        if page.client[at] in (0, settle.client) or settle.start <= page.end[at]:
            return False
        given_up = share.group.limit and page.count[at] >= share.group.limit
        return not (page.settled_line[at] or page.perhaps[at] or given_up)

    def _lost(self, line: int, op: Op) -> None:
        """Drop suspicions that a lost lease explains."""
        holder = self._world.client(op["client"])
        self._young = {
            key: doubt
            for key, doubt in self._young.items()
            if doubt.holder != holder or doubt.group != op["group"]
        }
        self._doubts.explain(holder, op["group"], op["start"])

    def finish(self) -> None:
        """Report the unexplained suspicions."""
        for doubt in self._young.values():
            self._doubts.add(doubt)
        for late in self._late.values():
            self._world.breaches.add(late.kind, late.text, late.lines, late.until_ms)
        self._doubts.report()
