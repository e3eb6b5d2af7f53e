"""Buckets: their URLs, their settings, and whether one is reliable."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sharecore._core import (
    BucketCopy,
    HomeNodes,
    Standby,
    bucket_url,
    has_own_data,
    inspect_bucket,
    prepare_home,
    probe_bucket,
    reaches_clouds,
    remove_bucket,
    restore_bucket,
)
from sharecore.errors import ConfigError
from sharecore.storage.described import decode_described
from sharecore.storage.identity import Identity, look_up, write_identity

Outcome = Literal["passed", "wrong", "unanswered"]
Verdict = Literal["fit", "grows", "unfit", "unknown"]

__all__ = [
    "BucketPlace",
    "Check",
    "Contents",
    "CopyOptions",
    "DamagedBucketError",
    "Probe",
    "Restored",
    "bucket_url",
    "has_own_data",
    "home_nodes",
    "inspect",
    "prepare",
    "probe",
    "reaches_clouds",
    "restore",
    "standby",
]


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """The location of a bucket. Credentials are not part of it: they come from the environment or the
    machine's role.

    Args:
        url: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or file:///DIRECTORY.
        endpoint: URL of a server other than the cloud's; None: from the environment, or the cloud's.
        region: None: from the environment, or us-east-1.
        allow_http: whether a remote endpoint may be reached without TLS.
        cache_bytes: how much of a home's sealed segments stays on the local disk; 0: everything.
    """

    url: str
    endpoint: str | None = None
    region: str | None = None
    allow_http: bool = False
    cache_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """Options of the copy of a data directory in a bucket.

    Args:
        place: the bucket.
        cluster_id: the cluster; a bucket that holds another cluster's data is refused.
        node_id: for humans who look at the bucket.
        interval_ms: how long a commit waits at most for others to be copied with it.
        history_ms: how far back restoring to a time must reach.
        surplus_bytes: disk space for files that are kept only until they are uploaded.
        linger_ms: how long a write waits at most for others, with durability `bucket`.
        puts_per_second: how many small objects are created per second, with durability `bucket`.
        is_tried: whether the bucket has passed the probe.
        standby: found that nobody leads the home; None if nothing was watched.
    """

    place: BucketPlace
    cluster_id: str
    node_id: int
    interval_ms: int = 1000
    history_ms: int = 86_400_000
    surplus_bytes: int = 8 << 30
    linger_ms: int = 20
    puts_per_second: int = 10
    is_tried: bool = False
    standby: Standby | None = None

    def begin(self) -> BucketCopy:
        """Return the copy for a store, and start the threads that send requests.

        Raises:
            ConfigError: the settings are invalid, or this build cannot reach the bucket.
        """
        place = self.place
        with _settings_checked():
            return BucketCopy(
                place.url,
                endpoint=place.endpoint,
                region=place.region,
                allow_http=place.allow_http,
                cluster_id=self.cluster_id,
                node_id=self.node_id,
                random=secrets.token_bytes(16),
                interval_ms=self.interval_ms,
                history_ms=self.history_ms,
                surplus_bytes=self.surplus_bytes,
                linger_ms=self.linger_ms,
                puts_per_second=self.puts_per_second,
                cache_bytes=place.cache_bytes,
                is_tried=self.is_tried,
                standby=self.standby,
            )


@contextmanager
def _settings_checked() -> Iterator[None]:
    """Raise ConfigError if Rust refuses the settings of a bucket."""
    try:
        yield
    except ValueError as error:
        raise ConfigError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a bucket.

    Args:
        name: what was checked.
        outcome: `wrong`: the bucket answered wrongly and must not be used; `unanswered`: no definite answer
            came.
        why: empty if it passed.
    """

    name: str
    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True)
class Probe:
    """The checks of a bucket, and the verdict.

    Args:
        checks: in the order they were made.
        verdict: `grows`: it can be used, but nothing can be deleted from it.
        why: empty for a fit bucket.
    """

    checks: list[Check]
    verdict: Verdict
    why: str


def probe(place: BucketPlace) -> Probe:
    """Check whether a bucket meets the requirements of a copy; delete the objects made for it.

    Raises:
        ConfigError: the settings are invalid, or this build cannot reach the bucket.
    """
    with _settings_checked():
        checks, verdict, why = probe_bucket(
            place.url, place.endpoint, place.region, place.allow_http, _random()
        )
    return Probe([Check(*check) for check in checks], verdict, why)


def _random() -> tuple[int, int]:
    return secrets.randbits(64), secrets.randbits(64)


