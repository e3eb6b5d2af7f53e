"""Share state through Apache Kafka's share coordinator and ours: answers and bytes of records."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, cast
from uuid import UUID

from tests.differential.oracle import JAVA_OPTIONS, ORACLE, OracleError, missing_tools
from tests.unit.coordinator_log.world import World
from tests.unit.partition.logs import Appended, Ticket

from sharecore.coordinator_log.runtime import CoordinatorRuntime
from sharecore.coordinator_log.topic_log import TopicLog
from sharecore.errors import KafkaError
from sharecore.sharestate.coordinator import ReadState, ShareCoordinator, StateSummary
from sharecore.sharestate.keys import SharePartitionKey, topic_id_text
from sharecore.sharestate.records import (
    StateBatch,
    pack_batches,
    unpack_batches,
)

Operation = dict[str, Any]
Result = dict[str, Any]
Records = Sequence[Sequence[str | None]]
TOPICS = [UUID(int=0x1234 << 64 | number) for number in range(1, 3)]
EPISODE = 2500
"""Operations after which both begin with an empty topic again."""


class _Topic:
    """A partition of the state topic that keeps what was appended last."""

    topic, index = "__share_group_state", 0
    start_offset = 0

    def __init__(self) -> None:
        self.end_offset = 0
        self.fresh: list[tuple[bytes, bytes | None]] = []

    @property
    def high_watermark(self) -> int:
        return self.end_offset

    def append_local(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        *,
        now_ms: int,
        producer: object = None,
        lingers: bool = False,
    ) -> Appended:
        base = self.end_offset
        self.end_offset += len(records)
        self.fresh += records
        ticket = Ticket()
        ticket.settle()
        return Appended(base, self.end_offset - 1, ticket)

    def hurry(self) -> None: ...

    def scan(self, offset: int) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
        return iter(())

    def delete_records(self, before_offset: int) -> None:
        """Pruning is not compared: Apache's is asked for by its runtime."""


class Ours:
    """Our coordinator on one partition of the topic."""

    def __init__(self, updates_per_snapshot: int) -> None:
        self._world = World()
        self._topic = _Topic()
        self._coordinator = ShareCoordinator(
            CoordinatorRuntime(
                lambda: [cast(TopicLog, self._topic)], self._world, self._world, compacted=False
            ),
            updates_per_snapshot=updates_per_snapshot,
        )

    def run(self, operation: Operation) -> Result:
        """Return the answer, and the records that were written."""
        self._world.ms = operation["now"]
        try:
            answer = self._answer(operation)
        except KafkaError as error:
            answer = [int(error.code)]
        self._world.run()
        records, self._topic.fresh = self._topic.fresh, []
        return {
            "answer": answer,
            "records": [[key.hex(), None if value is None else value.hex()] for key, value in records],
        }

    def _answer(self, op: Operation) -> list[Any]:
        key = SharePartitionKey(op["group"], op["topic_id"], op["partition"])
        ends: list[KafkaError | None] = []
        match op["op"]:
            case "read":
                loaded: list[ReadState | KafkaError] = []
                self._coordinator.read(key, op["leader_epoch"], loaded.append)
                self._world.run()
                (state,) = loaded
                assert isinstance(state, ReadState)
                batches = [list(batch) for batch in unpack_batches(state.batches)]
                return [0, state.state_epoch, state.start_offset, batches]
            case "summary":
                found: list[StateSummary | KafkaError] = []
                self._coordinator.summary(key, found.append)
                assert isinstance(found[0], StateSummary)
                return [0, *found[0]]
            case "initialize":
                self._coordinator.initialize(key, op["state_epoch"], op["start"], ends.append)
            case "delete":
                self._coordinator.delete(key, ends.append)
            case "write":
                self._coordinator.write(
                    key,
                    op["state_epoch"],
                    op["leader_epoch"],
                    op["start"],
                    op["complete"],
                    pack_batches(op["batches"]),
                    ends.append,
                )
        self._world.run()
        assert ends == [None]
        return [0]


def operations(seed: int, count: int) -> Iterator[Operation]:
    """Operations on a few share partitions, most of them writes that are allowed."""
    dice = Random(seed)
    now = 1_700_000_000_000
    states: dict[tuple[str, UUID, int], list[int]] = {}
    for _ in range(count):
        now += dice.choice([0, 1, 7, 100_000])
        place = (dice.choice(["g", "grüp"]), dice.choice(TOPICS), dice.randrange(3))
        head = {"now": now, "group": place[0], "topic_id": place[1], "topic": topic_id_text(place[1])}
        head["partition"] = place[2]
        state = states.get(place)
        chance = dice.random()
        if (state is None and chance < 0.9) or chance < 0.01:
            epoch = (state[0] if state else 0) + dice.choice([-1, 0, 1, 1])
            start = dice.choice([-1, 0, dice.randrange(100)])
            yield head | {"op": "initialize", "state_epoch": epoch, "start": start}
            if state is None or epoch >= state[0]:
                states[place] = [epoch, 0, max(start, 0)]
        elif chance < 0.015:
            yield head | {"op": "delete"}
            states.pop(place, None)
        elif chance < 0.04:
            yield head | {"op": "summary"}
        elif chance < 0.09:
            epoch = (state[1] if state else 0) + dice.choice([-1, 0, 0, 1])
            yield head | {"op": "read", "leader_epoch": epoch}
            if state is not None:
                state[1] = max(epoch, state[1])
        else:
            yield head | _write(dice, state or [0, 0, 0])


