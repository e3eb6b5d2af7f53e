"""Placement rules of operators: slots pinned to nodes, and nodes that are drained."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sharecore.storage import Catalog
from sharecore.tier.settings.records import DRAINED, PINS


class Pin(NamedTuple):
    """A slot pinned to a node; None removes the pin."""

    slot: int
    node: int | None


class PlacementRules:
    """Placement rules in the settings of a tier; nodes are named by their `node.id`.

    Args:
        catalog: the tier's settings.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def pins(self) -> dict[int, int]:
        """Return preferred nodes by slot."""
        return {int(key.removeprefix(PINS)): int(value) for key, value in self._catalog.scan(PINS)}

    def drained(self) -> set[int]:
        """Return the drained nodes."""
        return {int(key.removeprefix(DRAINED)) for key, _ in self._catalog.scan(DRAINED)}

    async def pin(self, pins: list[Pin]) -> None:
        """Pin slots to nodes; raise KafkaError(KAFKA_STORAGE_ERROR) on failure."""
        await self._catalog.change(
            [(b"%s%d" % (PINS, pin.slot), b"%d" % pin.node) for pin in pins if pin.node is not None],
            [b"%s%d" % (PINS, pin.slot) for pin in pins if pin.node is None],
        )

    async def drain(self, node: int, *, drained: bool) -> None:
        """Drain a node, or undo it; raise KafkaError(KAFKA_STORAGE_ERROR) on failure."""
        key = b"%s%d" % (DRAINED, node)
        if drained:
            await self._catalog.put(key, b"1")
        else:
            await self._catalog.change(deletes=[key])

    def on_change(self, changed: Callable[[], object]) -> None:
        """Call back after a change by another node or an operator."""
        for prefix in (PINS, DRAINED):
            self._catalog.watch(prefix, lambda key: changed())
