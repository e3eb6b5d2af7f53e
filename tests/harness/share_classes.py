"""Writes down the classes that Kafka's tools load, so that each run of one starts with a third less work.

Run when the jars have come: share_classes.py DIRECTORY. A JVM passes over an archive that is missing or not
its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

_TOOL = "org.apache.kafka.tools.TopicCommand"
_NOBODY = "localhost:1"


def main() -> None:
    """One tool looks for a broker that is not there: its classes are those of all."""
    libraries = Path(sys.argv[1]).resolve()
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as settings:
        settings.write("default.api.timeout.ms=500\nrequest.timeout.ms=400\n")
        settings.flush()
        subprocess.run(
            [
                *("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                *(f"-XX:ArchiveClassesAtExit={libraries / '.tools.jsa'}", "-cp", f"{libraries}/*"),
                *(_TOOL, "--bootstrap-server", _NOBODY, "--list", "--command-config", settings.name),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
        )


if __name__ == "__main__":
    main()
