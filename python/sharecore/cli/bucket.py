"""`sharecore bucket`: buckets that hold a copy of what a broker keeps."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.clients import CommandFailed, ctrl_c_ends
from sharecore.cli.store import failures
from sharecore.cli.tables import Output, print_json, show
from sharecore.cli.typers import commands
from sharecore.errors import ConfigError

if TYPE_CHECKING:
    from sharecore.storage.bucket import Probe

EXIT_UNFIT, EXIT_NOT_DONE = 1, 2

bucket = commands("Buckets that hold a copy of what a broker keeps.")

Url = Annotated[
    str, typer.Argument(metavar="URL", help="The bucket: s3://BUCKET/PREFIX, or file:///DIRECTORY.")
]
Endpoint = Annotated[
    Optional[str],  # noqa: UP045 - typer evaluates the annotation
    typer.Option(
        metavar="URL",
        help="A server that speaks S3's protocol; without it AWS_ENDPOINT_URL, or Amazon's.",
    ),
]
Region = Annotated[
    Optional[str],  # noqa: UP045 - typer evaluates the annotation
    typer.Option(metavar="NAME", help="The bucket's region; without it AWS_REGION, or us-east-1."),
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

    Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the machine's role.

    \b
    exit status 0  the bucket can be used
                1  the bucket must not be used
                2  it is not known: no answer, a missing right, or wrong settings
    """
    from sharecore.storage.bucket import BucketPlace, probe

    with failures(), ctrl_c_ends():
        try:
            found = probe(BucketPlace(url, endpoint, region, allow_http))
        except ConfigError as error:
            raise CommandFailed(str(error)) from None
    if output == "json":
        print_json({"url": url} | asdict(found))
    else:
        _print(url, found)
    if found.verdict == "unfit":
        raise typer.Exit(EXIT_UNFIT)
    if found.verdict == "unknown":
        raise typer.Exit(EXIT_NOT_DONE)


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
