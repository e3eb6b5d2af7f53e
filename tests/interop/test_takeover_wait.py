"""Nobody gets records of a key that a member may still work on since before a broker was killed."""

from __future__ import annotations

import pytest
from tests.harness.broker import Broker
from tests.harness.clients import (
    ACCEPT,
    RELEASE,
    commit,
    configure_group,
    create_topic,
    nothing_comes,
    produce,
    share_consumer,
    take,
)
from tests.interop.conftest import KIND, BrokerMaker
from tests.interop.test_admin import sharecore

pytestmark = pytest.mark.skipif(KIND == "apache", reason="settings that Apache Kafka does not have")

TOPIC, GROUP = "jobs", "strict"


def strict_group(broker: Broker) -> None:
    """A topic with two records and a group in its order, whose locks last a minute."""
    create_topic(broker.bootstrap, TOPIC)
    configure_group(
        broker.bootstrap,
        GROUP,
        share_ordering="partition",
        share_record_lock_duration_ms=60_000,
        share_auto_offset_reset="earliest",
        share_ordering_takeover_wait="true",
    )
    produce(broker.bootstrap, TOPIC, [b"first", b"second"])


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_a_member_may_be_at_work_on_since_before_a_restart_goes_to_nobody_for_a_locks_duration(
    new_broker: BrokerMaker, end: str
) -> None:
    broker = new_broker()
    broker.start()
    strict_group(broker)
    with share_consumer(broker.bootstrap, GROUP, [TOPIC]) as worker:
        (message,) = take(worker)
        assert message.offset() == 0
        # it works on the record all the time
        if end == "kill":
            broker.kill()
        else:
            assert broker.terminate() == 0
    broker.start()
    with share_consumer(broker.bootstrap, GROUP, [TOPIC]) as other:
        assert nothing_comes(other, 3.0)
        _, described, _ = sharecore(broker, "describe", GROUP)
        assert "as members may hold some since before a takeover: share.ordering.takeover.wait" in described
        configure_group(broker.bootstrap, GROUP, share_ordering_takeover_wait="false")
        (message,) = take(other)
        assert message.offset() == 0


def test_after_a_stop_while_nobody_held_anything_records_come_at_once(new_broker: BrokerMaker) -> None:
    broker = new_broker()
    broker.start()
    strict_group(broker)
    for offset in range(2):
        with share_consumer(broker.bootstrap, GROUP, [TOPIC]) as worker:
            (message,) = take(worker)
            assert message.offset() == offset
            worker.acknowledge(message, ACCEPT)
            commit(worker)
            if offset == 0:
                (message,) = take(worker)
                worker.acknowledge(message, RELEASE)
                commit(worker)
        assert broker.terminate() == 0
        broker.start()
