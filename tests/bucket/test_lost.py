"""kill -9 and the loss of the data directory, under load, again and again: what the bucket had is there.

`LOSSES` (3) is how often; `make bucket` prints how much was lost beyond, and for how long nobody was served.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bucket.home import home_settings, lose_again_and_again, numbers_in
from tests.bucket.ledger import GROUP, Ledger
from tests.bucket.versitygw import credentials, versitygw
from tests.harness.broker import QUICK_GROUPS, SHARECORE, Broker, free_port
from tests.harness.clients import configure_group, create_topic
from tests.harness.s3 import BUCKET

LOSSES = int(os.environ.get("LOSSES", "3"))
SEED = int(os.environ.get("SEED", "1"))
URL = f"s3://{BUCKET}/queue"
TOPIC = "jobs"


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    with versitygw(tmp_path / "server") as endpoint:
        yield endpoint


def restore(directory: Path, endpoint: str) -> float:
    """Return how long it took."""
    began = time.monotonic()
    command = [SHARECORE, "bucket", "restore", URL, str(directory), "--endpoint", endpoint]
    ended = subprocess.run(command, env=os.environ | credentials(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert all(secret not in ended.stdout + ended.stderr for secret in credentials().values())
    return time.monotonic() - began


@pytest.mark.timeout(180 + 60 * LOSSES)
def test_what_the_bucket_had_is_there_when_the_machine_is_lost(endpoint: str, tmp_path: Path) -> None:
    metrics_port = free_port()
    broker = Broker(
        tmp_path / "broker",
        settings=QUICK_GROUPS
        | {
            "sharecore.bucket.url": URL,
            "sharecore.bucket.endpoint": endpoint,
            "sharecore.bucket.interval.ms": "200",
            "sharecore.metrics.listener": f"127.0.0.1:{metrics_port}",
        },
    )
    broker.environment |= credentials()
    broker.start()
    create_topic(broker.bootstrap, TOPIC, 2)
    configure_group(broker.bootstrap, GROUP, share_auto_offset_reset="earliest")
    moments = random.Random(SEED)
    data, first, settled_before = broker.home / "data", 0, set[int]()
    for _ in range(LOSSES):
        ledger = Ledger(broker.bootstrap, TOPIC, f"http://127.0.0.1:{metrics_port}/metrics", first)
        ledger.start()
        end = time.monotonic() + 60
        while len(ledger.copied()[1]) < 100:
            assert time.monotonic() < end, broker.read_log()[-3000:]
            time.sleep(0.05)
        time.sleep(moments.uniform(0.2, 2.0))
        broker.kill()
        killed = time.monotonic()
        ledger.stop()
        shutil.rmtree(data)

        copied, settled = ledger.copied()
        took = restore(data, endpoint)
        there = numbers_in(data, TOPIC)
        assert copied - there.keys() == set(), f"SEED={SEED}"
        assert ledger.received & settled_before == set(), f"delivered again: SEED={SEED}"
        began = broker.start()
        lost = len(ledger.answered.keys() - there.keys())
        print(
            f"{len(ledger.answered):,} records answered, {len(copied):,} of them known to be in the bucket "
            f"and there; {lost:,} of the last {killed - ledger.copied_until:.2f} s before the kill are lost; "
            f"restored in {took:.2f} s, the first answer {began:.2f} s after the start"
        )
        settled_before |= settled
        first = ledger.next
    log = broker.read_log()
    assert broker.terminate() == 0
    assert all(secret not in log for secret in credentials().values())


@pytest.mark.timeout(180 + 60 * LOSSES)
def test_nothing_answered_is_lost_with_the_machine_where_answers_wait(endpoint: str, tmp_path: Path) -> None:
    metrics_port = free_port()
    settings = home_settings(URL, metrics_port) | {"sharecore.bucket.endpoint": endpoint}
    broker = Broker(tmp_path / "broker", settings=settings)
    broker.environment |= credentials()
    lose_again_and_again(broker, metrics_port, LOSSES, SEED)
    log = broker.read_log()
    assert all(secret not in log for secret in credentials().values())
