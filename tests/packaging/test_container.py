"""The container file and the compose demo, without containers: commands and settings as they stand there.

`make check-packaging` has hadolint and the schema of compose files look at the same files.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.broker import ROOT, SHARECORE, answers, free_port

CONTAINERFILE = (ROOT / "packaging/container/Containerfile").read_text()
COMPOSE = (ROOT / "packaging/compose/compose.yaml").read_text()
SECONDS_MAX = 30.0


def image_environment() -> dict[str, str]:
    """ENV of the last stage."""
    block = re.findall(r"^ENV (PATH=/opt.*(?:\n .*)*)", CONTAINERFILE, re.MULTILINE)[-1]
    pairs = dict(part.split("=", 1) for part in block.replace("\\\n", " ").split())
    return {name: value for name, value in pairs.items() if name.startswith("SHARECORE_")}


def service(name: str) -> str:
    """Return a part of the compose file, by its name: the lines behind it that stand farther in."""
    lines = COMPOSE.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line in (f"  {name}:", f"x-{name}: &{name}")]
    depth = len(lines[at]) - len(lines[at].lstrip())
    inside = itertools.takewhile(
        lambda line: not line or len(line) - len(line.lstrip()) > depth, lines[at + 1 :]
    )
    return "\n".join(inside) + "\n"


def command_of(name: str) -> list[str]:
    """Return the command of a service, whichever way it is written."""
    part = service(name)
    inline = re.search(r"command: \[(.*)\]", part)
    if inline is not None:
        return [word.strip().strip('"') for word in inline[1].split(",")]
    lines = re.search(r"command:\n((?: +- .*\n)+)", part)
    assert lines is not None
    return [line.strip().removeprefix("- ") for line in lines[1].splitlines()]


class Demo:
    """The services of the compose file as processes."""

    def __init__(self, home: Path) -> None:
        inside, outside, metrics = free_port(), free_port(), free_port()
        self.bootstrap, self.metrics = f"localhost:{inside}", metrics
        self._moved = {"9092": inside, "29092": outside, "9464": metrics}
        settings = image_environment() | dict(
            re.findall(r"(SHARECORE_\w+): \"?([^\"\n]+)", service("broker"))
        )
        settings["SHARECORE_LOG_DIRS"] = str(home / "data")
        self._environment = {
            name: re.sub(r"(?<=:)\d+", lambda port: str(self._moved[str(port[0])]), value)
            for name, value in settings.items()
        }
        self._environment["SHARECORE_ADVERTISED_LISTENERS"] = self._environment[
            "SHARECORE_ADVERTISED_LISTENERS"
        ].replace("broker:", "localhost:")
        # compose sets this for the tools; the broker ignores it
        self._environment["SHARECORE_BOOTSTRAP_SERVER"] = self.bootstrap
        shutil.copy(ROOT / "packaging/compose/jobs.py", home)
        self._home = home
        self._log = (home / "output.log").open("ab")
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command, cwd=self._home, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            env=os.environ | self._environment,
        )  # fmt: skip
        self.running.append(process)
        return process

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self._home, capture_output=True, text=True, timeout=SECONDS_MAX,
            env=os.environ | self._environment,
        )  # fmt: skip

    def is_healthy(self) -> bool:
        """What HEALTHCHECK says."""
        check = re.search(r"HEALTHCHECK[^[]*CMD (\[.*\])", CONTAINERFILE)
        assert check is not None
        program, *arguments = json.loads(check[1])
        assert program == "python"
        arguments = [each.replace("9464", str(self.metrics)) for each in arguments]
        return subprocess.run([sys.executable, *arguments], capture_output=True).returncode == 0

    def log(self) -> str:
        return (self._home / "output.log").read_text()

    def stop(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
        self._log.close()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    made = Demo(tmp_path)
    yield made
    made.stop()


def test_the_demo_ends_in_a_dead_letter(demo: Demo) -> None:
    command = re.findall(r"^CMD (\[.*\])$", CONTAINERFILE, re.MULTILINE)[-1]
    assert not demo.is_healthy()
    broker = demo.start(SHARECORE, *json.loads(command))
    until = time.monotonic() + SECONDS_MAX
    while not (answers(int(demo.bootstrap.split(":")[1])) and demo.is_healthy()):
        assert broker.poll() is None, demo.log()
        assert time.monotonic() < until, demo.log()
        time.sleep(0.05)
    ended = demo.run(SHARECORE, *command_of("setup"))
    assert ended.returncode == 0, ended.stderr
    demo.start(sys.executable, "jobs.py", demo.bootstrap)
    workers = [demo.start(SHARECORE, *command_of("worker")) for _ in range(COMPOSE.count(": *worker"))]
    assert len(workers) == 2
    until = time.monotonic() + SECONDS_MAX
    letters = command_of("letters")
    assert letters[:2] == ["consume", "dlq.resizers"]
    while "poisoned" not in (shown := demo.run(SHARECORE, *letters, "--max", "1").stdout):
        assert [worker.poll() for worker in workers] == [None, None], demo.log()
        assert time.monotonic() < until, demo.log()
        time.sleep(0.2)
    assert shown.startswith("dlq.resizers-0@0")
    assert "resized image-" in demo.log()


def test_the_image_runs_as_nobody_and_writes_to_its_volume_alone() -> None:
    last = CONTAINERFILE[CONTAINERFILE.rindex("\nFROM ") :]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    volume = re.search(r"^VOLUME (\S+)$", last, re.MULTILINE)
    assert volume is not None
    assert image_environment()["SHARECORE_LOG_DIRS"] == volume[1]
    for name in ("broker", "tool"):
        assert "read_only: true" in service(name)
        assert "cap_drop: [ALL]" in service(name)
    assert shlex.split(re.findall(r"^ENTRYPOINT \[(.*)\]$", last, re.MULTILINE)[0]) == ["sharecore"]


def test_what_the_compose_file_mounts_is_there() -> None:
    mounted = re.findall(r"(\.\.?/[\w./]+):/", COMPOSE)
    assert len(mounted) >= 7
    assert [path for path in mounted if not (ROOT / "packaging/compose" / path).exists()] == []


@pytest.mark.parametrize("language", ["java", "go", "python"])
def test_the_command_that_testcontainers_give_the_image(language: str, tmp_path: Path) -> None:
    page = (ROOT / "docs/testing.md").read_text()
    (code,) = re.findall(rf"<!-- container: {language} -->\n```\w+\n(.*?)```", page, re.DOTALL)
    port = str(free_port())
    # the same in three syntaxes, with different placeholders for the port and separators
    settings = re.findall(r"(?:advertised\.)?listeners=PLAINTEXT://[\w.]+:", code)
    assert [each.partition("=")[0] for each in settings] == ["listeners", "advertised.listeners"]
    assert re.search(r"serve\W+--ephemeral\W", code)
    words = [SHARECORE, "serve", "--ephemeral"]
    for each in settings:
        words += ["--set", each + port]
    process = subprocess.Popen(
        words,
        env=os.environ | image_environment() | {"SHARECORE_METRICS_LISTENER": "127.0.0.1:0"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        waited_for = next(line for line in process.stdout if "sharecore serves" in line)
        assert f"localhost:{port}" in waited_for
        create = [SHARECORE, "topics", "create", "jobs", "-b", f"localhost:{port}"]
        subprocess.run(create, check=True, capture_output=True, timeout=SECONDS_MAX)
    finally:
        process.terminate()
        assert process.wait(SECONDS_MAX) == 0
