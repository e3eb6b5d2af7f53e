"""Runs Apache Kafka's command-line tools and our own small Java programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.harness.broker import KAFKA_LIBS, ROOT

CLIENT_LIBS = Path(os.environ.get("CLIENT_LIBS", ROOT / "build/jars/clients-4.4.0"))
TOOLS = "org.apache.kafka.tools"
_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
)


def command(
    main: str, *arguments: str, class_path: str | None = None, options: tuple[str, ...] = _OPTIONS
) -> list[str]:
    """The command line of a Java program; the class path is Kafka 4.3.1 with its tools unless told."""
    if class_path is None:
        if not (KAFKA_LIBS / ".done").exists():
            raise RuntimeError(f"no jars in {KAFKA_LIBS}: run `make jars`")
        class_path = f"{KAFKA_LIBS}/*"
        options = (f"-XX:SharedArchiveFile={KAFKA_LIBS / '.tools.jsa'}", *options)
    log = f"-Dlog4j2.configurationFile={ROOT / 'tests/harness/log4j2.properties'}"
    return ["java", *options, log, "-cp", class_path, main, *arguments]


def run(
    main: str, *arguments: str, stdin: str = "", timeout: float = 60, class_path: str | None = None
) -> str:
    """What the program printed; fails with all of it where its status is not 0."""
    done = subprocess.run(
        command(main, *arguments, class_path=class_path),
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, f"{main} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


class LineServer:
    """A Java program that stays, and answers each line with one.

    Args:
        command: its command line.
        environment: added to this process's.
        errors: where it complains; to this process's stderr unless told.
    """

    def __init__(
        self,
        command: list[str],
        *,
        environment: Mapping[str, str] | None = None,
        errors: IO[str] | int | None = None,
    ) -> None:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._input, self._output = process, process.stdin, process.stdout

    def ask(self, line: str) -> str:
        """The answer to a line.

        Raises:
            RuntimeError: the program has ended.
        """
        self.send(line + "\n")
        answer = self.receive()
        if not answer:
            raise RuntimeError(f"the JVM ended at {line}")
        return answer

    def send(self, lines: str) -> None:
        """Hands lines over; they must not be more than the pipes hold unless somebody receives meanwhile."""
        self._input.write(lines)
        self._input.flush()

    def receive(self) -> str:
        """The next line; empty where the program has ended."""
        return self._output.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._input.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
