"""What is measured of nodes beyond what is measured of any broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

from benches.broker.steps import STEPS, Figures, Measured, Run, latency, paced
from confluent_kafka import Consumer
from tests.harness.broker import ROOT
from tests.harness.clients import create_topic

MEMBERS = 3
PLAIN = ("producer", "consumer", "latency")
"""Steps that a cluster without share groups has, too."""


def plain_latency(run: Run[Measured]) -> Figures:
    """From `produce` to `poll` of an ordinary consumer: what the cluster itself takes."""
    topic = f"{run.topic}-latency"
    create_topic(run.broker.bootstrap, topic)
    settings = {"bootstrap.servers": run.broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings | {"log_level": 0})
    consumer.subscribe([topic])

    def take() -> Iterator[bytes]:
        for message in consumer.consume(500, 0.001) or consumer.consume(1, 1.0):
            if message.error() is None:
                yield message.value() or b""

    try:
        while not consumer.assignment():
            consumer.poll(0.1)
        return paced(run, topic, take)
    finally:
        consumer.close()


def share_of_many(run: Run[Measured], count: int = MEMBERS, *settings: str) -> Figures:
    """Several members, each a process of its own; from the first record of any to the last of all.

    Args:
        count: how many.
        settings: of all of them, `NAME=VALUE`.
    """
    command = [
        sys.executable,
        "-m",
        "benches.tier.member",
        run.broker.bootstrap,
        run.group("many"),
        run.topic,
        *settings,
    ]
    members = [
        subprocess.Popen(
            command, cwd=ROOT, env=os.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(count)
    ]
    # each says how many it has, as it gets them; what the others have it does not know
    counts, first, last = [0] * count, 0, 0
    try:
        while sum(counts) < run.records:
            for place, member in enumerate(members):
                assert member.stdin is not None
                assert member.stdout is not None
                member.stdin.write("?\n")
                member.stdin.flush()
                told = member.stdout.readline().split()
                if not told:
                    raise RuntimeError(f"a member of {run.name} has ended")
                counts[place] = int(told[0])
                if counts[place]:
                    first = min(first or int(told[1]), int(told[1]))
                    last = max(last, int(told[2]))
    finally:
        for member in members:
            member.kill()
            member.wait()
    return {"records/s": sum(counts) / ((last - first) / 1e9)}


def steps_of(shares: bool) -> dict[str, tuple[str, Callable[[Run[Measured]], Figures]]]:
    """Return the steps of a subject, by name.

    Args:
        shares: whether it has share groups.
    """
    title, _ = STEPS["latency"]
    if not shares:
        kept = {name: STEPS[name] for name in PLAIN}
        return kept | {"latency": (title, plain_latency)}
    many = (f"confluent-kafka, implicit, {MEMBERS} members", share_of_many)
    return {**STEPS, "share-many": many, "latency": (title, latency)}
