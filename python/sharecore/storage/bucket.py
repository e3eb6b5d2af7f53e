"""Buckets: their URLs, how they are reached, and whether one can be relied on."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Literal

from sharecore._core import bucket_url, probe_bucket, reaches_s3
from sharecore.errors import ConfigError

Outcome = Literal["passed", "wrong", "unanswered"]
Verdict = Literal["fit", "grows", "unfit", "unknown"]

__all__ = ["BucketPlace", "Check", "Probe", "bucket_url", "probe", "reaches_s3"]


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """Where a bucket is. Credentials are no part of it: they come from the environment or the machine's role.

    Args:
        url: s3://BUCKET/PREFIX or file:///DIRECTORY.
        endpoint: URL of a server that speaks S3's protocol; None: as the environment says, or Amazon's.
        region: None: as the environment says, or us-east-1.
        allow_http: whether an endpoint that is not on this machine may be reached without TLS.
    """

    url: str
    endpoint: str | None = None
    region: str | None = None
    allow_http: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried of a bucket.

    Args:
        name: what was tried.
        outcome: `wrong`: the bucket answered, and must not be used; `unanswered`: no definite answer came.
        why: empty when it passed.
    """

    name: str
    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True)
class Probe:
    """What was tried of a bucket, and what follows.

    Args:
        checks: in the order they were made.
        verdict: `grows`: it can be used, but nothing can be deleted from it.
        why: empty for a bucket that is fit.
    """

    checks: list[Check]
    verdict: Verdict
    why: str


def probe(place: BucketPlace) -> Probe:
    """Try whether a bucket does what a copy in it relies on. What it creates there it deletes again.

    Raises:
        ConfigError: the settings cannot be right, or this build cannot reach the bucket.
    """
    random = (secrets.randbits(64), secrets.randbits(64))
    try:
        checks, verdict, why = probe_bucket(place.url, place.endpoint, place.region, place.allow_http, random)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return Probe([Check(*check) for check in checks], verdict, why)
