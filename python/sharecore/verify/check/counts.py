"""Delivery counts increase with each delivery, up to the limit."""

from __future__ import annotations

from sharecore.verify.check.doubts import Doubt, Doubts
from sharecore.verify.check.tables import Share, SharePage, Take
from sharecore.verify.check.world import World
from sharecore.verify.history import Op


class Counts:
    """Counts that fall, repeat or exceed the limit.

    A count may jump: a delivery whose response is lost counts too. When a share session closes, its records
    are released as if they had not been delivered, so a count may repeat. A killed broker forgets deliveries
    that were not persisted. A confirmed release is durable: the next count is always higher.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._doubts = Doubts(world)
        self.handlers = {"lost": self._lost, "leave": self._lost}

    def delivered(self, share: Share, page: SharePage, at: int, offset: int, count: int, take: Take) -> None:
        """Check a count against earlier ones."""
        limit = share.group.limit
        if count < 1 or (limit and count > limit):
            text = f"{share.name}, offset {offset}: delivery count {count}, with a limit of {limit}"
            self._world.breaches.add("count", text, (page.line[at], take.line), take.end)
        before = page.count[at]
        if not before or count > before or take.start <= page.end[at]:
            return
        text = f"{share.name}, offset {offset}: delivery count {before}, and {count} in the delivery after it"
        if count <= page.floor[at]:
            shown = (page.line[at], page.floor_line[at], take.line)
            self._world.breaches.add("count", f"{text}; the release between was confirmed", shown, take.end)
            return
        lines = (page.line[at], take.line)
        self._doubts.add(
            Doubt("count", text, lines, page.client[at], share.group.name, page.start[at], take.end)
        )

    def _lost(self, line: int, op: Op) -> None:
        """Drop breaches that the end of a session explains."""
        self._doubts.explain(self._world.client(op["client"]), op["group"], op["start"])

    def finish(self) -> None:
        """Report the unexplained breaches."""
        self._doubts.report()
