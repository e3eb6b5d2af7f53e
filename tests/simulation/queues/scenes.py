"""The end of a simulation: what queue settings promise to who waits, a scene each, with nobody else there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.harness.batches import keyed_batch
from tests.simulation import letters
from tests.simulation.actors.admins import configure
from tests.simulation.actors.members import ACCEPT, REJECT, RELEASE, Member
from tests.simulation.actors.producers import code_of, produced
from tests.simulation.queues.settings import DELIVER_AT, FEATURES, PLAIN, calm
from tests.simulation.queues.windows import SMALLER
from tests.simulation.wire import Wire

from sharecore.protocol import ApiKey

if TYPE_CHECKING:
    from tests.simulation.world import World

_SOON_S = 2.0
_WAIT_MS = 20_000
_JITTER = 0.2
_HALF_OPEN, _AT_ONCE = 10, 5
_LETTERS_S = 60.0


@dataclass
class Stage:
    """Two members of a group, nothing of which is left to deliver, and what to do with them."""

    world: World
    wire: Wire
    group: str
    one: Member
    other: Member
    settings: dict[str, object] = field(default_factory=dict)

    async def set(self, **settings: object) -> None:
        """Sets the group's queue settings, and no others."""
        self.settings = PLAIN | {"share." + name.replace("_", "."): value for name, value in settings.items()}
        assert await configure(self.wire, self.group, self.settings) == 0, self.settings

    async def produce(
        self, *keys: bytes | None, topic: str = "second", headers: Mapping[str, bytes] | None = None
    ) -> None:
        """A record for each key, in a batch of its own."""
        for key in keys:
            now_ms = [self.world.clock.now_ms()]
            records = keyed_batch([(key, b"scene")], timestamps=now_ms, headers=list((headers or {}).items()))
            answer = await self.wire.ask(ApiKey.PRODUCE, 12, **produced(topic, 0, records))
            assert code_of(answer) == 0

    async def settle(self, member: Member, kind: bytes = ACCEPT) -> int:
        """Acknowledges all that a member holds; gives how many records that is."""
        held = {place: [(a, b, kind) for a, b in sorted(runs)] for place, runs in member.held.items()}
        member.held.clear()
        if held:
            await member.acknowledge(held)
        return sum(b - a + 1 for runs in held.values() for a, b, _ in runs)

    def waiting(self, member: Member) -> asyncio.Task[Any]:
        """A fetch that waits."""
        return asyncio.ensure_future(member.fetch(max_wait_ms=_WAIT_MS))

    async def comes(
        self, what: str, fetch: asyncio.Task[Any], member: Member, began: float, least_s: float, most_s: float
    ) -> None:
        """The fetch is answered with something, in time."""
        await fetch
        took = self.world.loop.now - began
        if not member.held or not least_s - 0.002 <= took <= most_s:
            got = "something" if member.held else "nothing"
            text = f"{self.group}, {what}: {got} after {took:.3f} s, {least_s} to {most_s} would be right"
            self.broken(text)

    def broken(self, text: str) -> None:
        self.world.story.broken("a queue does not keep its word", text)


async def run(world: World, wire: Wire, group: str) -> None:
    """Plays two scenes, and leaves the group without queue settings."""
    if group not in world.queue_settings:
        return
    chance = world.chance(f"scenes {group}")
    on = [scene for feature, scenes in _SCENES.items() if feature in world.plan.features for scene in scenes]
    # scenes of other groups have left records
    await _clear(world, wire, group)
    for scene in chance.sample(on, min(2, len(on))):
        # with as many partitions as members, each member would have one
        topics = ["first", "second"] if scene is _weights_count else ["second"]
        one = await _session(world, group, "one", topics)
        other = one if scene is _weights_count else await _session(world, group, "other", topics)
        stage = Stage(world, wire, group, one, other)
        world.story.tell("finish", f"{group}: {scene.__name__}")
        await scene(stage)
        if world.story.violations:
            return
        for member in {id(each): each for each in (one, other)}.values():
            await stage.settle(member)
            await member.leave()
        await _clear(world, wire, group)


async def _clear(world: World, wire: Wire, group: str) -> None:
    """Nothing is left for the next scene."""
    member = await _session(world, group, "clears", ["first", "second"])
    stage = Stage(world, wire, group, member, member)
    await stage.set()
    left = 1
    while left:
        await member.beat()
        await stage.settle(member)
        await member.fetch(max_wait_ms=300)
        left = len(member.held)
    await member.leave()


async def quieten(world: World, wire: Wire, group: str) -> None:
    """Takes away what would keep records longer than the end waits."""
    if group in world.queue_settings:
        settings = calm(world.queue_settings[group], jumped=world.clock.jumped)
        assert await configure(wire, group, settings) == 0