@dataclass(frozen=True, slots=True)
class Prepared:
    """How a home starts.

    Args:
        how: `empty`: both the directory and the bucket are empty; `local`: the directory was not a home so
            far, and is copied first; `bucket`: the directory was synchronized with the bucket.
        cluster_id: the bucket's cluster; None if unknown.
        at_ms: when the newest object was created.
        bytes: read from the bucket.
    """

    how: Literal["empty", "local", "bucket"]
    cluster_id: str | None
    at_ms: int
    bytes: int


SILENCE_MS = 6500
"""How long the leader of a home is silent before another broker claims."""


def standby(
    bucket: BucketPlace, node_id: int, silence_ms: int = SILENCE_MS, directory: Path | None = None
) -> Standby:
    """Return an object that watches a home until a broker may claim it.

    Args:
        silence_ms: how long the leader is silent before it may.
        directory: its disk keeps what was read of the journal, for a takeover.

    Raises:
        ConfigError: the settings are invalid, or this build cannot reach the bucket.
    """
    with _settings_checked():
        return Standby(
            bucket.url,
            endpoint=bucket.endpoint,
            region=bucket.region,
            allow_http=bucket.allow_http,
            node_id=node_id,
            silence_ms=silence_ms,
            path=directory,
        )


def home_nodes(bucket: BucketPlace) -> HomeNodes:
    """Return the objects in which the brokers of a home describe themselves.

    Raises:
        ConfigError: the settings cannot be right, or this build cannot reach the bucket.
    """
    with _settings_checked():
        return HomeNodes(
            bucket.url, endpoint=bucket.endpoint, region=bucket.region, allow_http=bucket.allow_http
        )


def prepare(
    bucket: BucketPlace,
    directory: Path,
    own: Identity | None,
    proposed: str,
    *,
    is_tried: bool = False,
    standby: Standby | None = None,
) -> Prepared:
    """Synchronize a data directory with its home in a bucket, before it is opened.

    Args:
        own: the directory's cluster, if known.
        proposed: the cluster id of a new home.
        is_tried: the bucket is known to be one that can be relied on.
        standby: what it has read of the journal is not read again.

    Raises:
        ConfigError: the settings are invalid, or this build cannot reach the bucket.
        OSError: the bucket is unreliable or unreadable, or belongs to another cluster; nothing was changed.
    """
    with _settings_checked():
        how, cluster_id, _, at_ms, read = prepare_home(
            bucket.url,
            directory,
            endpoint=bucket.endpoint,
            region=bucket.region,
            allow_http=bucket.allow_http,
            cluster_id=None if own is None else own.cluster_id,
            proposed=proposed,
            random=_random(),
            is_tried=is_tried,
            standby=standby,
            is_bounded=bucket.cache_bytes > 0,
        )
    return Prepared(how, cluster_id, at_ms, read)


_HOUR_MS = 3_600_000
_GET_DOLLARS = 0.4 / 1e6
_LOOKS_AN_HOUR = 3600
"""Looks of a standby at a home that is idle; four times as many while it is written."""
_BEATS_AN_HOUR = 1800
"""Journal objects of a home that is idle."""
_GETS_AN_OBJECT = 2
"""A look reads the object behind the newest one, and, if that is no heartbeat, one more for each that it
finds and one ahead."""
_LISTS_AN_HOUR = 30
"""Lists of the brokers by each broker of a home."""
_CREATE_DOLLARS = 5.0 / 1e6
_GB_MONTH_DOLLARS = 0.023
_HOURS_A_MONTH = 730


