"""docs/security.md's quick start: encryption, users and rights, command by command."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.harness.broker import SHARECORE, free_port

PAGE = Path(__file__).parents[2] / "docs/security.md"
SECTION = "## Quick start"


def commands() -> list[str]:
    """Return the commands of the section; one with a file in it is several lines."""
    section = PAGE.read_text().split(SECTION)[1].split("\n## ")[0]
    lines = [line[4:] for line in section.splitlines() if line.startswith("    ")]
    found: list[str] = []
    for line in lines:
        if found and (_is_open(found[-1]) or found[-1].endswith("\\")):
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


def _is_open(command: str) -> bool:
    """Whether the file in a command has not ended yet."""
    return "<<'END'" in command and not command.endswith("\nEND")


@pytest.mark.timeout(180)
def test_each_command(tmp_path: Path) -> None:
    port = free_port()
    environment = os.environ | {"PATH": f"{Path(SHARECORE).parent}:{os.environ['PATH']}"}
    listed = commands()
    assert len(listed) == 10
    outputs: list[str] = []
    server: subprocess.Popen[bytes] | None = None
    try:
        for command in listed:
            text = command.replace("9093", str(port))
            if text.endswith("&"):
                server = subprocess.Popen(
                    ["bash", "-c", f"exec {text.removesuffix('&')}"],
                    cwd=tmp_path,
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=(tmp_path / "broker.log").open("wb"),
                )
                _until_it_listens(server, port)
                continue
            done = subprocess.run(
                ["bash", "-c", text],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            is_last = command is listed[-1]
            assert (done.returncode != 0) == is_last, (command, done.stdout, done.stderr)
            outputs.append(done.stdout + done.stderr)
        assert outputs[-2].split()[-1] == "hello"
        assert "the right WRITE on topic payments is missing" in outputs[-1]
        assert "secret" not in (tmp_path / "broker.log").read_text()
    finally:
        if server is not None:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


def _until_it_listens(server: subprocess.Popen[bytes], port: int) -> None:
    import socket

    until = time.monotonic() + 30
    while True:
        assert server.poll() is None
        assert time.monotonic() < until
        try:
            socket.create_connection(("localhost", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
