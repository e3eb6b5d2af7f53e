"""The examples of docs/client.md and docs/admin.md: what the pages show of them, and what they print."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from tests.harness.broker import ROOT
from tests.harness.clients import configure_group, create_topic, produce

from sharecore.admin import BlockingAdmin, Target

EXAMPLES = ROOT / "examples/client"
SECONDS_MAX = 60
_PAGES = "".join((ROOT / name).read_text() for name in ("docs/client.md", "docs/admin.md"))


def shown(name: str) -> list[str]:
    """Return the output of an example that its page shows behind its text."""
    text = (EXAMPLES / f"{name}.py").read_text()
    _, found, after = _PAGES.partition(f"```python\n{text}```\n")
    assert found, f"the documentation does not print examples/client/{name}.py as it is"
    block = re.match(r"\s*```console\n\$ .*\n((?:.*\n)*?)```", after)
    assert block is not None, f"no output behind examples/client/{name}.py"
    return block[1].splitlines()


class Examples:
    """Runs the examples on a broker.

    Args:
        bin: the directory of the `python` and the `sharecore` that run them.
        environment: of their processes.
    """

    def __init__(self, bootstrap: str, bin: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._bootstrap = bootstrap
        self._bin = bin
        self._environment = environment
        create_topic(bootstrap, "foo")
        configure_group(bootstrap, "myshare", share_auto_offset_reset="earliest")
        produce(bootstrap, "foo", [b"7", b"eight", b"9"])

    def consumer(self, name: str) -> list[str]:
        """Return what an endless program prints of all records, which are there again afterwards."""
        command: list[str | Path] = [self._bin / "python", f"{name}.py", self._bootstrap]
        lines = self._first_lines(command, len(shown(name)))
        with BlockingAdmin(bootstrap_servers=self._bootstrap) as admin:
            admin.reset(admin.plan_reset("myshare", Target.earliest()))
        return lines

    def worker(self, name: str, target: str) -> list[str]:
        """Return what the functions of a worker print."""
        command: list[str | Path] = [self._bin / "sharecore", "work", target, "-b", self._bootstrap]
        return self._first_lines(command, len(shown(name)))

    def program(self, name: str) -> list[str]:
        """Return what a program prints that ends by itself."""
        done = subprocess.run(
            [self._bin / "python", f"{name}.py", self._bootstrap],
            cwd=EXAMPLES,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def _first_lines(self, command: list[str | Path], lines: int) -> list[str]:
        program = subprocess.Popen(
            command,
            cwd=EXAMPLES,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # tests in the background of a shell ignore SIGINT, and the program would inherit that
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            assert program.stdout is not None
            first = [program.stdout.readline().rstrip("\n") for _ in range(lines)]
            # its last acknowledgements are in transit
            time.sleep(0.5)
            program.send_signal(signal.SIGINT)
            program.wait(SECONDS_MAX)
            return first
        finally:
            program.kill()
            program.wait()
