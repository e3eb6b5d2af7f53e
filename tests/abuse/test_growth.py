"""Ten times as many entries cost about ten times as much; `make abuse` asks for 20,000 of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.abuse.growth import APIS, RATIO_MAX, growing, measure
from tests.abuse.peer import Peer
from tests.abuse.subject import NOBODY, Subject

from sharecore.protocol import ApiKey

ENTRIES = 300
"""Few enough for every test run: what looks at each of 3,000 entries for each of them stands out."""


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    started = Subject(tmp_path_factory.mktemp("broker"))
    started.start()
    yield started
    started.stop()


@pytest.fixture(scope="module", params=[NOBODY, None], ids=["no rights", "super user"])
def peer(request: pytest.FixtureRequest, subject: Subject) -> Iterator[Peer]:
    with subject.connect(request.param) as connected:
        yield connected


@pytest.mark.parametrize("api", sorted(APIS), ids=lambda api: api.name)
def test_entries_cost_the_same_however_many_there_are(subject: Subject, peer: Peer, api: ApiKey) -> None:
    for each in growing(subject, api, every_variant=False):
        growth = measure(subject, peer, each, ENTRIES)
        assert growth.ratio <= RATIO_MAX, f"{each.title}: {growth}"
