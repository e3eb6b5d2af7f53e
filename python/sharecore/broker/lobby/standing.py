"""What a standby knows of the home: who leads, the catalog, and whether this broker could take over."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from sharecore.broker.cluster import NOBODY
from sharecore.broker.features import Features
from sharecore.broker.store.backend import bucket_place
from sharecore.broker.store.home_watch import fenced_mark
from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.storage.bucket import SILENCE_MS, has_own_data, standby
from sharecore.storage.followed import FollowedCatalog
from sharecore.storage.identity import IDENTITY, DamagedIdentity, decode_identity, read_identity

logger = logging.getLogger("sharecore.broker")

_LOOK_S = 1.0
_BUSY_LOOK_S = 0.25
"""While the home is written, which costs far more than reads. A leader that ends is then noticed sooner."""
_BUSY_S = 1.0
_BUSY_PLACES = 2
"""Heartbeats alone bring fewer objects in one look."""
_SLACK_S = 0.01
"""The silence is measured in whole milliseconds."""
_BLIND_S = 5.0
"""A standby that has not seen the journal for so long is not ready."""
_FIRST_S = 30.0
"""A bucket that has never been read is tried for so long; then the settings are taken to be wrong."""
_PATIENCE = 3
"""A broker that was fenced waits for so many silences, so that two do not take turns."""


class Standing:
    """What a standby knows of the home: who leads, the catalog, and for how long nothing was written.

    Args:
        config: the broker's configuration.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self.place = bucket_place(config)
        self._config = config
        self.data_dir = Path(config.data_dir)
        fenced = fenced_mark(self.data_dir).exists()
        self.silence_ms = SILENCE_MS * (_PATIENCE if fenced else 1)
        """How long the leader is silent before this broker claims."""
        self.watching = standby(self.place, config.node_id, self.silence_ms, self.data_dir)
        """Reads the journal."""
        self.catalog = FollowedCatalog()
        self.leader = NOBODY
        self.claim = 0
        self._is_home = True
        self.segment = 0
        """The segment of the newest frames that were read; 0 before any."""
        self.fetch_trouble = ""
        """Why the last fetch of segments failed; empty if it succeeded."""
        self.takes_over = False
        """This broker no longer looks: another one of its process opens the storage."""
        self._began_s: float | None = None
        self._seen_s: float | None = None
        self._place = 0
        self._busy_until_s = 0.0
        self._free_since_s: float | None = None
        self._trouble = ""
        self._line = ""

    async def look(self) -> bool:
        """Look at the journal; return whether this broker may claim. A failure is logged, and counts as no.

        Raises:
            OSError: the bucket has never been read, for 30 s.
        """
        loop = asyncio.get_running_loop()
        before = self._place
        try:
            led, (self._place, silent_ms), self.segment = await asyncio.to_thread(self._look)
        except OSError as error:
            self._began_s = loop.time() if self._began_s is None else self._began_s
            if self._seen_s is None and loop.time() >= self._began_s + _FIRST_S:
                raise
            self._trouble, self._free_since_s = str(error), None
            self._say(f"{error}. This broker waits")
            return False
        self._seen_s = now_s = loop.time()
        self._trouble = ""
        written, is_busy = self._place - before, now_s < self._busy_until_s
        if before and (written >= _BUSY_PLACES or (written and is_busy)):
            self._busy_until_s = now_s + _BUSY_S
        self._free_since_s = self._seen_s - silent_ms / 1000
        self.catalog.take(self.watching.take_changed())
        if led is None:
            return True
        self.leader, self.claim, self._is_home = led
        self._say(f"{self.describe()}. This broker waits{' until that one stops' if self._is_home else ''}")
        return False

    def _look(self) -> tuple[tuple[int, int, bool] | None, tuple[int, int], int]:
        return self.watching.look(), self.watching.silence(), self.watching.segment()

    def _say(self, line: str) -> None:
        if line != self._line:
            logger.warning("%s", line)
            self._line = line

    def describe(self) -> str:
        """Return who leads, for a person."""
        if not self._is_home:
            return (
                f"node {self.leader} copies its data to {self.place.url} (epoch {self.claim}) "
                f"and may be running: to lead, stop it and start this broker with node.id={self.leader}, or "
                f"run sharecore bucket promote {self.place.url} --node-id {self._config.node_id}"
            )
        return f"node {self.leader} leads {self.place.url} (epoch {self.claim})"

    def trouble(self) -> str:
        """Return why this broker cannot take over now; empty if it can."""
        if not self._is_home:
            return self.describe()
        if self.takes_over:
            return f"this broker takes over {self.place.url}"
        blind_s = asyncio.get_running_loop().time() - (self._seen_s or 0.0)
        if blind_s < _BLIND_S:
            return self.fetch_trouble
        return f"{self.place.url} could not be read for {blind_s:.0f} s: {self._trouble or 'no answer'}"

    def silence(self) -> tuple[int, int]:
        """Return the next place of the journal, and for how many milliseconds nothing came there.

        It is known without the bucket: a look may be waiting for it.
        """
        if self._free_since_s is None:
            return self._place, 0
        return self._place, round((asyncio.get_running_loop().time() - self._free_since_s) * 1000)

    def due_s(self) -> float:
        """Return in how many seconds to look again: at once when the silence is long enough."""
        now_s = asyncio.get_running_loop().time()
        due_s = _BUSY_LOOK_S if now_s < self._busy_until_s else _LOOK_S
        if not self._is_home or self._free_since_s is None:
            return due_s
        left_s = self._free_since_s + self.silence_ms / 1000 - now_s
        return min(due_s, max(left_s, 0.0) + _SLACK_S)

    @property
    def cluster_id(self) -> str | None:
        """Whose home it is; None before its leader has written it."""
        found = decode_identity(self.catalog.get(IDENTITY))
        return None if found is None else found.cluster_id

    @property
    def is_complete(self) -> bool:
        """Return whether the leader of a new home has written identity and feature levels, which a standby
        needs.
        """
        return self.cluster_id is not None and Features.are_kept(self.catalog)

    def check_directory(self) -> None:
        """Check that taking over can use the data directory.

        Raises:
            ConfigError: it is another cluster's, or has data that are not known to be in the bucket.
            OSError: another process uses it, or it cannot be written.
        """
        try:
            own = read_identity(self.data_dir) if self.data_dir.exists() else None
        except DamagedIdentity:
            own = None
        if own is not None and own.cluster_id != self.cluster_id:
            raise ConfigError(
                f"log.dirs={self.data_dir}: it holds data of cluster {own.cluster_id}, and {self.place.url} "
                f"of {self.cluster_id}; allowed: an empty directory, or another bucket"
            )
        if has_own_data(self.data_dir):
            raise ConfigError(
                f"log.dirs={self.data_dir}: {self.describe()}, and a standby cannot use a directory "
                "with data that may not be in the bucket, such as a restored one. Use an empty directory: a "
                "standby fills it"
            )
