"""What a worker shows of itself over HTTP: whether it is alive and ready, and its metrics."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.harness.aio import in_loop
from tests.harness.broker import Broker, free_port
from tests.harness.clients import configure_group, produce
from tests.interop.conftest import BrokerMaker

from sharecore.client import Record, Reject, Release, Retry, Worker, register_worker_metrics, worker
from sharecore.errors import ConfigError

PATIENCE = 30.0


def get(work: Worker, path: str) -> tuple[int, str]:
    assert work.health_address is not None
    url = f"http://127.0.0.1:{work.health_address[1]}{path}"
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def found(work: Worker, path: str) -> tuple[int, dict[str, Any]]:
    status, body = await asyncio.to_thread(get, work, path)
    return status, json.loads(body)


async def until(work: Worker, holds: Callable[[int, dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait until what /readyz answers is as expected, and return it."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if work.health_address is not None:
                status, body = await found(work, "/readyz")
                if holds(status, body):
                    return body
            await asyncio.sleep(0.05)


def is_ready(status: int, body: dict[str, Any]) -> bool:
    return status == 200 and body["ready"]


def is_not_ready_for(*words: str) -> Callable[[int, dict[str, Any]], bool]:
    def holds(status: int, body: dict[str, Any]) -> bool:
        return status == 503 and not body["ready"] and any(word in body["reason"] for word in words)

    return holds


@asynccontextmanager
async def running(work: Worker, bootstrap: str, group: str) -> AsyncIterator[None]:
    task = asyncio.create_task(work.run(bootstrap_servers=bootstrap, group_id=group))
    try:
        yield
    finally:
        work.stop()
        await task


def samples(work: Worker, text: str, name: str) -> dict[str, float]:
    """Return the values of a worker's samples of this name, by their other label, or none."""
    return {
        "".join(value for label, value in sample.labels.items() if label != "worker"): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and sample.labels["worker"] == work.name
    }


@in_loop
async def test_a_worker_is_ready_as_long_as_the_broker_answers(new_broker: BrokerMaker) -> None:
    own_broker = new_broker()
    own_broker.start()

    @worker("jobs", create_topics=True, health_port=0)
    async def handle(_: Record) -> None: ...

    assert not handle.health().ready
    assert handle.health_address is None
    async with running(handle, own_broker.bootstrap, "workers"):
        good = await until(handle, is_ready)
        assert (good["live"], good["reason"], good["records_in_hand"]) == (True, None, 0)
        assert good["last_poll_seconds"] is not None
        assert handle.health().ready
        own_broker.kill()
        bad = await until(handle, is_not_ready_for("the coordinator of group workers", "heartbeats"))
        assert bad["live"]
        assert (await found(handle, "/livez"))[0] == (await found(handle, "/healthz"))[0] == 200
        own_broker.start()
        await until(handle, is_ready)
        handle.stop()
    assert handle.health_address is None


@in_loop
async def test_a_worker_that_has_reached_no_broker_says_so() -> None:
    port = free_port()

    @worker("jobs", health_port=0)
    async def handle(_: Record) -> None: ...

    async with running(handle, f"127.0.0.1:{port}", "workers"):
        body = await until(handle, is_not_ready_for("no response from"))
        assert f"127.0.0.1:{port}" in body["reason"]
        assert body["last_poll_seconds"] is None


@in_loop
async def test_a_blocked_loop_is_seen_while_it_is_blocked(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"block"])
    release = threading.Event()
    seen: list[tuple[int, dict[str, Any]]] = []

    @worker(topic, health_port=0)
    async def handle(_: Record) -> None:
        release.wait(PATIENCE)

    def look() -> None:
        """Ask from a thread, as the loop of this test is the one that is blocked."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            status, body = get(handle, "/readyz") if handle.health_address is not None else (0, "{}")
            if status == 503 and "blocked" in body:
                seen.append((get(handle, "/livez")[0], json.loads(body)))
                break
            time.sleep(0.05)
        release.set()

    thread = threading.Thread(target=look)
    thread.start()
    async with running(handle, broker.bootstrap, group):
        await asyncio.to_thread(thread.join)
        await until(handle, is_ready)
    (live, body), *_ = seen
    assert live == 200
    assert body["loop_lag_seconds"] > 1
    assert (body["running"], body["records_in_hand"]) == (1, 1)


@in_loop
async def test_the_metrics_count_what_the_worker_does(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"good", b"once", b"reject", b"release", b"never", b"hold"])
    configure_group(broker.bootstrap, group, share_delivery_count_limit=2)
    failed: set[str] = set()
    held, release = asyncio.Event(), asyncio.Event()

    @worker(topic, concurrency=8, retry=Retry(first_seconds=0.01, attempts=2), health_port=0)
    async def handle(record: Record) -> None:
        match record.value:
            case b"reject":
                raise Reject("not wanted")
            case b"release" if record.delivery_count == 1:
                raise Release
            case b"never":
                raise ValueError("never")
            case b"once" if not failed:
                failed.add("once")
                raise ValueError("once")
            case b"hold":
                held.set()
                await release.wait()

    async with running(handle, broker.bootstrap, group), asyncio.timeout(PATIENCE):
        await held.wait()
        while handle.counts["given_up"] < 1 or handle.counts["accepted"] < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        status, text = await asyncio.to_thread(get, handle, "/metrics")
        assert status == 200
        values = {
            name: samples(handle, text, f"sharecore_worker_{name}_total")[""]
            for name in ("handled", "released", "rejected", "given_up", "lost", "failed", "retried")
        }
        # `never` is tried twice in each of two deliveries, and archived at the limit
        assert values == {
            "handled": 3,
            "released": 2,
            "rejected": 1,
            "given_up": 1,
            "lost": 0,
            "failed": 5,
            "retried": 3,
        }
        calls = samples(handle, text, "sharecore_worker_handling_seconds_count")[""]
        assert calls == 10
        buckets = samples(handle, text, "sharecore_worker_handling_seconds_bucket")
        assert buckets["+Inf"] == calls
        assert sorted(buckets.values()) == list(buckets.values())
        assert samples(handle, text, "sharecore_worker_ready") == {"": 1}
        assert samples(handle, text, "sharecore_worker_records_in_hand") == {
            "running": 1,
            "queued": 0,
            "retrying": 0,
        }
        # other metrics registered in the process are included
        assert "python_info" in text
        own = register_worker_metrics(CollectorRegistry())
        assert register_worker_metrics(own) is own
        assert samples(handle, generate_latest(own).decode(), "sharecore_worker_handled_total") == {"": 3}
        release.set()


@in_loop
async def test_a_port_that_is_taken_is_one_sentence(broker: Broker, topic: str, group: str) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]

        @worker(topic, health_port=port, health_host="127.0.0.1")
        async def handle(_: Record) -> None: ...

        with pytest.raises(ConfigError, match=f"port {port}: Address already in use; choose another"):
            await handle.run(bootstrap_servers=broker.bootstrap, group_id=group)
