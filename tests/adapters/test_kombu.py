"""kombu's own tests of transports, as far as they are about queues, and what the transport refuses."""

from __future__ import annotations

import importlib.util
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import kombu
import pytest
from kombu.exceptions import ChannelError
from tests.adapters.conftest import KIND
from tests.harness.broker import Broker, free_port
from tests.harness.clients import configure_group

import sharecore.adapters.kombu  # noqa: F401 - makes sharecore:// known

TESTS = os.environ.get("KOMBU_TESTS")
"""kombu's t/integration/common.py, which only its sources have: `make adapters`."""


def theirs(name: str) -> Any:
    if TESTS is None:
        return object
    spec = importlib.util.spec_from_file_location("kombu_common", TESTS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.fixture
def connection(broker: Broker) -> kombu.Connection:
    return kombu.Connection(f"sharecore://{broker.bootstrap}")


@pytest.fixture
def invalid_connection() -> kombu.Connection:
    return kombu.Connection(f"sharecore://127.0.0.1:{free_port()}")


class TestBasics(theirs("BasicFunctionality")):  # type: ignore[misc]
    """Connecting, publishing, consuming, simple queues."""


class TestExchanges(theirs("BaseExchangeTypes")):  # type: ignore[misc]
    """Direct and topic exchanges."""

    test_fanout = None


class TestMessages(theirs("BaseMessage")):  # type: ignore[misc]
    """Acknowledging, rejecting and requeueing."""


class TestFailover(theirs("BaseFailover")):  # type: ignore[misc]
    """The first of several addresses that answers."""

    @pytest.fixture
    def failover_connection(self, broker: Broker) -> kombu.Connection:
        return kombu.Connection(f"sharecore://127.0.0.1:{free_port()};sharecore://{broker.bootstrap}")


def test_fanout_is_refused_with_what_to_do(connection: kombu.Connection) -> None:
    with connection as made, pytest.raises(ChannelError, match="has no fanout exchanges"):
        kombu.Exchange("everyone", type="fanout")(made.channel()).declare()
    assert not connection.supports_exchange_type("fanout")


def test_what_is_not_acknowledged_comes_again_and_what_is_rejected_does_not(
    connection: kombu.Connection,
) -> None:
    with connection as made:
        queue = made.SimpleQueue("jobs")
        queue.put("one")
        message = queue.get(timeout=30)
        assert message.delivery_info["sharecore_delivery_count"] == 1
        message.requeue()
        message = queue.get(timeout=30)
        assert message.delivery_info["sharecore_delivery_count"] == 2
        assert message.delivery_info["redelivered"]
        queue.close()
    with connection.clone() as made:
        queue = made.SimpleQueue("jobs")
        message = queue.get(timeout=30)
        assert message.delivery_info["sharecore_delivery_count"] == 3
        message.reject()
        with pytest.raises(queue.Empty):
            queue.get(timeout=2)
        queue.close()


def test_a_prefetch_count_is_kept(connection: kombu.Connection) -> None:
    got: list[Any] = []
    with connection as made, made.channel() as channel:
        queue = kombu.Queue("jobs")
        producer = kombu.Producer(channel)
        for number in range(10):
            producer.publish(number, routing_key="jobs", declare=[queue])
        with kombu.Consumer(channel, [queue], on_message=got.append, prefetch_count=3):
            while len(got) < 3:
                made.drain_events(timeout=30)
            with pytest.raises(socket.timeout):
                made.drain_events(timeout=3)
            assert len(got) == 3
            got.pop().ack()
            made.drain_events(timeout=30)
            assert len(got) == 3


def test_size_and_purge(connection: kombu.Connection, tmp_path: Path) -> None:
    with connection as made, made.channel() as channel:
        queue = kombu.Queue("jobs")(channel)
        queue.declare()
        for number in range(3):
            kombu.Producer(channel).publish(number, routing_key="jobs")
        message = queue.get()
        while message is None:
            message = queue.get()
        message.ack()
    with connection.clone() as made, made.channel() as channel:
        queue = kombu.Queue("jobs")(channel)
        assert queue.queue_declare().message_count == 2
        assert queue.purge() == 2
        assert queue.get() is None
        with pytest.raises(ChannelError, match="was not purged"):
            queue.purge()
        with pytest.raises(ChannelError, match="NOT_FOUND"):
            kombu.Queue("nothing")(channel).queue_declare(passive=True)


@pytest.mark.skipif(KIND == "apache", reason="Apache Kafka has no delivery times")
def test_an_eta_is_a_delivery_time_in_a_group_that_has_them(broker: Broker) -> None:
    configure_group(broker.bootstrap, "timed", share_deliver_at_header="deliver-at")
    due = datetime.now(UTC) + timedelta(seconds=3)
    address = f"sharecore://{broker.bootstrap}"
    with kombu.Connection(address, transport_options={"group_id": "timed"}) as made:
        queue = made.SimpleQueue("timed")
        etas = {"later": due.isoformat(), "no zone": "2999-01-01T00:00:00", "no time": "soon", "none": None}
        for name, eta in etas.items():
            queue.put(name, headers={"eta": eta})
        found: list[str] = []
        while len(found) < len(etas):
            message = queue.get(timeout=30)
            message.ack()
            found.append(message.payload)
        assert (sorted(found), found[-1]) == (sorted(etas), "later")
        assert datetime.now(UTC) >= due
        queue.close()
