"""The workers of docs/clients.md run as they are printed there.

The one in Go runs in `make interop-go`, those in Python run in tests/packaging, from the wheel alone.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.harness import java
from tests.harness.broker import QUICK_GROUPS, ROOT, Broker
from tests.harness.clients import configure_group, create_topic, produce

EXAMPLES = ROOT / "examples/clients"
PAGE = (ROOT / "docs/clients.md").read_text()


def get_jobs(home: Path, command: list[str]) -> None:
    """Hold that a worker gets what is in the topic."""
    broker = Broker(home, settings=QUICK_GROUPS)
    broker.start()
    try:
        create_topic(broker.bootstrap, "jobs")
        configure_group(broker.bootstrap, "workers", share_auto_offset_reset="earliest")
        produce(broker.bootstrap, "jobs", [b"one", b"two", b"three"])
        worker = subprocess.Popen(
            [*command, broker.bootstrap],
            cwd=EXAMPLES,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert worker.stdout is not None
            assert [worker.stdout.readline().strip() for _ in range(3)] == ["one", "two", "three"]
        finally:
            worker.kill()
            worker.wait()
    finally:
        broker.kill()


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir() if path.is_file()))
def test_the_page_prints_each_as_it_is(name: str) -> None:
    assert f"\n{(EXAMPLES / name).read_text()}```\n" in PAGE


def test_a_worker_in_java_gets_the_jobs(tmp_path: Path) -> None:
    get_jobs(tmp_path, ["java", "-cp", f"{java.CLIENT_LIBS}/*", "Worker.java"])
