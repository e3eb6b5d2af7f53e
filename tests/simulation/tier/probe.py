"""Looks into the nodes now and then: engines, who waits for what is there, requests without answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.tier.nodes import Node
    from tests.simulation.tier.world import TierWorld

_EVERY_EVENTS = 150
_PATIENCE_S = 20.0
_BATCH_RECORDS = 500


class TierProbe:
    """Called while nothing is ready, before time passes."""

    def __init__(self, world: TierWorld) -> None:
        self._world = world
        self._next = 0
        self._since: dict[tuple[int, str, str], float] = {}
        self._starts: dict[tuple[int, str], tuple[object, int]] = {}
        world.loop.pumps.append(self._pump)

    def _pump(self) -> None:
        if self._world.loop.events >= self._next:
            self._next = self._world.loop.events + _EVERY_EVENTS
            self.look()

    def look(self) -> None:
        """One look."""
        world = self._world
        if world.quiet:
            for overdue in world.auditor.overdue(world.loop.now):
                world.story.broken("no answer", overdue)
        seen: set[tuple[int, str, str]] = set()
        for node in world.nodes:
            if node.broker is None or not node.up or node.paused:
                continue
            led = node.broker.share.partitions._leaders.values()
            for leader in [leader for leaders in led for leader in leaders.values()]:
                if leader.engine is not None:
                    self._look_at(node, leader, seen)
        for key in self._since.keys() - seen:
            del self._since[key]

    def _look_at(self, node: Node, leader: Any, seen: set[tuple[int, str, str]]) -> None:
        world, engine, now = self._world, leader.engine, self._world.loop.now
        if not world.plan.canary:
            engine.check()
        where = leader.key.coordinator_key()
        before, start = self._starts.get((node.number, where), (engine, 0))
        if before is engine and engine.start_offset < start:
            text = f"{where} at {node.site}: from {start} to {engine.start_offset}"
            world.story.broken("start offset went back", text)
        self._starts[node.number, where] = engine, engine.start_offset
        in_flight = engine.end_offset - engine.start_offset
        if (
            not world.queue_settings
            and in_flight > leader.config.share_partition_max_record_locks + _BATCH_RECORDS
        ):
            world.story.broken("memory", f"{where}: {in_flight} offsets in flight")
        waits = any(each.waiting for each in leader._interested) and leader.fetchable and not leader.reading
        due_ms, process = engine.next_deadline_ms, node.process
        assert process is not None
        late = due_ms is not None and due_ms < int(now * process.pace * 1000)
        looked = (("a fetch waits for what is there", waits), ("a lock does not run out", late))
        for what, is_so in looked:
            if is_so:
                key = node.number, where, what
                seen.add(key)
                since = max(self._since.setdefault(key, now), world.auditor.calm_since)
                if world.quiet and world.auditor.calm_since and now - since > _PATIENCE_S:
                    world.story.broken(what, f"{where} at {node.site}, for {now - since:.3f} s")
                    self._since[key] = now
