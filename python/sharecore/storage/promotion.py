"""Giving the copy of a lost broker to another node."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from sharecore.storage.bucket import BucketPlace, inspect, standby

_LOOK_S = 1.0


class PromotionRefused(Exception):
    """The copy must not be given to another node now."""


@dataclass(frozen=True, slots=True)
class LostCopy:
    """The copy of a broker that writes nothing.

    Args:
        node_id: the broker.
        epoch: of its claim.
        place: the newest object of the journal.
        newest_ms: when that was created: later writes are not in the bucket.
    """

    node_id: int
    epoch: int
    place: int
    newest_ms: int


class Promotion:
    """Gives the copy of a lost broker to another node.

    Args:
        bucket: where the copy is.
        node_id: the node that is to continue it.

    Raises:
        ConfigError: the settings are invalid, or this build cannot reach the bucket.
    """

    def __init__(self, bucket: BucketPlace, node_id: int) -> None:
        self._bucket, self._node_id = bucket, node_id
        self._watching = standby(bucket, node_id)

    def watch(self, seconds: float, now_ms: int, sleep: Callable[[float], object] = time.sleep) -> LostCopy:
        """Return the copy if nothing is written to it for so many seconds.

        Raises:
            PromotionRefused: its broker runs, or there is nothing to give to this node.
            OSError: the bucket cannot be read.
        """
        url = self._bucket.url
        leader, epoch = self._look()
        contents = inspect(self._bucket, now_ms)
        begun = self._watching.silence()[0]
        for _ in range(round(seconds / _LOOK_S)):
            sleep(_LOOK_S)
            if self._look() != (leader, epoch) or self._watching.silence()[0] != begun:
                raise PromotionRefused(f"{url} is being written: node {leader} is running. Stop it first")
        if contents.place is None or contents.newest_ms is None:
            raise PromotionRefused(f"{url} has no journal")
        return LostCopy(leader, epoch, contents.place, contents.newest_ms)

    def _look(self) -> tuple[int, int]:
        url, led = self._bucket.url, self._watching.look()
        if led is None:
            raise PromotionRefused(
                f"nothing to promote: node {self._node_id} may lead {url} already, or nobody does. Start it"
            )
        leader, epoch, is_home = led
        if is_home:
            raise PromotionRefused(
                f"{url} is a home, led by node {leader}: a broker that is started with it, "
                "durability bucket and another node.id takes over by itself if that one is lost"
            )
        return leader, epoch

    def claim(self, now_ms: int) -> None:
        """Claim the copy for the node; the lost broker is fenced.

        Raises:
            OSError: it is not known to be claimed.
        """
        self._watching.promote(secrets.token_bytes(16), now_ms)
