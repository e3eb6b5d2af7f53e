"""The broker that an application's tests start."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.harness.aio import in_loop
from tests.harness.broker import answers
from tests.harness.until import until

from sharecore.admin import Admin
from sharecore.client import ShareConsumer
from sharecore.errors import ErrorCode, KafkaError
from sharecore.testing import EphemeralBroker

pytestmark = pytest.mark.process

MINUTE = 60.0


def write(broker: EphemeralBroker, topic: str, *values: bytes) -> None:
    producer = Producer(broker.config)
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(MINUTE) == 0
    producer.close()


def port_of(broker: EphemeralBroker) -> int:
    return int(broker.bootstrap_server.rpartition(":")[2])


@in_loop
async def test_a_lock_expires_when_the_test_says_so() -> None:
    async with EphemeralBroker() as broker:
        await broker.create_topic("jobs")
        await broker.create_group("workers")
        write(broker, "jobs", b"job")
        explicit = {**broker.config, "group.id": "workers", "share.acknowledgement.mode": "explicit"}
        async with ShareConsumer(explicit) as stuck, ShareConsumer(explicit) as other:
            stuck.subscribe(["jobs"])
            (first,) = await stuck.poll(timeout=MINUTE)
            other.subscribe(["jobs"])
            await broker.advance(20)
            assert not await other.poll(timeout=0.3)
            await broker.advance(10.1)
            (again,) = await other.poll(timeout=MINUTE)
            assert (first.delivery_count, again.delivery_count, again.offset) == (1, 2, first.offset)
            other.accept(again)


def test_it_works_without_an_event_loop_and_leaves_nothing_behind() -> None:
    broker = EphemeralBroker({"num.partitions": "3"})
    with broker:
        broker.create_topic_blocking("jobs", partitions=2)
        with pytest.raises(KafkaError) as refused:
            broker.create_topic_blocking("jobs")
        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        broker.create_group_blocking("workers", {"share.record.lock.duration.ms": "1000"})
        broker.advance_blocking(5)
        port, directory = port_of(broker), broker.data_dir
        assert answers(port)
        assert directory.exists()
        assert "ERROR" not in broker.log()
    assert not answers(port)
    assert not directory.parent.exists()
    with pytest.raises(RuntimeError, match="does not run"):
        _ = broker.bootstrap_server
    with broker:
        assert answers(port_of(broker)), "it starts again, empty"


@in_loop
async def test_group_settings_are_those_that_were_asked_for() -> None:
    async with EphemeralBroker() as broker, Admin(broker.config) as admin:
        await broker.create_group("workers", {"share.delivery.count.limit": "9"})
        settings = await admin.configs("workers")
        assert settings["share.auto.offset.reset"].value == "earliest"
        assert settings["share.delivery.count.limit"].value == "9"


def test_a_setting_that_cannot_stand_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"exit status 2[\s\S]*num\.partitions"):
        EphemeralBroker({"num.partitions": "none"}).start()


def test_only_who_has_the_secret_moves_time() -> None:
    with EphemeralBroker() as broker:
        foreign = broker.control_url.rpartition("/")[0]
        for url, method, status in (
            (f"{foreign}/guessed/advance?seconds=1", "POST", 403),
            (f"{broker.control_url}/advance?seconds=1", "GET", 405),
            (f"{broker.control_url}/advance?seconds=nan", "POST", 400),
            (f"{broker.control_url}/advance?seconds=-1", "POST", 400),
            (f"{broker.control_url}/advance?seconds=1e300", "POST", 400),
            (f"{broker.control_url}/advance", "POST", 400),
            (f"{broker.control_url}/retreat", "POST", 404),
            (foreign, "POST", 403),
        ):
            request = urllib.request.Request(url, method=method)
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=MINUTE)
            assert refused.value.code == status, url
            refused.value.close()
        with pytest.raises(ValueError, match="back"):
            broker.advance_blocking(-1)


def test_the_broker_ends_when_its_starter_is_killed() -> None:
    script = (
        "import time; from sharecore.testing import EphemeralBroker\n"
        "broker = EphemeralBroker().start(); print(broker.bootstrap_server, broker.data_dir, flush=True)\n"
        "time.sleep(600)"
    )
    starter = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    address, directory = starter.stdout.readline().split()
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    until(lambda: not answers(int(address.rpartition(":")[2])) and not Path(directory).parent.exists())


def test_what_a_killed_broker_left_is_deleted_at_the_next_start() -> None:
    with EphemeralBroker() as kept, EphemeralBroker() as killed:
        left, port = killed.data_dir, port_of(killed)
        os.kill(killed.pid, signal.SIGKILL)
        until(lambda: not answers(port))
        assert left.exists()
        with EphemeralBroker():
            assert not left.exists()
            assert kept.data_dir.exists()


def test_a_broker_that_has_ended_is_an_error_with_its_log() -> None:
    with EphemeralBroker() as broker:
        os.kill(broker.pid, signal.SIGKILL)
        until(lambda: not answers(port_of(broker)))
        with pytest.raises(RuntimeError, match=r"the broker does not answer .*the end of its log:"):
            broker.advance_blocking(30)


@in_loop
async def test_a_start_that_is_cancelled_leaves_no_broker() -> None:
    broker = EphemeralBroker()
    starting = asyncio.ensure_future(broker.__aenter__())
    await asyncio.to_thread(until, lambda: broker._process is not None)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert broker._process is None
