"""Faults one after another, drawn from a seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterator
from typing import NamedTuple

from sharecore.verify.history import Writer
from sharecore.verify.nemesis.broker import LocalBroker

KINDS = ("kill", "stop", "restart", "cut", "delay", "half-close", "partition")
_MEND_MS = 1000.0
"""How long after a fault leases may still end because of it."""


class Step(NamedTuple):
    """A fault: after a pause, for a while."""

    pause_s: float
    kind: str
    lasts_s: float


def schedule(seed: int) -> Iterator[Step]:
    """Yield faults without end; the same ones for the same seed."""
    rng = random.Random(f"{seed}-nemesis")
    while True:
        kind = rng.choice(KINDS)
        yield Step(rng.uniform(3, 12), kind, rng.uniform(0.2, 8) if kind != "cut" else 0.0)


class Nemesis:
    """Breaks a broker that this program started, until it is cancelled; then everything is mended.

    Args:
        broker: runs.
        hurry: how many times faster than planned everything goes.
    """

    def __init__(self, broker: LocalBroker, seed: int, hurry: float = 1.0) -> None:
        self._broker, self._seed, self._hurry = broker, seed, hurry
        self.done: list[str] = []

    async def __call__(self, writer: Writer) -> None:
        """Break and mend; each fault goes into the history."""
        for planned in schedule(self._seed):
            step = planned._replace(
                pause_s=planned.pause_s / self._hurry, lasts_s=planned.lasts_s / self._hurry
            )
            await asyncio.sleep(step.pause_s)
            began = writer.now_ms()
            try:
                await self._break(step)
            finally:
                # a broker that is half way through its start is waited for, also when this is cancelled
                await asyncio.shield(self._note(step, began, writer))

    async def _note(self, step: Step, began: float, writer: Writer) -> None:
        await asyncio.sleep(_MEND_MS / 1000 / self._hurry)
        writer.write("fault", began, kind=step.kind)
        self.done.append(step.kind)

    async def _break(self, step: Step) -> None:
        broker, proxy = self._broker, self._broker.proxy
        if step.kind == "cut":
            proxy.cut()
        elif step.kind == "kill":
            broker.kill()
            await _whatever_comes(self._start_later(step.lasts_s / 4))
        elif step.kind == "restart":
            await _whatever_comes(broker.restart())
        elif step.kind == "stop":
            broker.pause()
            try:
                await asyncio.sleep(step.lasts_s)
            finally:
                broker.resume()
        elif step.kind == "delay":
            proxy.delay_s = 0.05 + step.lasts_s / 20
            try:
                await asyncio.sleep(step.lasts_s)
            finally:
                proxy.delay_s = 0.0
        elif step.kind == "half-close":
            proxy.half_close()
        else:
            proxy.hold()
            try:
                await asyncio.sleep(step.lasts_s)
            finally:
                proxy.release()

    async def _start_later(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._broker.start()


async def _whatever_comes(work: Coroutine[None, None, None]) -> None:
    """Do something to its end, also when this is cancelled meanwhile."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await working
        raise
