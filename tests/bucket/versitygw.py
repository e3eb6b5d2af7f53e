"""versitygw, a server that speaks S3's protocol, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.harness.broker import free_port
from tests.harness.s3 import BUCKET

KEY, SECRET = "testing-key", "testing-secret-0123456789"
_START_S = 60


def credentials() -> dict[str, str]:
    return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


@contextmanager
def versitygw(directory: Path) -> Iterator[str]:
    """Run a server with an empty `BUCKET` and return its endpoint."""
    port = free_port()
    # versitygw's buckets are directories
    objects, about = directory / "objects", directory / "about"
    (objects / BUCKET).mkdir(parents=True)
    about.mkdir()
    program = os.environ.get("VERSITYGW", "versitygw")
    command = [program, "--port", f"127.0.0.1:{port}", "--access", KEY, "--secret", SECRET, "--quiet"]
    command += ["posix", "--sidecar", str(about), str(objects)]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_for(process, port, directory / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a server listens."""
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"the server does not listen: {log.read_text()}")