async def _session(world: World, group: str, who: str, topics: list[str]) -> Member:
    member = Member(world, f"{who}-{group}", group, topics)
    wanted = sum(world.topics[topic] for topic in topics)
    for _ in range(50):
        await member.beat()
        # a topic may have grown although the administrator got no answer
        if len(member.assigned) >= wanted:
            break
        await asyncio.sleep(0.3)
    else:
        world.story.broken("no partitions are assigned", f"{member.name} has {member.assigned}")
    await member.fetch(max_wait_ms=0)
    return member


async def _key_is_free(stage: Stage) -> None:
    """The next record of a key comes as soon as the one before it is settled."""
    await stage.set(ordering="key")
    await stage.produce(b"scene", b"scene")
    await stage.one.fetch(max_wait_ms=2_000)
    fetch = stage.waiting(stage.other)
    await asyncio.sleep(0.5)
    if fetch.done():
        stage.broken(f"{stage.group}: two records of a key are out")
    began = stage.world.loop.now
    await stage.settle(stage.one)
    await stage.comes("a key is free", fetch, stage.other, began, 0.0, _SOON_S)


async def _no_key(stage: Stage) -> None:
    """Records without a key wait for no others."""
    await stage.set(ordering="key")
    await stage.produce(None, None)
    await stage.one.fetch(max_wait_ms=2_000, max_records=1)
    began = stage.world.loop.now
    await stage.comes("no key", stage.waiting(stage.other), stage.other, began, 0.0, _SOON_S)


async def _backoff_ends(stage: Stage) -> None:
    """A record that is released comes when its back-off is over."""
    await stage.set(retry_backoff_ms=1_500, retry_backoff_multiplier=1.0)
    await stage.produce(b"scene")
    await stage.one.fetch(max_wait_ms=2_000)
    fetch = stage.waiting(stage.other)
    began = stage.world.loop.now
    await stage.settle(stage.one, RELEASE)
    await stage.comes("a back-off ends", fetch, stage.other, began, 1.5, 1.5 * (1 + _JITTER) + _SOON_S)


async def _time_comes(stage: Stage) -> None:
    """A record with a delivery time comes then."""
    await stage.set(deliver_at_header=DELIVER_AT)
    fetch = stage.waiting(stage.other)
    began = stage.world.loop.now
    due = b"%d" % (stage.world.clock.now_ms() + 1_500)
    await stage.produce(b"scene", headers={DELIVER_AT: due})
    await stage.comes("a time comes", fetch, stage.other, began, 1.5, 1.5 + _SOON_S)


async def _pause_ends(stage: Stage) -> None:
    """A group that is paused until a time gets records then."""
    until_ms = stage.world.clock.now_ms() + 1_500
    began = stage.world.loop.now
    await stage.set(paused_until_ms=until_ms)
    await stage.produce(b"scene")
    await stage.comes("a pause ends", stage.waiting(stage.other), stage.other, began, 1.5, 1.5 + _SOON_S)


async def _resumed(stage: Stage) -> None:
    """A group that is paused gets records when somebody resumes it."""
    await stage.set(paused="true")
    await stage.produce(b"scene")
    fetch = stage.waiting(stage.other)
    await asyncio.sleep(1.0)
    began = stage.world.loop.now
    await stage.set()
    await stage.comes("a group is resumed", fetch, stage.other, began, 0.0, _SOON_S)


async def _breaker_opens(stage: Stage) -> None:
    """A group that gives up what it gets is paused, then gets some records, and all when those are well."""
    await stage.produce(*[b"scene"] * 40)
    pause = {"breaker_percent": 50, "breaker_min_records": 10, "breaker_pause_ms": 3_000}
    await stage.set(**pause)
    await stage.one.fetch(max_wait_ms=2_000)
    opened = stage.world.loop.now
    await stage.settle(stage.one, REJECT)
    fetch = stage.waiting(stage.other)
    await stage.comes("a breaker is half open", fetch, stage.other, opened, 3.0, 3.0 + _SOON_S)
    await stage.one.fetch(max_wait_ms=500)
    held = sum(b - a + 1 for each in (stage.one, stage.other) for runs in each.held.values() for a, b in runs)
    if held > _HALF_OPEN:
        stage.broken(f"{stage.group}: a breaker that is half open lets {held} records out")
    await stage.settle(stage.one)
    await stage.settle(stage.other)
    began = stage.world.loop.now
    await stage.comes("a breaker is closed", stage.waiting(stage.one), stage.one, began, 0.0, _SOON_S)


