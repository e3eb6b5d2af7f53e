"""Settings of the copy that a broker keeps in a bucket."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore._core import bucket_url
from sharecore.config.keys import Kind, setting


def check_bucket_url(text: str) -> None:
    """s3://BUCKET/PREFIX or file:///DIRECTORY"""
    bucket_url(text)


def check_endpoint(text: str) -> None:
    """http://HOST[:PORT] or https://HOST[:PORT]"""
    scheme, _, rest = text.partition("://")
    if scheme not in ("http", "https") or not rest:
        raise ValueError("no URL of a server")
    if any(each in rest for each in "@?#"):
        raise ValueError("credentials come from the environment or the machine's role")


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class BucketSettings:
    """A bucket: for a copy beside the data directory, or for what answers wait for (docs/bucket.md)."""

    sharecore_bucket_url: str | None = setting(
        Kind.STRING,
        None,
        "Bucket that gets a copy of all that is committed, as s3://BUCKET/PREFIX or file:///DIRECTORY; none: "
        "no copy. Answers wait for it with `sharecore.durability=bucket` alone.",
        check=check_bucket_url,
    )
    sharecore_bucket_endpoint: str | None = setting(
        Kind.STRING,
        None,
        "URL of a server that speaks S3's protocol; none: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or Amazon.",
        check=check_endpoint,
    )
    sharecore_bucket_region: str | None = setting(
        Kind.STRING, None, "Region of the bucket; none: AWS_REGION, AWS_DEFAULT_REGION, or us-east-1."
    )
    sharecore_bucket_allow_http: bool = setting(
        Kind.BOOLEAN, False, "Reach an endpoint that is not on this machine without TLS."
    )
    sharecore_bucket_interval_ms: int = setting(
        Kind.INT,
        1000,
        "How long what was committed waits at most for more to be copied with it: what a lost machine loses, "
        "and with it how many requests a bucket costs. Without effect if answers wait for the bucket.",
        low=10,
        high=3_600_000,
    )
    sharecore_bucket_linger_ms: int = setting(
        Kind.INT,
        20,
        "With `sharecore.durability=bucket`: how long a write waits at most to share an object with others, "
        "while an object is on its way.",
        low=0,
        high=10_000,
    )
    sharecore_bucket_puts_per_second: int = setting(
        Kind.INT,
        10,
        "With `sharecore.durability=bucket`: objects of the journal created a second, over a minute, which "
        "bounds the bill. Beyond it writes wait longer and share objects; objects of 4 MiB do not count.",
        low=1,
        high=10_000,
    )
    sharecore_bucket_history_ms: int = setting(
        Kind.LONG, 86_400_000, "How far back `sharecore bucket restore --at` reaches at least.", low=0
    )
    sharecore_bucket_surplus_bytes: int = setting(
        Kind.LONG,
        8 << 30,
        "Disk space for files that are kept only until the bucket has them. Beyond it they are removed, and "
        "the copy begins anew once the bucket answers again.",
        low=1 << 20,
    )
