"""A small data directory for later releases to be tested with: `python -m tests.upgrade.small FILE.tar.xz`.

A broker with segments of 16 KB is filled and killed, so that the directory has all kinds of files.
"""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tests.harness.broker import ONE_NODE, QUICK_GROUPS, answers, free_port
from tests.upgrade.contents import SETTINGS, as_json, fill

NAME = "small"
_SEGMENT_BYTES, _PADDING = 16 << 10, 500
_FEW = {"offsets.topic.num.partitions": "3", "share.coordinator.state.topic.num.partitions": "3"}


def write(archive: Path) -> None:
    """Fill a directory and pack it, with what a check of it needs."""
    with tempfile.TemporaryDirectory() as scratch:
        data, port = Path(scratch) / "data", free_port()
        broker = subprocess.Popen([sys.executable, "-m", "tests.upgrade.small", str(data), str(port)])
        try:
            while not answers(port):
                time.sleep(0.05)
            expected = fill(f"127.0.0.1:{port}", NAME, _PADDING)
            while len({path.suffix for path in data.iterdir()} & {".compact", ".checkpoint"}) < 2:
                time.sleep(0.1)
        finally:
            broker.kill()
            broker.wait()
        with tarfile.open(archive, "w:xz") as tar:
            tar.add(data, "data")
            told = as_json(expected).encode()
            entry = tarfile.TarInfo("expected.json")
            entry.size = len(told)
            tar.addfile(entry, io.BytesIO(told))


async def serve(data: Path, port: int) -> None:
    """Serve with small segments until it is killed."""
    from sharecore.broker.broker import Broker
    from sharecore.broker.store.backend import StoreBackend
    from sharecore.config import BrokerConfig
    from sharecore.storage import Storage

    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", "log.dirs": str(data), **_FEW}
    config = BrokerConfig.from_properties(ONE_NODE | QUICK_GROUPS | SETTINGS | settings)
    backend = StoreBackend(
        lambda path, options: Storage(path, replace(options, segment_bytes=_SEGMENT_BYTES))
    )
    broker = Broker(config, backend=backend)
    await broker.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write(Path(sys.argv[1]))
    else:
        asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
