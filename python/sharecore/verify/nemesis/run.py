"""Consecutive faults, drawn from a seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterator
from typing import NamedTuple

from sharecore.verify.history import Writer
from sharecore.verify.nemesis.broker import LocalBroker
from sharecore.verify.nemesis.cluster import LocalCluster
from sharecore.verify.nemesis.proxy import Proxy

KINDS = ("kill", "stop", "restart", "cut", "delay", "half-close", "partition")
"""On every machine."""
LINK_KINDS = ("link-cut", "link-delay", "link-partition")
_MEND_MS = 1000.0
"""How long after a fault leases may still end because of it."""
_CLOCK_STEP_SECONDS_MAX = 60.0


class Step(NamedTuple):
    """A fault: after a pause, for a while, on the node drawn by `share`."""

    pause_s: float
    kind: str
    lasts_s: float
    share: float = 0.0


def schedule(seed: int, kinds: tuple[str, ...] = KINDS) -> Iterator[Step]:
    """Yield faults without end; the same ones for the same seed and kinds."""
    rng, shares = random.Random(f"{seed}-nemesis"), random.Random(f"{seed}-nodes")
    while True:
        kind = rng.choice(kinds)
        pause_s, lasts_s = rng.uniform(3, 12), 0.0 if kind in ("cut", "link-cut") else rng.uniform(0.2, 8)
        yield Step(pause_s, kind, lasts_s, shares.random())


class Nemesis:
    """Breaks a cluster that this program started, until it is cancelled; then everything is mended.

    Args:
        cluster: a running broker.
        hurry: speedup of the schedule.
    """

    def __init__(self, cluster: LocalCluster, seed: int, hurry: float = 1.0) -> None:
        self._cluster, self._seed, self._hurry = cluster, seed, hurry
        self.done: list[str] = []
        self._may_have_ended = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The faults that this cluster and machine allow."""
        node = self._cluster.nodes[0]
        kinds = [*KINDS]
        if node.can_fill_disk:
            kinds.append("fill")
        if node.clock is not None:
            kinds.append("clock")
        return (*kinds, *(LINK_KINDS if self._cluster.links else ()))

    async def __call__(self, writer: Writer) -> None:
        """Inject and repair faults; each is recorded in the history."""
        for planned in schedule(self._seed, self.kinds):
            step = planned._replace(
                pause_s=planned.pause_s / self._hurry, lasts_s=planned.lasts_s / self._hurry
            )
            try:
                await asyncio.sleep(step.pause_s)
            finally:
                may_have_ended, self._may_have_ended = self._may_have_ended, False
                await _whatever_comes(self._cluster.mend(any_status=may_have_ended))
            links = self._cluster.links
            on_link = step.kind in LINK_KINDS
            node, link = self._cluster.node(step.share), int(step.share * len(links))
            target = {"link": link + 1} if on_link else {"node": node.number}
            began = writer.now_ms()
            try:
                if on_link:
                    await _break_link(links[link], step.kind.removeprefix("link-"), step.lasts_s)
                else:
                    await self._break(node, step)
                await _whatever_comes(self._cluster.settle(self._may_have_ended))
            finally:
                # a broker that is starting is waited for, even if this is cancelled
                await asyncio.shield(self._note(step.kind, target, began, writer))

    async def _note(self, kind: str, target: dict[str, int], began: float, writer: Writer) -> None:
        await asyncio.sleep(_MEND_MS / 1000 / self._hurry)
        writer.write("fault", began, kind=kind, **target)
        self.done.append(kind)

    async def _break(self, node: LocalBroker, step: Step) -> None:
        if step.kind == "kill":
            node.kill()
            # a standby takes over only from a leader that stays away
            down_s = step.lasts_s * 1.5 if self._cluster.has_standby else step.lasts_s / 4
            await _whatever_comes(self._start_later(node, down_s))
        elif step.kind == "restart":
            await _whatever_comes(self._restart(node))
        elif step.kind == "stop":
            node.pause()
            try:
                await asyncio.sleep(step.lasts_s)
            finally:
                node.resume()
        elif step.kind == "fill":
            node.fill_disk()
            try:
                await asyncio.sleep(step.lasts_s)
            finally:
                node.free_disk()
                # Apache Kafka stops later, once it knows that its log directory has failed
                self._may_have_ended = True
                await _whatever_comes(self._cluster.mend(any_status=True))
        elif step.kind == "clock":
            assert node.clock is not None
            node.clock.step((2 * step.share - 1) * _CLOCK_STEP_SECONDS_MAX)
            try:
                await asyncio.sleep(step.lasts_s)
            finally:
                node.clock.step(0)
        else:
            await _break_link(node.proxy, step.kind, step.lasts_s)

    async def _start_later(self, node: LocalBroker, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._cluster.start_node(node)

    async def _restart(self, node: LocalBroker) -> None:
        await node.terminate()
        await self._cluster.start_node(node)


async def _break_link(proxy: Proxy, kind: str, seconds: float) -> None:
    if kind == "cut":
        proxy.cut()
    elif kind == "half-close":
        proxy.half_close()
    elif kind == "delay":
        proxy.delay_s = 0.05 + seconds / 20
        try:
            await asyncio.sleep(seconds)
        finally:
            proxy.delay_s = 0.0
    else:
        proxy.hold()
        try:
            await asyncio.sleep(seconds)
        finally:
            proxy.release()


async def _whatever_comes(work: Coroutine[None, None, None]) -> None:
    """Run something to its end, even if this is cancelled meanwhile."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await working
        raise
