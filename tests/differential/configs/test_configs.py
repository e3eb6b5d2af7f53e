"""`make differential-config` for more of the same, against 4.4.0 as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from random import Random

import pytest
from tests.differential.configs.apache import ApacheConfigs
from tests.differential.configs.case import Case
from tests.differential.configs.cases import several, single
from tests.differential.configs.compare import compare
from tests.harness.broker import KAFKA_LIBS

# keys whose error texts once differed, and one of each kind that limits another
ALWAYS = (
    {"log.retention.ms": "-2"},
    {"log.retention.hours": "0"},
    {"log.retention.hours": "0", "log.retention.minutes": "1"},
    {"group.share.max.share.sessions": "199"},
    {"group.share.max.share.sessions": "200"},
    {"queued.max.request.bytes": "104857599"},
    {"queued.max.request.bytes": "104857600"},
    {"connections.max.idle.ms": "100"},
    {"connections.max.idle.ms": "101"},
    {"log.cleaner.dedupe.buffer.size": str(3 * 1024 * 1024), "log.cleaner.threads": "2"},
    {"log.cleaner.dedupe.buffer.size": str(2 * 1024 * 1024), "log.cleaner.threads": "2"},
    {"max.connections.per.ip": "0"},
    {"group.consumer.assignors": ""},
    {"log.cleanup.policy": "delete,"},
)


@pytest.fixture(scope="module")
def apache() -> Iterator[ApacheConfigs]:
    with ApacheConfigs(KAFKA_LIBS) as started:
        yield started


def test_a_broker_starts_with_what_apache_starts_with(apache: ApacheConfigs) -> None:
    cases = chain(
        (Case("broker", dict(settings), {}) for settings in ALWAYS),
        Random(7).sample(list(single()), 600),
        map(several, range(300)),
    )
    found: Counter[str] = Counter()
    for case in cases:
        name, text = compare(case, apache.judge(case))
        assert name != "differs", text
        found[name] += 1
    assert found["same"] > 800


def test_a_difference_is_seen(apache: ApacheConfigs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharecore.config.broker.check_relations", lambda value, explicit: None)
    case = Case("broker", {"group.share.max.share.sessions": "199"}, {})
    assert compare(case, apache.judge(case)).name == "differs"
