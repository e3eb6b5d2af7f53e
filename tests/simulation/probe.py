"""Looks into the broker now and then: invariants of engines, who waits for what is there, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.queues.windows import Windows, is_late

if TYPE_CHECKING:
    from tests.simulation.world import World

_EVERY_EVENTS = 150
_PATIENCE_S, _SICK_PATIENCE_S = 2.0, 15.0
_RETAINED_S = 30.0 - 2.0


class Probe:
    """Called while nothing is ready, before time passes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._next = 0
        self._since: dict[tuple[str, str], float] = {}
        self._starts: dict[str, tuple[object, int]] = {}
        self._windows = Windows()
        world.loop.pumps.append(self._pump)

    def _pump(self) -> None:
        if self._world.loop.events >= self._next:
            self._next = self._world.loop.events + _EVERY_EVENTS
            self.look()

    def _retained(self) -> None:
        """Nothing is deleted for its age before it is old."""
        world, ledger = self._world, self._world.auditor.ledger
        for (topic_id, index), log in ledger.logs.items():
            if not ledger.retained(ledger.names.get(topic_id, "")) or world.clock.jumped:
                continue
            topic = world.machine.broker.topics.by_id(topic_id) if world.machine.broker is not None else None
            start = 0 if topic is None else topic.partitions[index].start_offset
            oldest = world.loop.now - _RETAINED_S
            young = [o for o in range(log.trimmed, start) if log.answered.get(o, oldest) > oldest]
            if young:
                world.story.broken("retention", f"{ledger.names[topic_id]}-{index}: {young[:5]} were young")
            log.trimmed = max(log.trimmed, start)

    def look(self) -> None:
        """One look."""
        world = self._world
        broker = world.machine.broker
        if broker is None or not world.machine.up:
            self._since.clear()
            self._starts.clear()
            return
        now = world.loop.now
        seen: set[tuple[str, str]] = set()
        budget = broker.server.budget
        if 0 <= budget.bytes_max < budget.used_bytes - (1 << 20):
            world.story.broken("memory", f"{budget.used_bytes} bytes of requests are held")
        for overdue in world.auditor.overdue(now):
            world.story.broken("no answer", overdue)
        self._retained()
        led = broker.share.partitions._leaders.values()
        for leader in [leader for leaders in led for leader in leaders.values()]:
            engine = leader.engine
            if engine is None:
                continue
            if not world.plan.canary:
                # planted bugs must be found from outside
                engine.check()
            where = leader.key.coordinator_key()
            before, start = self._starts.get(where, (engine, 0))
            if before is engine and engine.start_offset < start:
                text = f"{where}: from {start} to {engine.start_offset}"
                world.story.broken("start offset went back", text)
            self._starts[where] = engine, engine.start_offset
            for kind, text in self._windows.wrong(leader):
                world.story.broken(kind, f"{where}: {text}")
            due_ms = engine.next_deadline_ms
            waits = (
                any(each.waiting for each in leader._interested)
                and leader.fetchable
                and not leader.reading
                and not any(broker.share.partitions.held_back(leader.key.group_id))
            )
            late = due_ms is not None and due_ms < world.machine.clock.monotonic_ms()
            looked: tuple[tuple[str, bool], ...] = (
                ("a fetch waits for what is there", waits),
                ("a lock does not run out", late),
                ("a time does not come", is_late(leader, world.machine.clock)),
            )
            for what, is_so in looked:
                if is_so:
                    seen.add((where, what))
                    since = self._since.setdefault((where, what), now)
                    if now - since > (_SICK_PATIENCE_S if world.auditor.sick else _PATIENCE_S):
                        world.story.broken(what, f"{where}, for {now - since:.3f} s")
                        self._since[where, what] = now
        for key in self._since.keys() - seen:
            del self._since[key]
