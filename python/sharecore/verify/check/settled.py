"""A record with a confirmed accept or reject is not delivered again."""

from __future__ import annotations

from sharecore.verify.check.tables import Share, SharePage, Take
from sharecore.verify.check.world import World


class Settled:
    """Deliveries requested after the record was acknowledged."""

    def __init__(self, world: World) -> None:
        self._breaches = world.breaches

    def delivered(self, share: Share, page: SharePage, at: int, offset: int, count: int, take: Take) -> None:
        """Check a delivery against acknowledgements confirmed before it began."""
        if page.settled_line[at] and take.start > page.settled_end[at]:
            text = f"{share.name}, offset {offset}: delivered again after its acknowledgement was confirmed"
            lines = (page.line[at], page.settled_line[at], take.line)
            self._breaches.add("again", text, lines, take.end)

    def finish(self) -> None:
        """Do nothing: all breaches are reported at once."""
