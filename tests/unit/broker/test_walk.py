"""The path of an acknowledgement, hop by hop, in docs/architecture.md and in a real request."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import ACCEPT, Member, acquired, errors, produce

import sharecore
from sharecore.broker.broker import Broker

PACKAGE = Path(sharecore.__file__).parent
PAGE = (Path(__file__).parents[3] / "docs/architecture.md").read_text()


def hops() -> list[str]:
    """Return the Python files of the table, in order; a number means the last file of that hop."""
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| [^|]+ \|$", PAGE, re.MULTILINE)
    files: dict[str, list[str]] = {}
    for number, where in rows:
        files[number], folder = [], ""
        for name, other in re.findall(r"`([\w/]+\.py)`|\b(\d+)\b", where):
            if other:
                files[number] += files[other][-1:]
            else:
                folder = name.rpartition("/")[0] or folder
                files[number].append(f"{folder}/{name.rpartition('/')[2]}")
    return [name for some in files.values() for name in some]


def passed(files: list[str], wanted: list[str]) -> Iterator[str]:
    """The wanted files that occur in order in the others."""
    rest = iter(files)
    for name in wanted:
        if name in rest:
            yield name


def test_an_acknowledgement_goes_the_way_that_the_page_tells(
    broker: RunningBroker, topic: str, member: Member
) -> None:
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            called.append(str(path.relative_to(PACKAGE)))

    produce(broker, topic, 10)
    assert acquired(member.fetch(0)) == {0: [(0, 9, 1)]}
    # as with an authorizer; permissions are not checked without
    broker.look(
        lambda it: it.checks.publish(rights=True, features=False, quotas=False, leaders=False, leases=False)
    )
    broker.look(lambda _: sys.setprofile(note))
    answer = member.acknowledge({0: [(0, 9, ACCEPT)]})
    broker.look(lambda _: sys.setprofile(None))
    broker.look(Broker._publish_checks)
    assert errors(answer) == [(0, 0, 0)]
    wanted = hops()
    assert len(wanted) == 2, "the rest of the way is Rust"
    assert list(passed(called, wanted)) == wanted
