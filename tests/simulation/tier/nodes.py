"""The nodes of the tier: the product's own, as `serve --upstream` wires them, each a process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest import mock

from tests.simulation.network import Listening
from tests.simulation.tier.network import TierNetwork
from tests.simulation.tier.processes import AHEAD_MS, FASTEST, SLOWEST, Paced, PacedClock

from sharecore.broker.broker import Broker
from sharecore.config import BrokerConfig
from sharecore.errors import KafkaError
from sharecore.sharestate import shard
from sharecore.tier import backend
from sharecore.tier.backend import TierBackend
from sharecore.tier.settings.placement_rules import PlacementRules
from sharecore.tier.slots.upkeep import Upkeep
from sharecore.tier.upstream.window import Budget

if TYPE_CHECKING:
    from tests.simulation.tier.world import TierWorld

FIRST_PORT = 9100
FIRST_NODE_ID = 1_000_000
STATE_TOPIC = "__sharecore_state"
SLOTS = 4
_UPKEEP_RECORDS = 40
_SETTINGS = {
    "sharecore.tier.slots": str(SLOTS),
    "sharecore.upstream.request.timeout.ms": "5000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.assignment.interval.ms": "0",
}


class Node:
    """A node that is started, killed, stopped and paused.

    Attributes:
        broker: the one that runs, or is about to; None while there is none.
        lives: how often it was started.
        process: the one that runs it; None while there is none.
        kept_down: it is not to be started now.
    """

    def __init__(self, world: TierWorld, number: int, settings: Mapping[str, str]) -> None:
        self.number = number
        self.node_id = FIRST_NODE_ID + number
        self.port = FIRST_PORT + number
        self.site = f"node {number}"
        self.broker: Broker | None = None
        self.process: Paced | None = None
        self.lives = 0
        self.kept_down = False
        self.world = world
        self._settings = settings
        self._starting: asyncio.Task[None] | None = None
        world.network.sites[self.port] = self.site

    @property
    def up(self) -> bool:
        """Whether it has started, and serves."""
        starting = self._starting
        return starting is not None and starting.done() and starting.exception() is None

    @property
    def paused(self) -> bool:
        return self.process is not None and self.process.held is not None

    @property
    def trouble(self) -> str:
        """Why it is not ready; empty where it is."""
        return "it does not run" if self.broker is None else self.broker.backend.trouble()

    def leases(self, slot: int) -> bool:
        """Whether it would lease records of a slot now."""
        if self.broker is None or not self.up:
            return False
        check = self.broker.backend.owner_check
        assert check is not None, "slots of nodes change hands"
        try:
            check(slot)
        except KafkaError:
            return False
        return True

    def start(self) -> None:
        """Starts it; it is started again where it does not come up."""
        world = self.world
        chance = world.chance(f"{self.site} life {self.lives}")
        self.lives += 1
        drifts = "clock drift" in world.plan.features
        pace = chance.choice([1.0, SLOWEST, FASTEST, 1.001]) if drifts else 1.0
        self.process = process = Paced(self.site, pace)
        world.loop.processes.append(process)
        ahead_ms = chance.choice(AHEAD_MS) if drifts else 0
        clock = PacedClock(world.loop, process, ahead_ms)
        # nodes that start at the same time would all learn of a new topic at the same time
        age_ms = chance.choice([2_000, 5_000, 11_000, 30_000])
        self._starting = world.loop.create_task(self._start(clock, age_ms), context=process.context)
        self._starting.add_done_callback(partial(self._started, process))

    async def _start(self, clock: PacedClock, metadata_age_ms: int) -> None:
        port = self.port
        own = {
            "node.id": str(self.number),
            "listeners": f"PLAINTEXT://node:{port}",
            "sharecore.upstream.bootstrap.servers": self.world.cluster.bootstrap,
            "sharecore.upstream.metadata.max.age.ms": str(metadata_age_ms),
        }
        config = BrokerConfig.from_properties({**_SETTINGS, **self._settings, **own})
        self.broker = Broker(config, clock=clock, check_names=False, backend=TierBackend())
        await self.broker.start()

    def _started(self, process: Paced, starting: asyncio.Task[None]) -> None:
        if starting.cancelled() or self.process is not process:
            return
        error = starting.exception()
        if error is None:
            self.world.story.tell(self.site, f"is up, in its life {self.lives}")
            return
        self.world.story.tell(self.site, f"does not start: {type(error).__name__}: {error}")
        if not isinstance(error, (KafkaError, OSError)):
            self.world.story.broken("a node does not start", f"{type(error).__name__}: {error}")
        self.kill()

    def kill(self) -> None:
        """Ends it at once."""
        process, world = self.process, self.world
        if process is None:
            return
        world.state.killed(self)
        self.process = None
        world.loop.end(process)
        world.loop.graveyard += [self.broker, self._starting]
        self._starting = self.broker = None
        world.network.ended(self.site)
        world.auditor.node_ended(self.number)

    async def stop(self) -> None:
        """Ends it as an administrator does, who loses patience after a while."""
        process, broker = self.process, self.broker
        if process is None or broker is None or not self.up:
            return
        stopping = self.world.loop.create_task(broker.stop(), context=process.context)
        await asyncio.wait([stopping], timeout=60)
        if self.process is process:
            if not stopping.done():
                self.world.story.tell(self.site, "does not end in time")
            elif (error := stopping.exception()) is not None:
                self.world.story.broken("a node does not stop", f"{type(error).__name__}: {error}")
            self.kill()

    async def wish(self, wish: Callable[[PlacementRules], Coroutine[Any, Any, None]]) -> bool:
        """Has it write down what an operator wants of the tier; whether that is sure."""
        process, broker = self.process, self.broker
        if process is None or broker is None or not self.up:
            return False
        wishing = self.world.loop.create_task(
            wish(cast(TierBackend, broker.backend)._placement), context=process.context
        )
        await asyncio.wait([wishing], timeout=30)
        if not wishing.done():
            wishing.cancel()
            return False
        return not wishing.cancelled() and wishing.exception() is None

    def pause(self) -> None:
        """It stands still."""
        if self.process is not None:
            self.world.loop.pause(self.process)

    def go_on(self) -> None:
        """It goes on."""
        if self.process is not None:
            self.world.loop.go_on(self.process)


@contextmanager
def in_simulation(network: TierNetwork, cache_bytes: int) -> Iterator[None]:
    """Sockets are the network's; nodes keep less in memory, and delete state sooner, than anybody may say."""
    sockets = SimpleNamespace(**{**vars(socket), "socket": partial(Listening, network)})
    accepts = mock.patch("sharecore.network.binding.socket", sockets)
    kept = mock.patch.object(backend, "Budget", lambda max_bytes: Budget(min(max_bytes, cache_bytes)))
    often = mock.patch.object(backend, "_UPKEEP_MS", 5_000)
    early = mock.patch.dict(Upkeep.__init__.__kwdefaults__ or {}, least=_UPKEEP_RECORDS)
    with accepts, kept, often, early, mock.patch.object(shard, "_PRUNE_RECORDS", _UPKEEP_RECORDS):
        yield
