"""Runs Apache Kafka's command-line tools and our own small Java programs."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from tests.harness.broker import KAFKA_LIBS, ROOT

CLIENT_LIBS = Path(os.environ.get("CLIENT_LIBS", ROOT / "build/jars/clients-4.4.0"))
TOOLS = "org.apache.kafka.tools"
PROBES = ROOT / "tests/interop/java"
_CLASSES = ROOT / "build/classes"
_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
)


def compiled(source: Path, libs: Path) -> Path:
    """Return the directory with the classes of a program in one file; they are made where they are missing.

    Args:
        libs: the jars that it needs.
    """
    if not (libs / ".done").exists():
        raise RuntimeError(f"no jars in {libs}: run `make jars`")
    mark = hashlib.sha256(source.read_bytes() + str(libs).encode()).hexdigest()[:16]
    classes = _CLASSES / f"{source.stem}-{mark}"
    if not classes.exists():
        _CLASSES.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=_CLASSES))
        command = ["javac", "-nowarn", "-proc:none", "-d", str(fresh), "-cp", f"{libs}/*", str(source)]
        subprocess.run(command, check=True)
        try:
            fresh.rename(classes)
        except OSError:  # another process was quicker
            shutil.rmtree(fresh)
    return classes


def command(
    main: str,
    *arguments: str,
    libs: Path = KAFKA_LIBS,
    classes: Path | None = None,
    options: tuple[str, ...] = _OPTIONS,
) -> list[str]:
    """Return the command line of a Java program.

    Args:
        libs: the jars that it needs; Kafka 4.3.1 with its tools unless told.
        classes: more classes, behind them.
    """
    if not (libs / ".done").exists():
        raise RuntimeError(f"no jars in {libs}: run `make jars`")
    # a JVM ignores an archive that is missing or belongs to other jars
    archive = libs / (".apache.jsa" if main == "kafka.Kafka" else ".tools.jsa")
    log = f"-Dlog4j2.configurationFile={ROOT / 'tests/harness/log4j2.properties'}"
    class_path = f"{libs}/*" if classes is None else f"{libs}/*:{classes}"
    return ["java", f"-XX:SharedArchiveFile={archive}", *options, log, "-cp", class_path, main, *arguments]


def program(
    source: Path, *arguments: str, libs: Path = KAFKA_LIBS, options: tuple[str, ...] = _OPTIONS
) -> list[str]:
    """Return the command line of a program of our own in one file."""
    return command(source.stem, *arguments, libs=libs, classes=compiled(source, libs), options=options)


def run(main: str, *arguments: str, stdin: str = "", timeout: float = 60) -> str:
    """What a tool of Kafka 4.3.1 printed; fails with all of it where its status is not 0."""
    done = _tools().run(main, *arguments, stdin=stdin, timeout=timeout)
    assert done.status == 0, f"{main} ended with {done.status}:\n{done.text}"
    return done.text


def run_alone(main: str, *arguments: str) -> str:
    """Return the same of a tool that does its last work when its JVM ends: in a JVM of its own."""
    return _printed(command(main, *arguments))


def run_program(
    source: Path, *arguments: str, libs: Path = KAFKA_LIBS, stdin: str = "", timeout: float = 60
) -> str:
    """What a program of our own printed; fails with all of it where its status is not 0."""
    return _printed(program(source, *arguments, libs=libs), stdin, timeout)


def _printed(command: list[str], stdin: str = "", timeout: float = 60) -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout)
    told = f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    assert done.returncode == 0, told
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
        """Return the answer to a line.

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
        """Return the next line; empty where the program has ended."""
        return self._output.readline()

    def close(self) -> None:
        """End the program: it reads that no more comes."""
        self._input.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Output(NamedTuple):
    """What a tool answered: its exit status, and what it printed to both streams."""

    status: int
    text: str


class ToolServer(LineServer):
    """Kafka's tools, one at a time in one JVM: a second for the first, little for the others.

    Args:
        environment: added to this process's.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(program(PROBES / "ToolServer.java"), environment=environment)
        self._one = threading.Lock()

    def run(self, main: str, *arguments: str, stdin: str = "", timeout: float = 60) -> Output:
        """Run a tool to its end.

        Raises:
            RuntimeError: the JVM has ended, or the tool did not end in time, and the JVM with it.
        """
        request = json.dumps({"main": main, "arguments": arguments, "input": stdin})
        with self._one:
            patience = threading.Timer(timeout, self._process.kill)
            patience.start()
            try:
                answer = json.loads(self.ask(request))
            finally:
                patience.cancel()
        return Output(answer["status"], answer["output"])

    def running(self) -> bool:
        return self._process.poll() is None


_starting = threading.Lock()
_servers: list[ToolServer] = []
"""The one of this process, behind those that a tool has ended."""


def _tools() -> ToolServer:
    with _starting:
        if not _servers or not _servers[-1].running():
            _servers.append(ToolServer())
            atexit.register(_servers[-1].close)
        return _servers[-1]
