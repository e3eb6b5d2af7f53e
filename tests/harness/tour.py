"""Commands that a page of the documentation shows, run as a reader would run them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from tests.harness.broker import SHARECORE, START_SECONDS_MAX, STOP_SECONDS_MAX, answers, free_port

BEGIN, END = "<!-- tour -->", "<!-- end of tour -->"


_TIMES = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z|\d\d:\d\d:\d\d\.\d{3}|(?<=in )\d+\.\d(?= s\b)"
)


class Step(NamedTuple):
    """A command, and what the page shows of its output.

    A line `...` stands for any lines, a time for any time.
    """

    command: str
    shown: str

    def is_what_was_printed(self, printed: str, *, any_order: bool = False) -> bool:
        """Whether the page tells the truth; lines of an output that it shows whole may have any order."""
        shown, printed = _TIMES.sub("TIME", self.shown), _TIMES.sub("TIME", printed)
        if any_order and "...\n" not in shown:
            return sorted(shown.splitlines()) == sorted(printed.splitlines())
        pattern = re.escape(shown).replace(re.escape("...\n"), "(?:.*\n)*")
        return re.fullmatch(pattern, printed) is not None


def steps_of(page: Path) -> list[Step]:
    """Return the commands between the marks of a page, in their order."""
    text = page.read_text().partition(BEGIN)[2].partition(END)[0]
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [step for block in blocks for step in steps_in(block)]


def steps_in(block: str) -> list[Step]:
    """Return the commands of a block, in their order."""
    steps = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [Step(command, shown) for command, _, shown in (step.partition("\n") for step in steps)]


class Shell:
    """Runs steps in one directory; `sharecore serve ... &` stays until `kill %1`, on a port that is free.

    Args:
        directory: where they are run.
        environment: what they have in theirs, beyond that.
    """

    def __init__(self, directory: Path, **environment: str) -> None:
        self._directory = directory
        self._server: subprocess.Popen[bytes] | None = None
        self._port = free_port()
        self._environment = os.environ | {
            "PATH": f"{Path(SHARECORE).parent}:{os.environ['PATH']}",
            "SHARECORE_BOOTSTRAP_SERVER": f"localhost:{self._port}",
            **environment,
        }

    def run(self, command: str) -> str:
        """What a command printed; it has to end well."""
        if command.endswith(" &"):
            self._serve(command.removesuffix(" &"))
            return ""
        if command == "kill %1":
            self.stop()
            return ""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._directory,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _serve(self, command: str) -> None:
        assert self._server is None, "one broker at a time"
        self._server = subprocess.Popen(
            ["bash", "-c", f"exec {command} --port {self._port}"],
            cwd=self._directory,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=(self._directory / "broker.log").open("ab"),
        )
        until = time.monotonic() + START_SECONDS_MAX
        while not answers(self._port):
            assert self._server.poll() is None, (self._directory / "broker.log").read_text()
            assert time.monotonic() < until
            time.sleep(0.05)

    def stop(self) -> None:
        """End the broker, cleanly."""
        if self._server is not None:
            self._server.send_signal(signal.SIGTERM)
            assert self._server.wait(STOP_SECONDS_MAX) == 0
            self._server = None
