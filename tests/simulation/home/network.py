"""Connections to the machines of a home."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.machine import PORT
from tests.simulation.network import End, Tap, Weather
from tests.simulation.tier.network import TierNetwork

if TYPE_CHECKING:
    from tests.simulation.home.world import HomeWorld


class HomeNetwork(TierNetwork):
    """All connections. Actors that speak by hand know one address, which leads to the machine that leads."""

    def __init__(self, world: HomeWorld, weather: Weather, tap: Tap) -> None:
        super().__init__(world.loop, weather, tap)
        self._world = world

    async def open(self, factory: Callable[[], Any], port: int) -> tuple[End, Any]:
        if port == PORT and self._world.machine.up:
            port = self._world.machine.port
        return await super().open(factory, port)
