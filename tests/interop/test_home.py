"""A broker whose answers wait for a bucket, for which a directory stands in; tests/bucket has S3."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bucket.home import home_settings, lose_again_and_again
from tests.harness.broker import Broker, free_port


@pytest.mark.timeout(180)
def test_nothing_answered_is_lost_with_the_machine(tmp_path: Path) -> None:
    bucket, metrics_port = tmp_path / "bucket", free_port()
    bucket.mkdir()
    broker = Broker(tmp_path / "broker", settings=home_settings(f"file://{bucket}", metrics_port))
    lose_again_and_again(broker, metrics_port, losses=2, seed=1)
