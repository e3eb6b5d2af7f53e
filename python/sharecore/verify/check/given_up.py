"""Records archived too early, or passed unacknowledged by the start offset."""

from __future__ import annotations

from sharecore.verify.check.tables import MASK, Share
from sharecore.verify.check.transactions import Transactions
from sharecore.verify.check.world import World
from sharecore.verify.history import Op


class GivenUp:
    """Offsets before a start offset must be accepted, rejected, at the delivery limit, or no record of the
    group.
    """

    def __init__(self, world: World, transactions: Transactions) -> None:
        self._world, self._transactions = world, transactions
        self.handlers = {"offsets": self._offsets}

    def _offsets(self, line: int, op: Op) -> None:
        """Record the offsets that the start offset has passed since the last call."""
        if op["outcome"] != "ok" or op["start_offset"] < 0:
            return
        share, to = self._world.share(op), op["start_offset"]
        if share.origin < 0:
            share.origin = to
        first = max(share.origin, share.start_offset)
        if to - first > 100_000_000:
            raise ValueError(f"the start offset went from {first} to {to}")
        for offset in range(first, to):
            page = share.pages.get(offset)
            if page is None or not share.is_done(page, offset & MASK):
                share.passed.append(offset)
                share.passed_line.append(line)
        if to >= share.start_offset:
            share.start_offset, share.start_line = to, line

    def finish(self) -> None:
        """Report passed records of the group that were not acknowledged in time."""
        for share in self._world.shares.values():
            for offset, line in zip(share.passed, share.passed_line, strict=True):
                self._check(share, offset, line)

    def _check(self, share: Share, offset: int, line: int) -> None:
        ident = share.log.id_at(offset)
        if ident < 0 or not self._transactions.is_visible(ident, share.group.committed):
            return
        page, at = share.pages.get(offset), offset & MASK
        if page is not None and (page.settled_line[at] or page.perhaps[at]):
            return
        count = 0 if page is None else page.count[at]
        last = 0 if page is None else page.line[at]
        text = f"{share.name}, offset {offset}: given up after {count} deliveries, and nobody settled it"
        self._world.breaches.add("given up", text, (last, line))
