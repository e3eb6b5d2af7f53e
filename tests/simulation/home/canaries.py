"""Bugs of a home to be planted: the simulator must find each of them.

Mistakes about the bucket's protocol that only the store's own tests can show are planted there
(`rust/bucket`, `rust/store/tests/home`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.simulation.canaries import Canary, Patch, _instead
from tests.simulation.home.plan import HOME_ACTORS

from sharecore._core import plant_mistake
from sharecore.broker.lobby.standing import Standing
from sharecore.broker.store.home_watch import HomeWatch
from sharecore.storage.store_topics import StoreTopics

MEMBERS = "members,transactions,idempotent"
LOSSES = f"{MEMBERS},kills,lost disks,stops"
CUTS = f"{LOSSES},pauses,bucket cuts,held answers,lost requests,late requests,slow bucket"
LITTLE = f"{CUTS},little disk"
BUSY = ",".join(HOME_ACTORS)
"""Much is written; with more faults than a bug needs, nobody would lead for most of the time."""


def _mistake(name: str) -> Patch:
    @contextmanager
    def planted() -> Iterator[None]:
        plant_mistake(name)
        try:
            yield
        finally:
            plant_mistake()

    return planted


async def _any_look(self: Standing) -> bool:
    """Takes over as soon as the journal has been read."""
    await _look(self)
    return True


_look = Standing.look


def _stays(self: HomeWatch, status: Any) -> None:
    """Keep serving after another broker has become the leader."""


def _none_internal(self: StoreTopics, name: str, log_ids: Sequence[int]) -> Sequence[int]:
    """Let the records of internal topics leave the disk."""
    return ()


MISTAKES = {
    "claims swept": LOSSES,
    "answered out of order": CUTS,
    "exists is ours": CUTS,
    "unknown skipped": CUTS,
    "other bytes": CUTS,
    "resume at once": CUTS,
    "window ignored": f"{BUSY},held answers,lost requests,kills",
    "segment swept": f"{BUSY},lost disks",
    "frame before upload": CUTS,
    "tail trusted": CUTS,
    "checkpoint unshipped": LOSSES,
    "silence over failures": LOSSES,
}
HOME_CANARIES = {name: Canary(_mistake(name), features) for name, features in MISTAKES.items()} | {
    "takeovers without silence": Canary(_instead(Standing, "look", _any_look), CUTS),
    "internal topics leave the disk": Canary(_instead(StoreTopics, "_internal", _none_internal), LITTLE),
    "fenced brokers that stay": Canary(_instead(HomeWatch, "_enter", _stays), CUTS),
}
