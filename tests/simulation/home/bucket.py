"""The bucket of a home, and what is under way to it and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from sharecore import _core

if TYPE_CHECKING:
    from tests.simulation.home.machines import HomeMachine, HomeProcess
    from tests.simulation.home.world import HomeWorld

_TIMEOUT_S = 5.0
"""After so long a transport gives up on an answer."""
_LOST = "no answer in time"
_QUICK_S, _SLOW_S, _LATE_S = 0.06, 4.0, 60.0
_CUT_ARRIVES = 0.3
"""Of what is sent in the moment of a cut, some has passed it."""
_MISSES = 0.02
_LOOK_S = 0.05


class Way:
    """The way of a machine's threads to the bucket."""

    def __init__(self, bucket: SimulatedBucket, machine: HomeMachine) -> None:
        self._bucket = bucket
        self._machine = machine

    def ask(self, requests: Sequence[tuple[str, str]]) -> list[str | None]:
        """Requests that are made at once; gives for each why it has no answer. The machine spends time."""
        return self._bucket.asked(self._machine, requests)

    def wait(self, seconds: float) -> None:
        """A thread waits before it tries again."""
        self._machine.spend(seconds)


class EvictedWay(Way):
    """The way of reads of evicted segments: threads may wait for the bucket, the event loop may not."""

    def ask(self, requests: Sequence[tuple[str, str]]) -> list[str | None]:
        if not self._machine.may_wait:
            names = ", ".join(name for _, name in requests)
            self._bucket.story_of_loop(self._machine, names)
        self._bucket.evicted_reads += 1
        return super().ask(requests)


class SimulatedBucket:
    """A bucket that several machines reach, each on a way of its own.

    Attributes:
        memory: what it holds.
        cut_until: by node, until when it does not reach the bucket, in seconds.
        held_until: by node, until when answers do not reach it, though its requests reach the bucket.
        absent_until: until when reads may miss what is there (a negative cache).
        is_calm: nothing is lost, and nothing takes long.
        evicted_reads: requests for pieces of evicted segments.
    """

    def __init__(self, world: HomeWorld) -> None:
        self.memory = _core.MemoryBucket()
        self.cut_until: dict[int, float] = {}
        self.held_until: dict[int, float] = {}
        self.absent_until = 0.0
        self.is_calm = True
        self.evicted_reads = 0
        self._world = world
        self._chance = world.chance("bucket")
        self._under_way: list[tuple[float, int, HomeProcess | None, Callable[[], object]]] = []
        self._number = 0
        self._outside = copy_context()

    def story_of_loop(self, machine: HomeMachine, names: str) -> None:
        """Report that an event loop waits for the bucket."""
        self._world.story.broken("an event loop waits for the bucket", f"{machine.site} reads {names}")

    def begin(self) -> None:
        """From now on the way to the bucket has the faults of the plan."""
        self.is_calm = False

    def heal(self) -> None:
        """No more faults; what is late is lost."""
        self.is_calm = True
        self.cut_until.clear()
        self.held_until.clear()
        self.absent_until = 0.0

    def _is_on(self, feature: str) -> bool:
        return not self.is_calm and feature in self._world.plan.features

    def _delay_s(self) -> float:
        chance = self._chance
        drawn = chance.random()
        if drawn < 0.02 and self._is_on("late requests"):
            return chance.uniform(0, _LATE_S)
        if drawn < 0.09 and self._is_on("slow bucket"):
            return chance.uniform(0.1, _SLOW_S)
        return chance.uniform(0.002, _QUICK_S)

    def _is_cut(self, node: int, ahead_s: float = 0.0) -> bool:
        return self._world.loop.now + ahead_s < self.cut_until.get(node, 0.0)

    def _is_lost(self, share: float) -> bool:
        return self._is_on("lost requests") and self._chance.random() < share

    def _misses(self, kind: str, ahead_s: float = 0.0) -> bool:
        is_stale = self._world.loop.now + ahead_s < self.absent_until
        return kind == "get" and is_stale and self._chance.random() < 0.5

    # requests of a store, whose answers come by themselves

    def send(self, machine: HomeMachine, process: HomeProcess, call: _core.BucketCall) -> None:
        """A request sets out; its answer, if any, is handed to the machine."""
        now = self._world.loop.now
        unknown = _core.BucketAnswer.unknown(_LOST)
        self._at(now + _TIMEOUT_S, process, lambda: machine.answered(process, call.id, unknown))
        is_cut = self._is_cut(machine.node_id)
        if (is_cut and self._chance.random() >= _CUT_ARRIVES) or self._is_lost(_MISSES):
            return
        self._at(now + self._delay_s(), None, lambda: self._arrived(machine, process, call))
        if self._is_lost(_MISSES):
            # and once more, much later
            late = now + self._chance.uniform(0, _LATE_S / 2)
            self._at(late, None, lambda: self._arrived(machine, process, call))

    def _arrived(self, machine: HomeMachine, process: HomeProcess, call: _core.BucketCall) -> None:
        if self.is_calm and not process.alive:
            return
        answer = _core.BucketAnswer.absent() if self._misses(call.kind) else self.memory.ask(call)
        is_cut = self._is_cut(machine.node_id)
        if (is_cut and self._chance.random() >= _CUT_ARRIVES) or self._is_lost(_MISSES):
            return
        held_until = self.held_until.get(machine.node_id, 0.0)
        back = max(self._world.loop.now + self._delay_s(), held_until)
        self._at(back, process, lambda: machine.answered(process, call.id, answer))

    def _at(self, when: float, process: HomeProcess | None, arrive: Callable[[], object]) -> None:
        """Something arrives at a time, at a process or at the bucket."""
        self._number += 1
        heappush(self._under_way, (when, self._number, process, arrive))
        self._world.loop.call_at(when, self.deliver, context=self._outside)

    def deliver(self) -> None:
        """What is due arrives; what is for a process that stands still arrives later."""
        now = self._world.loop.now
        while self._under_way and self._under_way[0][0] <= now:
            _, _, process, arrive = heappop(self._under_way)
            if process is not None and process.held is not None:
                self._at(now + _LOOK_S, process, arrive)
            elif process is None or process.alive:
                arrive()

    # requests that are waited for in a thread

    def asked(self, machine: HomeMachine, requests: Sequence[tuple[str, str]]) -> list[str | None]:
        """See `Way.ask`."""
        longest_s, lost = 0.0, list[str | None]()
        ahead_s = machine.spent_s
        for kind, _ in requests:
            took_s = self._delay_s() + self._delay_s()
            is_held = self._world.loop.now + ahead_s < self.held_until.get(machine.node_id, 0.0)
            is_lost = (
                self._is_cut(machine.node_id, ahead_s)
                or is_held
                or took_s > _TIMEOUT_S
                or self._is_lost(_MISSES)
                or self._misses(kind, ahead_s)
            )
            longest_s = max(longest_s, _TIMEOUT_S if is_lost else took_s)
            lost.append(_LOST if is_lost else None)
        machine.spend(longest_s)
        return lost
