"""`sharecore bucket`: buckets with a copy of a broker's data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.clients import CommandFailed, ctrl_c_ends
from sharecore.cli.store import failures, progress_bar
from sharecore.cli.tables import Output, known, print_json, show
from sharecore.cli.times import FORMAT, Time, read_time, show_time
from sharecore.cli.typers import commands
from sharecore.errors import ConfigError

if TYPE_CHECKING:
    from sharecore.storage.bucket import Contents, Probe

EXIT_UNFIT, EXIT_NOT_DONE = 1, 2
_HOUR_MS = 3_600_000
_UNITS = ((86_400, "days"), (3600, "hours"), (60, "minutes"))

bucket = commands("Buckets that hold a copy of what a broker keeps.")

Url = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="The bucket: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or "
        "file:///DIRECTORY.",
    ),
]
Endpoint = Annotated[
    Optional[str],  # noqa: UP045 - typer evaluates the annotation
    typer.Option(
        metavar="URL",
        help="A server other than the cloud's own; without it AWS_ENDPOINT_URL, STORAGE_EMULATOR_HOST or "
        "AZURE_STORAGE_ENDPOINT.",
    ),
]
Region = Annotated[
    Optional[str],  # noqa: UP045 - typer evaluates the annotation
    typer.Option(metavar="NAME", help="The region of a bucket of S3; without it AWS_REGION, or us-east-1."),
]
AllowHttp = Annotated[
    bool, typer.Option("--allow-http", help="Reach an endpoint on another machine without TLS.")
]


@bucket.callback()
def options() -> None:
    """Buckets that hold a copy of what a broker keeps."""


@bucket.command("check", short_help="Try whether a bucket can be relied on.")
def check(
    url: Url,
    endpoint: Endpoint = None,
    region: Region = None,
    allow_http: AllowHttp = False,
    output: Output = "table",
) -> None:
    """Try whether a bucket does what a copy in it relies on, and which rights are missing.

    \b
    sharecore bucket check s3://backups/queue
    sharecore bucket check s3://backups/queue --endpoint http://localhost:7070
    sharecore bucket check file:///mnt/backup

    What is relied on most is that of several creates of one name at once exactly one succeeds. Some servers
    that speak S3's protocol answer single requests right and let several win: they are refused. All that is
    created, below PREFIX/probe/, is deleted again. A pass is evidence, no proof.

    Credentials come from the environment, on S3 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the
    machine's role; docs/bucket.md names those of Google Cloud Storage and Azure.

    \b
    exit status 0  the bucket can be used
                1  the bucket must not be used
                2  it is not known: no answer, a missing right, or wrong settings
    """
    from sharecore.storage.bucket import BucketPlace, probe

    with _reaching():
        found = probe(BucketPlace(url, endpoint, region, allow_http))
    if output == "json":
        print_json({"url": url} | asdict(found))
    else:
        _print(url, found)
    if found.verdict == "unfit":
        raise typer.Exit(EXIT_UNFIT)
    if found.verdict == "unknown":
        raise typer.Exit(EXIT_NOT_DONE)


@bucket.command("status", short_help="Say what a bucket holds, how old it is and what it costs.")
def status(
    url: Url,
    endpoint: Endpoint = None,
    region: Region = None,
    allow_http: AllowHttp = False,
    output: Output = "table",
) -> None:
    """Say whose copy or home a bucket holds, who leads, how new it is, what can be restored, and what it
    costs.

    \b
    sharecore bucket status s3://backups/queue
    sharecore bucket status file:///mnt/backup --output json | jq .newest_ms

    It reads the bucket alone, so it works without the broker. The leader of a home with
    sharecore.bucket.cache.bytes describes its local disk there every 10 minutes. How far behind the copy
    is, its broker knows: sharecore_bucket_behind_seconds among the metrics, and `sharecore doctor`.

    The cost is that of S3 Standard in us-east-1: what was written in the last hour, an hour of storage, and
    of a home the reads and lists of its brokers.

    Credentials come from the environment, on S3 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the
    machine's role; docs/bucket.md names those of Google Cloud Storage and Azure.

    \b
    exit status 0  the bucket holds a copy
                2  it holds none, or cannot be read
    """
    from sharecore.storage.bucket import BucketPlace, inspect

    now_ms = _now_ms()
    with _reaching():
        found = inspect(BucketPlace(url, endpoint, region, allow_http), now_ms)
    if output == "json":
        sums = {"objects": found.objects, "bytes": found.bytes, "dollars_an_hour": found.dollars_an_hour}
        print_json({"url": url, "mode": found.mode} | asdict(found) | sums)
        return
    show(
        ("BUCKET", url),
        [
            ("mode", found.mode),
            ("cluster", found.cluster_id),
            ("leader", _leader(found, now_ms)),
            ("standbys", ", ".join(f"node {each}" for each in found.standbys) or "-"),
            ("epoch", known(found.epoch)),
            ("place", known(found.place)),
            *_cache(found, now_ms),
            ("newest object", _moment(found.newest_ms, now_ms)),
            ("restores to any time since", _moment(found.oldest_ms, now_ms)),
            ("written in the last hour", f"{found.copied_last_hour:,}, {_rate(found, now_ms):.2f} a second"),
            ("objects", f"{found.objects:,}, {found.bytes / 1e6:,.1f} MB"),
            *((f"  {each.kind}", f"{each.objects:,}, {each.bytes / 1e6:,.1f} MB") for each in found.amounts),
            ("an hour on S3 Standard", f"${found.dollars_an_hour:.4f}"),
        ],
    )


@bucket.command("restore", short_help="Make a data directory from the copy in a bucket.")
def restore(
    url: Url,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The new data directory: not there yet, or empty.")
    ],
    at: Annotated[
        Time,
        typer.Option(
            "--at", metavar="TIME", help=f"As it was at this time: {FORMAT}, UTC without a zone behind it."
        ),
    ] = None,
    place: Annotated[
        Optional[int],  # noqa: UP045 - typer evaluates the annotation
        typer.Option("--place", metavar="N", min=1, help="As it was at this place of the journal."),
    ] = None,
    endpoint: Endpoint = None,
    region: Region = None,
    allow_http: AllowHttp = False,
    output: Output = "table",
) -> None:
    """Make a data directory from the copy in a bucket: the newest state, or that of any moment within the
    history.

    \b
    sharecore bucket restore s3://backups/queue ./data
    sharecore bucket restore s3://backups/queue ./before --at 2026-07-01T09:30:00Z
    sharecore serve --data-dir ./data

    The bucket is read, never written to; its broker may run. Every checksum is compared on the way, and
    what cannot be read is named.

    Credentials come from the environment, on S3 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the
    machine's role; docs/bucket.md names those of Google Cloud Storage and Azure.

    \b
    exit status 0  the directory is made
                1  the bucket is damaged, or does not reach back to that moment: no directory was made
                2  no directory was made: no copy, no answer, a missing right, or wrong settings
    """
    from sharecore.storage.bucket import BucketPlace, DamagedBucketError
    from sharecore.storage.bucket import restore as make

    with _reaching():
        if at is not None and place is not None:
            raise CommandFailed("--at and --place name one moment each; leave one of them out")
        at_ms = None if at is None else int(read_time(at, "--at").timestamp() * 1000)
        with progress_bar("restoring") as progress:
            where = BucketPlace(url, endpoint, region, allow_http)
            try:
                found = make(where, directory, progress, at_ms=at_ms, place=place)
            except DamagedBucketError as error:
                typer.echo(f"sharecore: {error}", err=True)
                raise typer.Exit(EXIT_UNFIT) from None
    if output == "json":
        print_json({"url": url, "directory": str(directory)} | asdict(found))
        return
    made = f"the state at place {found.place}, as of {show_time(found.at_ms)}"
    typer.echo(f"{directory} has {made}; {found.bytes / 1e6:.1f} MB were read")
    typer.echo(f"sharecore serve --data-dir {directory} serves it")


@bucket.command("promote", short_help="Give the copy of a lost broker to another node.")
def promote(
    url: Url,
    node_id: Annotated[
        int, typer.Option("--node-id", metavar="N", min=0, help="The node that continues the copy.")
    ],
    watch: Annotated[
        int,
        typer.Option(metavar="SECONDS", min=2, help="Refuse if something is written within so many seconds."),
    ] = 10,
    yes: Annotated[
        bool, typer.Option("--yes", help="Promote; without this option it is only reported what is lost.")
    ] = False,
    endpoint: Endpoint = None,
    region: Region = None,
    allow_http: AllowHttp = False,
) -> None:
    """Give the copy of a lost broker to a node with another node.id, which can then start from the bucket.
    Without --yes, report how far the copy reaches, and change nothing.

    \b
    sharecore bucket promote s3://backups/queue --node-id 2
    sharecore bucket promote s3://backups/queue --node-id 2 --yes
    sharecore serve --durability bucket -s sharecore.bucket.url=s3://backups/queue --node-id 2

    What the lost broker confirmed after the newest object is lost. A running broker that has nothing to write
    looks like a lost one: stop it first. Otherwise its copy ends, and it continues to serve without one. A
    home needs no promotion.

    Credentials come from the environment, on S3 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the
    machine's role; docs/bucket.md names those of Google Cloud Storage and Azure.

    \b
    exit status 0  promoted; without --yes: it could be
                1  refused: the broker runs, or there is nothing to promote
                2  the bucket cannot be read or written
    """
    from sharecore.storage.bucket import BucketPlace
    from sharecore.storage.promotion import Promotion, PromotionRefused

    with _reaching():
        promotion = Promotion(BucketPlace(url, endpoint, region, allow_http), node_id)
        try:
            lost = promotion.watch(watch, _now_ms())
        except PromotionRefused as error:
            typer.echo(f"sharecore: {error}", err=True)
            raise typer.Exit(EXIT_UNFIT) from None
        reaches = _moment(lost.newest_ms, _now_ms())
        typer.echo(f"node {lost.node_id} copied its data to {url} (epoch {lost.epoch}, place {lost.place}).")
        typer.echo(f"What it confirmed after {reaches}, is not in the bucket.")
        if not yes:
            typer.echo(f"Nothing was changed. To give the copy to node {node_id}, add --yes")
            return
        promotion.claim(_now_ms())
    typer.echo(f"node {node_id} may lead: start it with durability bucket and an empty directory")


@bucket.command("drop", short_help="Delete a home or a copy from a bucket.")
def drop(
    url: Url,
    watch: Annotated[
        int,
        typer.Option(metavar="SECONDS", min=2, help="Refuse if something is written within so many seconds."),
    ] = 10,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete; without this option it is only reported what there is.")
    ] = False,
    endpoint: Endpoint = None,
    region: Region = None,
    allow_http: AllowHttp = False,
) -> None:
    """Delete a home or a copy, with its history. Without --yes, report what would be deleted.

    \b
    sharecore bucket drop s3://backups/queue
    sharecore bucket drop s3://backups/queue --yes

    Other objects below the prefix stay. Stop the brokers first: a running broker that only copies, and has
    nothing to write, looks like one that was stopped. If it is interrupted, repeat it.

    Credentials come from the environment, on S3 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the
    machine's role; docs/bucket.md names those of Google Cloud Storage and Azure.

    \b
    exit status 0  deleted; without --yes: it could be
                1  refused: a broker writes it
                2  nothing to delete was found, or some objects could not be deleted
    """
    from sharecore.storage.bucket import BucketPlace, inspect, remove

    where = BucketPlace(url, endpoint, region, allow_http)
    with _reaching():
        found = inspect(where, _now_ms())
        typer.echo(
            f"{url} holds cluster {found.cluster_id}: {found.objects:,} objects, {found.bytes / 1e6:,.1f} MB"
        )
        if not found.has_ended:
            time.sleep(watch)
            if inspect(where, _now_ms()).place != found.place:
                typer.echo(
                    f"sharecore: {url} is being written: node {found.leader} is running. Stop it first",
                    err=True,
                )
                raise typer.Exit(EXIT_UNFIT)
        if not yes:
            typer.echo("Nothing was deleted. To delete all of it, add --yes")
            return
        typer.echo(f"{remove(where):,} objects were deleted")


@contextmanager
def _reaching() -> Iterator[None]:
    """End the command with one line and status 2 if the bucket cannot be reached with these settings."""
    with failures(), ctrl_c_ends():
        try:
            yield
        except ConfigError as error:
            raise CommandFailed(str(error)) from None


def _now_ms() -> int:
    return int(time.time() * 1000)


def _moment(at_ms: int | None, now_ms: int) -> str:
    if at_ms is None:
        return "-"
    seconds = max(now_ms - at_ms, 0) // 1000
    size, unit = next((each for each in _UNITS if seconds >= 2 * each[0]), (1, "s"))
    return f"{show_time(at_ms)}, {seconds // size} {unit} ago"


def _cache(found: Contents, now_ms: int) -> list[tuple[str, str]]:
    if found.cache is None:
        return []
    use = found.cache
    disk = f"{use.local_bytes / 1e6:,.1f} of {use.bound_bytes / 1e6:,.1f} MB"
    return [
        ("leader's disk", f"{disk}; {use.remote_bytes / 1e6:,.1f} MB only in the bucket"),
        ("  as of", _moment(use.described_ms, now_ms)),
    ]


def _leader(found: Contents, now_ms: int) -> str:
    if found.leader is None or found.newest_ms is None:
        return "-"
    if found.has_ended:
        return f"none: node {found.leader} has ended"
    silent_s = max(now_ms - found.newest_ms, 0) / 1000
    # the leader of a home writes every two seconds, a copy only when there is something new
    silent = f", silent for {silent_s:.0f} s" if found.is_home else ""
    return f"node {found.leader}{silent}"


def _rate(found: Contents, now_ms: int) -> float:
    """Return how many objects were written a second, over the last hour or since there are any."""
    age_ms = _HOUR_MS if found.oldest_ms is None else min(_HOUR_MS, now_ms - found.oldest_ms)
    return found.copied_last_hour / max(age_ms / 1000, 1)


def _print(url: str, found: Probe) -> None:
    show(("CHECK", "OUTCOME"), [(each.name, each.outcome) for each in found.checks])
    typer.echo("")
    for each in found.checks:
        if each.outcome != "passed":
            typer.echo(f"{each.name}: {each.why}")
    says = {
        "fit": "can be used",
        "grows": "can be used, but nothing can be deleted from it: it only grows",
        "unfit": "must not be used",
        "unknown": "is not known to be usable",
    }
    typer.echo(f"{url} {says[found.verdict]}")
