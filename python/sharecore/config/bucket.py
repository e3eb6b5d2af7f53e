"""Settings of the copy that a broker keeps in a bucket."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore._core import bucket_url
from sharecore.config.keys import Kind, setting


def check_bucket_url(text: str) -> None:
    """Allow s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX or file:///DIRECTORY"""
    bucket_url(text)


def check_endpoint(text: str) -> None:
    """Allow http://HOST[:PORT] or https://HOST[:PORT]"""
    scheme, _, rest = text.partition("://")
    if scheme not in ("http", "https") or not rest:
        raise ValueError("no URL of a server")
    if any(each in rest for each in "@?#"):
        raise ValueError("credentials come from the environment or the machine's role")


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class BucketSettings:
    """Settings of a bucket: for a copy of the data directory, or for a home (docs/bucket.md)."""

    sharecore_bucket_url: str | None = setting(
        Kind.STRING,
        None,
        "Bucket for a copy of everything committed, as s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, "
        "az://ACCOUNT/CONTAINER/PREFIX or file:///DIRECTORY; empty: no copy. Answers wait for it only with "
        "`sharecore.durability=bucket`.",
        check=check_bucket_url,
    )
    sharecore_bucket_endpoint: str | None = setting(
        Kind.STRING,
        None,
        "URL of a server other than the cloud's own; default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL; for "
        "gs:// STORAGE_EMULATOR_HOST; for az:// AZURE_STORAGE_ENDPOINT.",
        check=check_endpoint,
    )
    sharecore_bucket_region: str | None = setting(
        Kind.STRING, None, "Region of an S3 bucket; default: AWS_REGION, AWS_DEFAULT_REGION, else us-east-1."
    )
    sharecore_bucket_allow_http: bool = setting(
        Kind.BOOLEAN, False, "Allow an endpoint on another machine without TLS."
    )
    sharecore_bucket_interval_ms: int = setting(
        Kind.INT,
        1000,
        "Maximum delay of the copy: what a lost machine may lose, against the number of requests. No "
        "effect with `sharecore.durability=bucket`.",
        low=10,
        high=3_600_000,
    )
    sharecore_bucket_linger_ms: int = setting(
        Kind.INT,
        20,
        "With `sharecore.durability=bucket`: how long a write waits for others to share its object, while "
        "another object is being created.",
        low=0,
        high=10_000,
    )
    sharecore_bucket_puts_per_second: int = setting(
        Kind.INT,
        10,
        "With `sharecore.durability=bucket`: maximum journal objects per second, averaged over a minute, "
        "to bound the bill. Beyond it writes wait longer and share objects; objects of 4 MiB do not count.",
        low=1,
        high=10_000,
    )
    sharecore_bucket_cache_bytes: int = setting(
        Kind.LONG,
        0,
        "With `sharecore.durability=bucket`: local disk space for sealed segments. Beyond it, segments that "
        "the bucket has leave the disk, and are read from the bucket. 0: everything stays local.",
        low=0,
    )
    sharecore_bucket_history_ms: int = setting(
        Kind.LONG, 86_400_000, "Minimum history that `sharecore bucket restore --at` can reach.", low=0
    )
    sharecore_bucket_surplus_bytes: int = setting(
        Kind.LONG,
        8 << 30,
        "Disk space for files kept only until the bucket has them. Beyond it they are deleted, and the "
        "copy starts over once the bucket answers again.",
        low=1 << 20,
    )
