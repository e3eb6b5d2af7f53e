"""What a process of a home has in place of the system: sockets, the bucket, the end of its interpreter."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

from tests.simulation.home.bucket import Way
from tests.simulation.home.machines import here
from tests.simulation.network import Listening

from sharecore import _core
from sharecore.broker.broker import Broker
from sharecore.broker.store.home_watch import HomeWatch
from sharecore.config import BrokerConfig
from sharecore.storage.bucket import BucketPlace, Prepared
from sharecore.storage.identity import Identity

if TYPE_CHECKING:
    from tests.simulation.home.world import HomeWorld


class _Watch(HomeWatch):
    """Ends the process of its machine."""

    def __init__(self, url: str, status: Any, fenced: Path) -> None:
        super().__init__(url, status, fenced, here().left)


def _prepare(
    bucket: BucketPlace,
    directory: Path,
    own: Identity | None,
    proposed: str,
    *,
    is_tried: bool = False,
    standby: _core.Standby | None = None,
) -> Prepared:
    machine = here()
    how, cluster_id, _, at_ms, read = machine.world.bucket.memory.prepare_home(
        Way(machine.world.bucket, machine),
        directory,
        None if own is None else own.cluster_id,
        proposed,
        standby,
        is_bounded=machine.world.cache_bytes > 0,
    )
    return Prepared(how, cluster_id, at_ms, read)


def _standby(bucket: BucketPlace, node_id: int, silence_ms: int, directory: Path) -> _core.Standby:
    machine = here()
    reach = Way(machine.world.bucket, machine)
    return machine.world.bucket.memory.standby(reach, machine.now_ms, node_id, silence_ms, directory)


def _home_nodes(bucket: BucketPlace) -> _core.HomeNodes:
    machine = here()
    return machine.world.bucket.memory.home_nodes(Way(machine.world.bucket, machine))


def _broker(config: BrokerConfig, **options: Any) -> Broker:
    return Broker(config, clock=here().clock, check_names=False, **options)


@contextmanager
def in_simulation(world: HomeWorld) -> Iterator[None]:
    """Sockets are the network's, the bucket is the world's, and a process ends without its interpreter."""
    sockets = SimpleNamespace(**{**vars(socket), "socket": partial(Listening, world.network)})
    time = SimpleNamespace(sleep=lambda seconds: here().nap(seconds))
    quiet = SimpleNamespace(**{**vars(logging), "shutdown": lambda: None})
    store = "sharecore.broker.store"
    with (
        mock.patch("sharecore.network.binding.socket", sockets),
        mock.patch(f"{store}.cleaner.time", time),
        mock.patch(f"{store}.home_watch.logging", quiet),
        mock.patch(f"{store}.backend.HomeWatch", _Watch),
        mock.patch(f"{store}.backend.is_proven", lambda _, lease_ms: here().proven(lease_ms)),
        mock.patch(f"{store}.home_nodes.home_nodes", _home_nodes),
        mock.patch("sharecore.broker.identity.prepare", _prepare),
        mock.patch("sharecore.broker.lobby.standing.standby", _standby),
        mock.patch("sharecore.broker.lobby.standby.Broker", _broker),
    ):
        yield
