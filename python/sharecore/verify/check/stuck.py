"""Unacknowledged records that are no longer delivered, and wrong lag."""

from __future__ import annotations

from sharecore.verify.check.tables import MASK, Share
from sharecore.verify.check.transactions import Transactions
from sharecore.verify.check.world import World
from sharecore.verify.history import Op


class Stuck:
    """Compares the remaining records with the times in which members were only waiting.

    Args:
        bound_ms: a record must be delivered within this time after its lock expired.
    """

    def __init__(self, world: World, transactions: Transactions, bound_ms: float) -> None:
        self._world, self._transactions, self._bound_ms = world, transactions, bound_ms
        self._quiets: dict[Share, tuple[int, float, float]] = {}
        self._lags: list[tuple[Share, int, float, int, int]] = []
        self._log_ends: dict[int, int] = {}
        self._locked_until: dict[Share, float] = {}
        self.handlers = {
            "quiet": self._quiet,
            "ends": self._ends,
            "offsets": self._offsets,
            "take": self._locks,
            "settle": self._locks,
        }

    def _quiet(self, line: int, op: Op) -> None:
        """Record a time in which members polled, held nothing and got nothing."""
        self._quiets[self._world.share(op)] = (line, op["start"], op["end"])

    def _locks(self, line: int, op: Op) -> None:
        """Record when the last lock expires, whoever holds it."""
        if "lock_ms" in op:
            share = self._world.share(op)
            self._locked_until[share] = max(self._locked_until.get(share, 0.0), op["end"] + op["lock_ms"])

    def _ends(self, line: int, op: Op) -> None:
        """Record the end of a log."""
        if op["outcome"] == "ok":
            self._log_ends[self._world.log(op).number] = op["offset"]

    def _offsets(self, line: int, op: Op) -> None:
        """Record the reported lag while nothing moved."""
        share, lag = self._world.share(op), op.get("lag")
        if op["outcome"] == "ok" and lag is not None and share in self._quiets:
            self._lags.append((share, line, op["start"], op["start_offset"], lag))

    def finish(self) -> None:
        """Report the remaining records."""
        left = {share: self._left(share, *quiet) for share, quiet in self._quiets.items()}
        reported: dict[Share, tuple[int, int]] = {}
        for share, line, start, start_offset, lag in self._lags:
            if start >= self._quiets[share][1]:
                self._check_lag(share, line, start_offset, lag, left[share])
                reported[share] = (line, lag)
        for share, (line, lag) in reported.items():
            if lag and not left[share]:
                self._check_reported(share, line, lag)

    def _check_reported(self, share: Share, line: int, lag: int) -> None:
        """Report records in the cluster's own lag, whatever may have happened to them unseen."""
        quiet, start, end = self._quiets[share]
        waited = end - max(start, self._locked_until.get(share, 0.0))
        # records of open transactions count, and readers of committed records wait for them
        if waited > self._bound_ms and not share.group.committed:
            text = f"{share.name}: lag {lag}, and members that were waiting got nothing for {waited:.0f} ms"
            self._world.breaches.add("stuck", text, (quiet, line), end)

    def _left(self, share: Share, line: int, start: float, end: float) -> int:
        """Return how many records were certainly unacknowledged, and report them."""
        left = 0
        for offset, ident, seen in share.log.seen():
            if offset < max(share.origin, share.start_offset):
                continue
            page, at = share.pages.get(offset), offset & MASK
            if page is None:
                count, delivered, until = 0, 0, self._world.sent.at(ident).end[ident & MASK]
            else:
                if share.is_done(page, at):
                    continue
                count, delivered, until = page.count[at], page.line[at], page.until[at]
            if share.origin < 0 and not count:
                continue
            if not self._transactions.is_visible(ident, share.group.committed):
                continue
            left += 1
            if end - max(start, until) > self._bound_ms:
                text = (
                    f"{share.name}, offset {offset}: not settled, and not delivered for "
                    f"{end - max(start, until):.0f} ms though members were waiting"
                )
                self._world.breaches.add("stuck", text, (delivered or seen, line), end)
        return left

    def _check_lag(self, share: Share, line: int, start_offset: int, lag: int, left: int) -> None:
        end = self._log_ends.get(share.log.number)
        if end is None:
            return
        settled = 0
        for offset in range(start_offset, end):
            page = share.pages.get(offset)
            settled += page is not None and page.settled_line[offset & MASK] > 0
        most = end - start_offset - settled
        if not left <= lag <= most:
            text = (
                f"{share.name}: lag {lag}, but {left} to {most} records are unsettled between "
                f"offsets {start_offset} and {end}"
            )
            self._world.breaches.add("lag", text, (line,))
