"""Dead letters of one group: whoever was told that a record is rejected finds a letter for it (KIP-1191)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING

from sharecore import _core

if TYPE_CHECKING:
    from tests.simulation.auditor import Auditor
    from tests.simulation.tier.world import TierWorld
    from tests.simulation.world import World

FEATURE = "letters"
GROUP = "group-0"
TOPIC = "dlq.letters"
BROKER_SETTINGS = {"errors.deadletterqueue.auto.create.topics.enable": "true"}
GROUP_SETTINGS = {
    "errors.deadletterqueue.topic.name": TOPIC,
    "errors.deadletterqueue.copy.record.enable": "true",
    # a failure may last longer than dead letters are retried
    "errors.deadletterqueue.required": "true",
}
_WITHIN_S = 60.0
_NAMES = ("group", "topic", "partition", "offset")

Source = tuple[str, int, int]
"""Topic, partition and offset of a record."""
Letters = dict[Source, bytes | None]
"""The values that letters have, by the records that they are about."""
Look = Callable[[], Awaitable[Letters]]


def read(records: bytes, first: int, last: int) -> Letters:
    """The letters in batches: which records they are about, and the values that they have."""
    rows, _, _, unreadable = _core.decode_records(records, [(first, last, 1)], TOPIC, 0, None)
    assert not unreadable, unreadable
    found: Letters = {}
    for row in rows:
        told = {name: value or b"" for name, value in row.headers}
        group, topic, partition, offset = (told[f"__dlq.errors.{name}"].decode() for name in _NAMES)
        assert group == GROUP, told
        found[topic, int(partition), int(offset)] = row.value
    return found


async def ended(world: World | TierWorld, topics: Collection[str], look: Look) -> None:
    """Waits until records that nobody could process have their letters, and holds all against the auditor.

    Args:
        topics: those whose records have letters.
        look: reads the letters that there are.
    """
    until, left = world.loop.now + _WITHIN_S, ["?"]
    there: Letters = {}
    while left and world.loop.now < until:
        await asyncio.sleep(1.0)
        there = await look()
        left = missing(world.auditor, topics, there)
    for each in left[:3]:
        world.story.broken("a letter is missing", each)
    for each in wrong(world.auditor, topics, there)[:3]:
        world.story.broken("a wrong letter", each)


def missing(auditor: Auditor, topics: Collection[str], there: Collection[Source]) -> list[str]:
    """Records that should have a letter and have none."""
    found = []
    for source, why in _due(auditor, topics).items():
        if source not in there:
            found.append("{}-{} offset {} {}".format(*source, why))
    return found


def wrong(auditor: Auditor, topics: Collection[str], there: Mapping[Source, bytes | None]) -> list[str]:
    """Letters of records that were accepted, which somebody was told, or that hold something else."""
    accepted = set()
    for (group, topic_id, partition), share in auditor.shares.items():
        if group == GROUP and not share.unsure:
            name = auditor.ledger.names.get(topic_id, "")
            accepted |= {(name, partition, offset) for offset in share.accepted()}
    if auditor.losses:
        # finished records may have been redelivered, and offsets may have been reused
        return []
    found = ["{}-{} offset {} was accepted".format(*source) for source in there if source in accepted]
    for (name, partition, offset), value in there.items():
        log = auditor.ledger.log(auditor.ledger.ids[name], partition)
        if (
            name in topics
            and offset in log.answered
            and offset >= log.gone_below
            and value != log.values[offset]
        ):
            found.append(f"{name}-{partition} offset {offset} holds {value!r}, not {log.values[offset]!r}")
    return found


def _due(auditor: Auditor, topics: Collection[str]) -> dict[Source, str]:
    due = {}
    for (group, topic_id, partition), share in auditor.shares.items():
        name = auditor.ledger.names.get(topic_id, "")
        if group != GROUP or share.unsure or name not in topics or auditor.ledger.ids[name] != topic_id:
            continue
        log = auditor.ledger.log(topic_id, partition)
        for offset, why in share.given_up():
            # transaction markers have no dead letters, and deleted records need none
            if offset in log.answered and offset >= log.gone_below:
                due[name, partition, offset] = why
    return due
