"""What tools printed, line by line, without what differs from one run to the next."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from tests.harness.java import Output, ToolServer
from tests.interop.tools.members import Members
from tests.interop.tools.scenarios import Do, Tool

_CHANGES = (
    # ids: a UUID as Kafka writes it, as in RFC 9562, and with librdkafka's client name before it
    (re.compile(r"\bclient-of-(\w+)-[0-9a-f-]{36}\b"), r"MEMBER-OF-\1"),
    (re.compile(r"(?<!\S)[\w+/-]{22}(?!\S)"), "ID"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+\b"), "BROKER"),
    (re.compile(r"\s+"), " "),
    # how far Java's client got before its timeout, which does not depend on the broker
    (re.compile(r"(?<=Timed out waiting )(for a node assignment|to send the call)"), "for the broker"),
    # a Java set, in another order with each JVM
    (
        re.compile(r"(?<=Valid states are: )(\w+(, )?)+"),
        lambda found: ", ".join(sorted(found[0].split(", "))),
    ),
)
_STACK = re.compile(r"\s+at |\s+\.\.\. \d+ more")


def lines(output: Output) -> list[str]:
    """Return the lines of an output; columns are as wide as the ids in them, so that widths are not kept."""
    found = [f"[exit status {output.status}]"]
    for line in output.text.splitlines():
        if _STACK.match(line) or not line.strip():
            continue
        for pattern, replacement in _CHANGES:
            line = pattern.sub(replacement, line)
        found.append(line.strip())
    # rows of new offsets come from a hash table
    table = next((number for number, line in enumerate(found, 1) if line.endswith("NEW-OFFSET")), len(found))
    return found[:table] + sorted(found[table:])


def transcript(server: ToolServer, bootstrap: str, scenario: Iterable[Tool | Do]) -> list[str]:
    """Plays a scenario on a broker; the command lines, each with what it printed."""
    members = Members(bootstrap)
    told: list[str] = []
    try:
        for step in scenario:
            if isinstance(step, Do):
                step.action(members)
                continue
            told.append(f"$ {step.name} {step.command}")
            told += lines(server.run(step.main, "--bootstrap-server", bootstrap, *shlex.split(step.command)))
    finally:
        members.leave_all()
    return told