async def _weights_count(stage: Stage) -> None:
    """Topics get their parts, counted over fetches of one record each, too."""
    weights = {"first": 3, "second": 1}
    await stage.set(topic_weights=",".join(f"{name}:{weight}" for name, weight in weights.items()))
    for topic in weights:
        await stage.produce(*[None] * 24, topic=topic)
    ids = {stage.world.auditor.ledger.ids[topic]: topic for topic in weights}
    taken = dict.fromkeys(weights, 0)
    for _ in range(24):
        await stage.one.beat()
        await stage.one.fetch(max_wait_ms=1_000, max_records=1, batch_size=1)
        for (topic_id, _), runs in stage.one.held.items():
            taken[ids[topic_id]] += sum(b - a + 1 for a, b in runs)
        await stage.settle(stage.one)
        total, parts = sum(taken.values()), sum(weights.values())
        short = [name for name in weights if taken[name] < total * weights[name] // parts - 1]
        if short or not total:
            stage.broken(f"{stage.group}: of {total} records {taken} by weights {weights}")
            return


async def _locks_last(stage: Stage) -> None:
    """A record stays with a member whose session is open, and goes to others when that ends."""
    lock_s = stage.world.auditor.lock_s[stage.group]
    await stage.set(record_lock_keep="connected", record_lock_keep_max_ms=60_000)
    await stage.produce(b"scene")
    await stage.one.fetch(max_wait_ms=2_000)
    fetch = stage.waiting(stage.other)
    await asyncio.sleep(3 * lock_s)
    if fetch.done():
        stage.broken(f"{stage.group}: a lock of a member that is connected has run out")
    began = stage.world.loop.now
    stage.one.held.clear()
    await stage.one.fetch(epoch=-1, max_wait_ms=0)
    await stage.comes("a session ends", fetch, stage.other, began, 0.0, _SOON_S)
    stage.one.session = 0
    await stage.one.fetch(max_wait_ms=0)


async def _head_is_lost(stage: Stage) -> None:
    """A record that the log has lost no longer holds back the others of its key."""
    # the first one waits longer than the scene takes
    await stage.set(ordering="key", retry_backoff_ms=60_000, retry_backoff_max_ms=60_000)
    await stage.produce(b"scene")
    await stage.one.fetch(max_wait_ms=2_000)
    behind = 1 + max((b for runs in stage.one.held.values() for _, b in runs), default=-1)
    await stage.settle(stage.one, RELEASE)
    await stage.produce(b"scene")
    fetch = stage.waiting(stage.other)
    await asyncio.sleep(0.5)
    began = stage.world.loop.now
    part = {"partition_index": 0, "offset": behind}
    topics = [{"name": "second", "partitions": [part]}]
    await stage.wire.ask(ApiKey.DELETE_RECORDS, 2, topics=topics, timeout_ms=5_000)
    await stage.comes("the first of a key is deleted", fetch, stage.other, began, 0.0, _SOON_S)


async def _record_expires(stage: Stage) -> None:
    """A record that is too old is given up."""
    await stage.set(paused="true", record_ttl_ms=1_000)
    await stage.produce(b"scene")
    await asyncio.sleep(1.5)
    await stage.set(record_ttl_ms=1_000)
    await stage.one.fetch(max_wait_ms=1_000)
    if stage.one.held:
        stage.broken(f"{stage.group}: a record that has expired comes")


async def _letters_fill(stage: Stage) -> None:
    """Records whose dead letters cannot be written take room in the window (I11)."""
    if stage.group != letters.GROUP or letters.FEATURE not in stage.world.plan.features:
        return
    await stage.set(retry_backoff_ms=100, partition_max_waiting=1_000)
    if not await _letter_bytes(stage, 20):
        return  # the topic has not been used yet
    await stage.produce(*[None] * 60)
    given = 0
    for _ in range(12):
        await stage.one.beat()
        await stage.one.fetch(max_wait_ms=300, max_records=5, batch_size=1)
        given += await stage.settle(stage.one, REJECT)
    if given > 1_000 // SMALLER + _AT_ONCE:
        stage.broken(f"{stage.group}: {given} records were given up, and none of them has its letter")
    await _letter_bytes(stage, 1 << 20)
    await asyncio.sleep(_LETTERS_S)


async def _letter_bytes(stage: Stage, size: int) -> bool:
    """Sets how large a letter may be; says whether there is a topic for them."""
    configs = [{"name": "max.message.bytes", "config_operation": 0, "value": str(size)}]
    resources = [{"resource_type": 2, "resource_name": letters.TOPIC, "configs": configs}]
    answer = await stage.wire.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    code: int = answer.responses[0].error_code
    return code == 0


Scene = Callable[[Stage], Awaitable[None]]
_SCENES: dict[str, list[Scene]] = dict(
    zip(
        FEATURES,
        [
            [_key_is_free, _no_key, _head_is_lost],
            [_backoff_ends, _time_comes, _record_expires, _letters_fill],
            [_pause_ends, _resumed, _breaker_opens, _weights_count, _locks_last],
            [],
        ],
        strict=True,
    )
)
