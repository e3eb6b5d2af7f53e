"""Other clients are served between the entries of a large request, whose cost per entry is constant."""

from __future__ import annotations

import asyncio
import contextlib
from typing import NamedTuple

import pytest
from tests.harness.plausible import Names, message, variants
from tests.unit.client.virtual import ClientLoop, in_virtual_time
from tests.unit.tier.forward.test_without_rights import Denying
from tests.unit.tier.forward.through import ALL, Allowing, Through
from tests.unit.upstream.cluster import Cluster

from sharecore.broker.handlers import SERVED
from sharecore.errors import KafkaError
from sharecore.protocol import ApiKey
from sharecore.tier.forward.shapes import Keys
from sharecore.waiting import Turns, exhaust
from sharecore.waiting.turns import _STEPS_A_TURN

MANY = 600
_LISTS = {
    ApiKey.PRODUCE: "topic_data",
    ApiKey.FETCH: "topics",
    ApiKey.LIST_OFFSETS: "topics",
    ApiKey.OFFSET_COMMIT: "topics",
    ApiKey.OFFSET_FETCH: "groups",
    ApiKey.DESCRIBE_GROUPS: "groups",
    ApiKey.DELETE_GROUPS: "groups_names",
    ApiKey.CREATE_TOPICS: "topics",
    ApiKey.DELETE_TOPICS: "topics",
    ApiKey.CREATE_PARTITIONS: "topics",
    ApiKey.DELETE_RECORDS: "topics",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "topics",
    ApiKey.ADD_PARTITIONS_TO_TXN: "v3_and_below_topics",
    ApiKey.TXN_OFFSET_COMMIT: "topics",
    ApiKey.ELECT_LEADERS: "topic_partitions",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "resources",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "topics",
    ApiKey.DESCRIBE_PRODUCERS: "topics",
    ApiKey.DESCRIBE_TRANSACTIONS: "transactional_ids",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "group_ids",
}
_PARTITIONS = {
    ApiKey.PRODUCE: "topic_data.partition_data",
    ApiKey.FETCH: "topics.partitions",
    ApiKey.LIST_OFFSETS: "topics.partitions",
    ApiKey.OFFSET_COMMIT: "topics.partitions",
    ApiKey.DELETE_RECORDS: "topics.partitions",
    ApiKey.OFFSET_FOR_LEADER_EPOCH: "topics.partitions",
    ApiKey.ADD_PARTITIONS_TO_TXN: "v3_and_below_topics.partitions",
    ApiKey.TXN_OFFSET_COMMIT: "topics.partitions",
    ApiKey.DESCRIBE_PRODUCERS: "topics.partition_indexes",
}
_WHOLE = {ApiKey.ALTER_PARTITION_REASSIGNMENTS}
"""APIs that a missing permission on the cluster refuses in one step."""


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[Turns]:
    """Return the turns of the event loop taken by large requests."""
    taken: list[Turns] = []
    take = Turns._next_turn

    def note(running: Turns) -> None:
        taken.append(running)
        take(running)

    monkeypatch.setattr(Turns, "_next_turn", note)
    return taken


@pytest.mark.heavy
@pytest.mark.parametrize("rights", [Denying(), Allowing()], ids=["no rights", "all rights"])
@pytest.mark.parametrize(
    ("api", "path"), [*_LISTS.items(), *_PARTITIONS.items()], ids=lambda each: getattr(each, "name", each)
)
def test_others_are_served_between_the_entries(
    api: ApiKey, path: str, rights: object, turns: list[Turns]
) -> None:
    if api in _WHOLE and isinstance(rights, Denying):
        return
    with asyncio.Runner(loop_factory=ClientLoop) as runner:
        # the cluster in memory does not support all of these APIs, and then stays silent
        runner.get_loop().set_exception_handler(lambda *_: None)
        runner.run(_ask(api, path, rights, turns))


async def _ask(api: ApiKey, path: str, rights: object, turns: list[Turns]) -> None:
    cluster = Cluster(versions=ALL)
    cluster.create("exists-t", 1)
    through = await Through(cluster, rights).begin()
    names = Names("exists-t", cluster.ids["exists-t"], "g", "x", "u")
    version = SERVED[api].max_version
    client, request = through.client(), message(api, version, names, dict(variants(api)[0]), {path: MANY})
    before = len(turns)
    with contextlib.suppress(KafkaError):
        await through.ask(client, api, version, **request)
    assert len(turns) - before >= MANY // _STEPS_A_TURN
    assert client.held == 0
    await through.end()


@in_virtual_time
async def test_a_produce_request_waits_for_a_large_one_before_it() -> None:
    cluster = Cluster(versions=ALL)
    cluster.create("exists-t", 1)
    through = await Through(cluster, Allowing()).begin()
    names = Names("exists-t", cluster.ids["exists-t"], "g", "x", "u")
    version, client = 9, through.client()
    fixed = dict(variants(ApiKey.PRODUCE)[0]) | {"timeout_ms": 1000}
    large = message(ApiKey.PRODUCE, version, names, fixed, {"topic_data.partition_data": MANY})
    small = message(ApiKey.PRODUCE, version, names, fixed, {})
    first = through.ask(client, ApiKey.PRODUCE, version, **large)
    second = through.ask(client, ApiKey.PRODUCE, version, **small)
    await first
    await second
    sent = [len(body.topic_data[0].partition_data) for _, body in through.bodies(ApiKey.PRODUCE)]
    assert sent == [MANY, 1]
    await through.end()


class _Counted(str):
    """A name that counts its comparisons."""

    __slots__ = ()
    __hash__ = str.__hash__
    times = 0

    def __eq__(self, other: object) -> bool:
        _Counted.times += 1
        return str.__eq__(self, other)


def test_each_key_is_looked_up_once_among_those_that_are_chosen() -> None:
    keys = Keys("groups", "groups", "group_id")
    named = [_Counted(f"g{number}") for number in range(MANY)]

    class Request(NamedTuple):
        groups: list[_Counted]

    _Counted.times = 0
    chosen = exhaust(keys.select(Request(named), list(reversed(named))))
    assert chosen == (named,)
    assert _Counted.times <= 4 * MANY
