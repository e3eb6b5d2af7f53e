"""Runs Apache Kafka's command-line tools and our own small Java programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

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
