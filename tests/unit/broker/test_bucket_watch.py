"""Reports about the copy in a bucket, for humans."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import cast

import pytest

from sharecore._core import BucketStatus
from sharecore.broker.store.bucket_watch import BucketWatch

URL = "s3://backups/queue"


@dataclass
class Copy:
    """The reported parts of a status."""

    state: str = "attaching"
    stopped: str | None = None
    error: str | None = None
    epoch: int = 0
    behind_ms: int = 0
    behind_bytes: int = 0
    eviction_error: str | None = None


def watch(copy: Copy) -> BucketWatch:
    return BucketWatch(URL, lambda: cast(BucketStatus, copy))


def test_a_bucket_out_of_reach_is_logged_once_and_once_more_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    copy = Copy()
    watching = watch(copy)
    watching.look()
    copy.state, copy.epoch = "leading", 3
    for _ in range(3):
        watching.look()
    copy.error, copy.behind_ms, copy.behind_bytes = "create journal/7: 503 SlowDown", 61_000, 2_500_000
    for _ in range(3):
        watching.look()
    copy.error = "create journal/7: connection refused"
    watching.look()
    copy.error = None
    for _ in range(3):
        watching.look()
    assert [record.message for record in caplog.records] == [
        f"a copy of everything goes to {URL} (epoch 3)",
        f"{URL} does not take the copy: create journal/7: 503 SlowDown. The broker serves on; what is not "
        "copied is lost with its disk",
        f"{URL} takes the copy again, 61 seconds and 2.5 MB behind",
    ]


def test_a_segment_that_cannot_be_evicted_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    copy = Copy()
    watching = watch(copy)
    for error in ("a is missing", "a is missing", None, "a is missing", "b is missing"):
        copy.eviction_error = error
        watching.look()
    assert [record.message for record in caplog.records] == [
        "cannot evict a segment or rewrite an evicted one: a is missing. Retrying after later checkpoints",
        "cannot evict a segment or rewrite an evicted one: b is missing. Retrying after later checkpoints",
    ]


@pytest.mark.parametrize("state", ["fenced", "refused"])
def test_a_copy_that_has_ended_is_an_error(state: str, caplog: pytest.LogCaptureFixture) -> None:
    copy = Copy(state, stopped="another broker has claimed the prefix. Use another one")
    watching = watch(copy)
    watching.look()
    watching.look()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "another broker has claimed the prefix. Use another one" in caplog.text
    assert (
        watching.trouble()
        == f"nothing is copied to {URL}: another broker has claimed the prefix. Use another one"
    )


def test_how_far_behind_is_told_when_it_is_much_or_has_a_reason() -> None:
    copy = Copy("leading", behind_ms=900, behind_bytes=10)
    watching = watch(copy)
    assert watching.trouble() == ""
    copy.behind_ms, copy.behind_bytes = 61_000, 9_000_000
    assert watching.trouble().startswith(
        f"the copy in {URL} is 61 seconds and 9.0 MB behind: more is written"
    )
    copy.behind_ms, copy.error = 0, "list: 403 AccessDenied. Allow s3:ListBucket"
    assert watching.trouble().endswith("Allow s3:ListBucket")