def _write(dice: Random, state: list[int]) -> Operation:
    state_epoch, leader_epoch, start = state
    if dice.random() < 0.3:
        start = state[2] = start + dice.randrange(40)
    batches: list[StateBatch] = []
    offset = start + dice.choice([0, 0, 3, -5])
    for _ in range(dice.choice([0, 1, 1, 1, 2, 5, 30])):
        first = max(offset, 0)
        last = first + dice.choice([0, 0, 1, 9, 100])
        batches.append((first, last, dice.choice([0, 0, 2, 4]), dice.randrange(1, 6)))
        offset = last + dice.choice([1, 1, 2, 30, -3 if dice.random() < 0.1 else 1])
    return {
        "op": "write",
        "state_epoch": state_epoch + dice.choice([0] * 30 + [-1, 1]),
        "leader_epoch": leader_epoch + dice.choice([0] * 30 + [-1, 1]),
        "start": start if dice.random() < 0.9 else -1,
        "complete": dice.choice([-1, 0, len(batches), 3000]),
        "batches": batches,
    }


def apache(episodes: Sequence[tuple[int, Sequence[Operation]]], directory: Path) -> list[Result]:
    """What Apache's shard answers and writes.

    Args:
        episodes: updates a snapshot, and operations on an empty topic.

    Raises:
        OracleError: Java or Maven is missing, or the oracle died.
    """
    if missing := missing_tools():
        raise OracleError(f"the comparison with Apache needs {' and '.join(missing)} (JDK 17, Maven)")
    file = directory / "share-state.jsonl"
    with file.open("w") as out:
        for updates, some in episodes:
            print(json.dumps({"op": "begin", "updates_per_snapshot": updates}), file=out)
            for operation in some:
                print(json.dumps({**operation, "topic_id": None}), file=out)
    done = subprocess.run(
        [str(ORACLE / "oracle.sh"), "state", str(file)],
        capture_output=True,
        text=True,
        env={"JAVA_OPTS": JAVA_OPTIONS, **os.environ},
    )
    if done.returncode:
        raise OracleError(f"the oracle ended: {done.stderr.strip()[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def differences(seed: int, count: int, directory: Path) -> tuple[dict[str, int], list[str]]:
    """Compare `count` operations.

    Returns:
        how many operations and records, and up to five differences with the commands that show them again.
    """
    episodes = []
    for number in range(0, count, EPISODE):
        updates = Random(seed + number).choice([0, 1, 5, 50, 500])
        episodes.append((updates, list(operations(seed + number, min(EPISODE, count - number)))))
    theirs = iter(apache(episodes, directory))
    counted = {"operations": 0, "records": 0}
    found: list[str] = []
    for updates, some in episodes:
        ours = Ours(updates)
        for operation in some:
            mine, their = ours.run(operation), next(theirs)
            counted["operations"] += 1
            counted["records"] += len(mine["records"])
            if mine != their:
                shown = {**operation, "topic_id": None}
                found.append(
                    f"{json.dumps(shown)}\n  apache {json.dumps(their)}\n  ours   {json.dumps(mine)}"
                )
                if len(found) == 5:
                    return counted, found
                break
        else:
            continue
        # differences after the first in an episode only follow from it
        for _ in range(len(some) - 1 - some.index(operation)):
            next(theirs)
    return counted, found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0 without a difference, 1 with one, 2 when it could not run."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.share_state", description=__doc__)
    parser.add_argument("--operations", type=int, default=120_000, metavar="N", help="default: 120000")
    parser.add_argument("--seed", type=int, metavar="S", help="of the first episode; default: a fresh one")
    arguments = parser.parse_args(argv)
    seed = secrets.randbits(40) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as directory:
            counted, found = differences(seed, arguments.operations, Path(directory))
    except OracleError as error:
        print(error, file=sys.stderr)
        return 2
    for text in found:
        print(f"DIFFERENCE: {text}")
    print(
        f"{counted['operations']} operations gave {counted['records']} records, {len(found)} differences; "
        f"{time.monotonic() - began:.0f} s"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
