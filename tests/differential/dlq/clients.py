"""What clients do that others use: Java's KafkaShareConsumer, confluent-kafka, ours, and our commands."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from typing import Any

from confluent_kafka import AcknowledgeType
from tests.differential.dlq.member import ACCEPT, REJECT, RELEASE
from tests.differential.dlq.observe import records_of
from tests.differential.dlq.registry import slow
from tests.differential.dlq.world import Seen, World
from tests.harness import java
from tests.harness.broker import KAFKA_LIBS, SHARECORE
from tests.harness.clients import REJECT as REJECTED
from tests.harness.clients import RELEASE as RELEASED
from tests.harness.clients import settle, share_consumer, take

from sharecore.client import ShareConsumer

_SECONDS_MAX = 30.0


def _java(world: World, how: str, deliveries: int) -> None:
    # Java's 4.4.0 client with the console tools of 4.3.1
    command = java.command(
        f"{java.TOOLS}.consumer.ConsoleShareConsumer",
        *("--bootstrap-server", world.side.broker.bootstrap, "--topic", world.source, "--group", world.group),
        *(f"--{how}", "--max-messages", str(deliveries), "--timeout-ms", "20000"),
        libs=java.CLIENT_LIBS,
        classes=KAFKA_LIBS / "*",
    )
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert f"Processed a total of {deliveries} messages" in shown.stdout + shown.stderr, shown


async def _ours(world: World, kind: int, deliveries: int) -> list[tuple[int, int]]:
    seen: list[tuple[int, int]] = []
    settings = {
        "bootstrap.servers": world.side.broker.bootstrap,
        "group.id": world.group,
        "share.acknowledgement.mode": "explicit",
    }
    async with ShareConsumer(settings) as consumer:
        consumer.subscribe([world.source])
        until = time.monotonic() + _SECONDS_MAX
        while len(seen) < deliveries and time.monotonic() < until:
            for record in await consumer.poll(timeout=0.5):
                {REJECT: consumer.reject, RELEASE: consumer.release, ACCEPT: consumer.accept}[kind](record)
                seen.append((record.offset, record.delivery_count))
            await consumer.commit_sync()
    return seen


@slow
def java_rejects(world: World) -> Seen:
    world.prepare(copy=True)
    _java(world, "reject", 10)
    return world.outcome(range(10), 10, lag=0)


@slow
def java_gives_back_to_the_limit(world: World) -> Seen:
    world.prepare(copy=True, share_delivery_count_limit="2")
    _java(world, "release", 20)
    return world.outcome(range(10), 10, lag=0)


def _refused(world: World, leases: int, kind: AcknowledgeType) -> Seen:
    """Each of the ten records, as often as it comes."""
    with share_consumer(world.side.broker.bootstrap, world.group, [world.source]) as consumer:
        seen = settle(consumer, leases, lambda _: kind)
    leased = [(message.offset(), message.delivery_count()) for message in seen]
    return {"leased": leased} | world.outcome(range(10), 10, lag=0)


@slow
def confluent_rejects(world: World) -> Seen:
    world.prepare(copy=True, headers=[("own", b"x")])
    return _refused(world, 10, REJECTED)


@slow
def confluent_gives_back_to_the_limit(world: World) -> Seen:
    world.prepare(copy=True, share_delivery_count_limit="2")
    return _refused(world, 20, RELEASED)


@slow
def confluent_closes_at_the_limit(world: World) -> Seen:
    world.prepare(copy=True, share_delivery_count_limit="2")
    for _ in range(2):
        with share_consumer(world.side.broker.bootstrap, world.group, [world.source]) as consumer:
            take(consumer, 10)
    return world.outcome(range(10), 10, lag=0)


@slow
def confluent_is_too_slow(world: World) -> Seen:
    world.prepare(copy=True, share_record_lock_duration_ms="1000", share_delivery_count_limit="2")
    for _ in range(2):
        with share_consumer(world.side.broker.bootstrap, world.group, [world.source]) as consumer:
            take(consumer, 10)
            time.sleep(1.5)
    return world.outcome(range(10), 10, lag=0)


@slow
def ours_rejects(world: World) -> Seen:
    world.prepare(copy=True)
    leased = asyncio.run(_ours(world, REJECT, 10))
    return {"leased": leased} | world.outcome(range(10), 10, lag=0)


@slow
def ours_gives_back_to_the_limit(world: World) -> Seen:
    world.prepare(copy=True, share_delivery_count_limit="2")
    leased = asyncio.run(_ours(world, RELEASE, 20))
    return {"leased": leased} | world.outcome(range(10), 10, lag=0)


def _run(world: World, *arguments: str) -> str:
    shown = subprocess.run(
        [SHARECORE, "dlq", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"SHARECORE_BOOTSTRAP_SERVER": world.side.broker.bootstrap},
    )
    return f"{shown.returncode} {shown.stdout}{shown.stderr}"


def _redriven(world: World, *, copy: bool) -> Seen:
    own = [] if copy else [("own", b"x")]  # Apache's copies have none
    member = world.begin(6, copy=copy, headers=own, share_delivery_count_limit="2")
    member.take(6)
    codes = [member.acknowledge((0, 2, REJECT), (3, 5, RELEASE))]
    member.take(3)
    codes.append(member.acknowledge((3, 5, RELEASE)))
    world.outcome(range(6), 6, lag=0)
    shown = _run(world, "show", world.dlq, "--json").removeprefix("0 ").splitlines()
    lines: list[dict[str, Any]] = [json.loads(line) for line in shown]
    for line in lines:
        del line["time"]
    said = [
        _run(world, "redrive", world.dlq, "--dry-run"),
        _run(world, "redrive", world.dlq, "--cause", "exhausted"),
        _run(world, "redrive", world.dlq, "--cause", "rejected", "--rate", "100"),
    ]
    back = [(each.key, each.value, list(each.headers)) for each in records_of(world.side, world.source, 0)]
    leased = member.take(6)
    codes.append(member.acknowledge((6, 11, ACCEPT)))
    return {"answers": codes, "shown": lines, "said": said, "back": back, "leased": leased}


@slow
def redriven_with_copies(world: World) -> Seen:
    return _redriven(world, copy=True)


@slow
def redriven_without(world: World) -> Seen:
    return _redriven(world, copy=False)
