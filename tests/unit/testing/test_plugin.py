"""The fixtures, as discovered by pytest."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.process

pytest_plugins = ["pytester"]

TESTS = """
import pytest
from confluent_kafka import Producer
from sharecore.client.blocking import ShareConsumer

@pytest.fixture(scope="session")
def sharecore_broker_settings():
    return {"group.share.delivery.count.limit": "3"}

@pytest.mark.parametrize("round", [1, 2])
def test_jobs_are_delivered(sharecore_broker, sharecore_topic, sharecore_group, round):
    producer = Producer(sharecore_broker.config)
    producer.produce(sharecore_topic, b"job")
    producer.flush()
    with ShareConsumer(sharecore_broker.config, group_id=sharecore_group) as consumer:
        consumer.subscribe([sharecore_topic])
        (record,) = consumer.poll(timeout=60)
        assert record.value == b"job" and record.delivery_count == 1
    print("SERVES", sharecore_broker.bootstrap_server)

def test_that_fails(sharecore_broker):
    print("SERVES", sharecore_broker.bootstrap_server)
    assert False, "the broker stops all the same"
"""


def test_fixtures_bring_a_broker_a_topic_and_a_group(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-s", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=1)
    served = [line.split("SERVES ")[1] for line in result.outlines if "SERVES 127" in line]
    assert len(served) == 3
    assert len(set(served)) == 1, "one broker serves all tests"