@dataclass(frozen=True, slots=True)
class Amount:
    """Objects of one kind.

    Args:
        kind: the first part of their names.
    """

    kind: str
    objects: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LeaderCache:
    """How the leader of a home uses its local disk, by its latest description.

    Args:
        bound_bytes: `sharecore.bucket.cache.bytes`.
        local_bytes: sealed segments on the disk, and pieces of others.
        remote_bytes: sealed segments that only the bucket has.
        described_ms: when the leader wrote this, in milliseconds since 1970.
    """

    bound_bytes: int
    local_bytes: int
    remote_bytes: int
    described_ms: int


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a bucket; times in milliseconds since 1970.

    Args:
        cluster_id: the cluster.
        leader: the node that writes, or wrote last; None if the journal is empty.
        is_home: its answers wait for the bucket.
        has_ended: it has ended, and said so.
        standbys: other nodes that have described themselves lately.
        cache: how the leader uses its local disk; None without a bound.
        epoch: of the newest object of the journal; None if the journal is empty.
        place: of the newest object.
        newest_ms: when it was created.
        oldest_ms: the oldest time that can be restored; None if the journal is empty.
        amounts: by kind.
        copied_last_hour: journal objects created within an hour.
    """

    cluster_id: str
    leader: int | None
    is_home: bool
    has_ended: bool
    standbys: list[int]
    epoch: int | None
    place: int | None
    newest_ms: int | None
    oldest_ms: int | None
    amounts: list[Amount]
    copied_last_hour: int
    cache: LeaderCache | None = None

    @property
    def objects(self) -> int:
        """The number of all objects."""
        return sum(each.objects for each in self.amounts)

    @property
    def bytes(self) -> int:
        """The bytes of all objects."""
        return sum(each.bytes for each in self.amounts)

    @property
    def mode(self) -> str:
        """`backup`, `home`, or `home with standby`."""
        if not self.is_home:
            return "backup"
        return "home with standby" if self.standbys else "home"

    @property
    def dollars_an_hour(self) -> float:
        """The cost on S3 Standard in us-east-1: the creates of the last hour, an hour of storage, and for a
        home the reads and lists of its brokers.
        """
        stored = self.bytes / 1e9 * _GB_MONTH_DOLLARS / _HOURS_A_MONTH
        looks = _LOOKS_AN_HOUR * (4 if self.copied_last_hour > _BEATS_AN_HOUR else 1)
        written = max(0, self.copied_last_hour - _BEATS_AN_HOUR)
        gets = len(self.standbys) * (looks + _GETS_AN_OBJECT * written)
        lists = (1 + len(self.standbys)) * _LISTS_AN_HOUR * _CREATE_DOLLARS if self.is_home else 0.0
        return self.copied_last_hour * _CREATE_DOLLARS + gets * _GET_DOLLARS + lists + stored


def inspect(place: BucketPlace, now_ms: int) -> Contents:
    """Return the contents of a bucket; safe while a broker copies to it.

    Raises:
        ConfigError: the settings are invalid, or this build cannot reach the bucket.
        OSError: the bucket is unreadable, or holds no copy.
    """
    with _settings_checked():
        cluster_id, newest, claim, oldest_ms, amounts, recent = inspect_bucket(
            place.url, place.endpoint, place.region, place.allow_http, now_ms - _HOUR_MS
        )
    epoch, at, newest_ms = newest or (None, None, None)
    leader, is_home, has_ended = claim or (None, False, False)
    found = [decode_described(*each) for each in home_nodes(place).read()] if is_home else []
    standbys = [
        each.node_id
        for each in found
        if each is not None and each.node_id != leader and each.is_current(now_ms)
    ]
    caches = (
        LeaderCache(*each.cache, each.at_ms)
        for each in found
        if each is not None and each.node_id == leader and each.cache
    )
    return Contents(
        cluster_id,
        leader,
        is_home,
        has_ended,
        standbys,
        epoch,
        at,
        newest_ms,
        oldest_ms,
        [Amount(*each) for each in amounts],
        recent,
        next(caches, None),
    )


class DamagedBucketError(Exception):
    """The copy in a bucket is incomplete, or does not reach back to the requested time."""


@dataclass(frozen=True, slots=True)
class Restored:
    """A data directory restored from a bucket.

    Args:
        cluster_id: the cluster of the data.
        place: the place of its newest object.
        at_ms: when that object was created.
        bytes: read from the bucket.
    """

    cluster_id: str
    place: int
    at_ms: int
    bytes: int


def restore(
    bucket: BucketPlace,
    directory: Path,
    progress: Callable[[int, int], object],
    *,
    at_ms: int | None = None,
    place: int | None = None,
) -> Restored:
    """Restore a data directory from the copy in a bucket; safe while a broker copies to it.

    Args:
        directory: missing or empty; unchanged after a failure.
        progress: called with the bytes read, and 0, as the total is unknown.
        at_ms: restore the state at this time; None: the newest.
        place: restore the state at this place of the journal.

    Raises:
        ConfigError: the settings are invalid, or this build cannot reach the bucket.
        DamagedBucketError: see there.
        OSError: the bucket cannot be read, or the directory cannot be written.
    """
    is_new = not directory.exists()
    try:
        with _settings_checked():
            made, is_damaged, why = restore_bucket(
                bucket.url,
                directory,
                progress,
                endpoint=bucket.endpoint,
                region=bucket.region,
                allow_http=bucket.allow_http,
                at_ms=at_ms,
                place=place,
            )
        if made is None:
            raise DamagedBucketError(why) if is_damaged else OSError(why)
    except BaseException:
        if is_new:
            with suppress(OSError):
                directory.rmdir()
        raise
    identity = look_up(directory).identity
    if identity is not None:
        write_identity(directory, identity)
    return Restored(*made)


def remove(place: BucketPlace) -> int:
    """Delete all objects of a home or a copy, and return their number; raise OSError if some are left."""
    with _settings_checked():
        return remove_bucket(place.url, place.endpoint, place.region, place.allow_http)
