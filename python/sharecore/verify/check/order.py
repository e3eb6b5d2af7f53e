"""Order: the records of a producer are in a partition in the order in which it sent them."""

from __future__ import annotations

from sharecore.verify.check.tables import MASK
from sharecore.verify.check.world import World


class Order:
    """IDs of one client increase with the offsets of a partition."""

    def __init__(self, world: World) -> None:
        self._world = world

    def finish(self) -> None:
        """Check each log."""
        world = self._world
        for log in world.logs:
            latest: dict[int, tuple[int, int, int]] = {}
            for offset, ident, line in log.seen():
                page, at = world.sent.at(ident), ident & MASK
                client = page.client[at]
                if not client or ident in world.elsewhere:
                    continue
                before = latest.get(client)
                if before is not None and before[0] > ident:
                    name = world.client_names[client - 1]
                    text = (
                        f"{log.name}: {name} sent record {ident} before record {before[0]}, "
                        f"but they are at offsets {offset} and {before[1]}"
                    )
                    world.breaches.add("order", text, (before[2], line))
                else:
                    latest[client] = (ident, offset, line)
