"""Servers that speak S3's protocol, each in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.harness.s3 import BUCKET

KEY, SECRET = "testing-key", "testing-secret-0123456789"
SERVERS = ("versitygw", "moto")
_START_S = 60


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _command(kind: str, port: int, directory: Path) -> list[str]:
    if kind == "moto":
        program = os.environ.get("MOTO_SERVER", str(Path(sys.executable).with_name("moto_server")))
        return [program, "-H", "127.0.0.1", "-p", str(port)]
    program = os.environ.get("VERSITYGW", "versitygw")
    listen = ["--port", f"127.0.0.1:{port}", "--access", KEY, "--secret", SECRET, "--quiet"]
    return [program, *listen, "posix", "--sidecar", str(directory / "about"), str(directory / "objects")]


def credentials() -> dict[str, str]:
    return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


@contextmanager
def server(kind: str, directory: Path) -> Iterator[str]:
    """Run a server with an empty `BUCKET` and return its endpoint."""
    port = free_port()
    # versitygw's buckets are directories
    (directory / "objects" / BUCKET).mkdir(parents=True)
    (directory / "about").mkdir()
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(_command(kind, port, directory), stdout=log, stderr=subprocess.STDOUT)
        try:
            endpoint = f"http://127.0.0.1:{port}"
            _wait(process, port, directory / "log")
            if kind == "moto":
                _create_bucket(endpoint)
            yield endpoint
        finally:
            process.terminate()
            process.wait(20)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"the server does not listen: {log.read_text()}")


def _create_bucket(endpoint: str) -> None:
    """moto takes a request without a signature."""
    from urllib.request import Request, urlopen

    with urlopen(Request(f"{endpoint}/{BUCKET}", method="PUT", headers={"Content-Length": "0"})) as made:
        assert made.status == 200
