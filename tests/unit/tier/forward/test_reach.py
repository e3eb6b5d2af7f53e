"""Objects of the tier, and fields for brokers, reach the cluster through no forwarded API."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from tests.unit.client.virtual import in_virtual_time
from tests.unit.tier.forward.fields import MEANINGS, filled, request_fields, values_at
from tests.unit.tier.forward.through import ALL, COORDINATED, PLAIN, SETTINGS, SHOWN, STATE, Through
from tests.unit.upstream.cluster import Cluster

from sharecore.broker.handlers import SERVED
from sharecore.errors import KafkaError
from sharecore.network import Disconnect
from sharecore.protocol import ApiKey, schema
from sharecore.tier.forward.routes import routes

OPEN = "open"
GROUP, TRANSACTION = "sharecore-__state", "sharecore-__state-0"
LEDGER = "__transaction_state"
"""A topic of the cluster's own."""
TOPIC = 2
_ONLY_DESCRIBES = {ApiKey.DESCRIBE_CONFIGS}
_READS = {
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.OFFSET_COMMIT,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.OFFSET_DELETE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
}
"""APIs that may use the clients' names of the state topic."""


def _versions(api: ApiKey) -> Iterator[int]:
    """Return the lowest version, and each with other fields than the previous one."""
    before = None
    for version in range(SERVED[api].min_version, SERVED[api].max_version + 1):
        fields = set(request_fields(api, version))
        if fields != before:
            yield version
        before = fields


CASES = [(api, version) for api in sorted(routes()) for version in _versions(api)]


async def _way() -> Through:
    cluster = Cluster(nodes=1, versions=ALL)
    for name in (OPEN, STATE, SETTINGS, PLAIN, LEDGER, COORDINATED):
        cluster.create(name, 1)
    return await Through(cluster).begin()


async def _sent(through: Through, api: ApiKey, version: int, values: dict[str, Any]) -> list[Any]:
    """Return what the cluster receives of a request."""
    cluster = through.cluster
    cluster.asked.clear()
    cluster.says[api] = deque([None])
    message = filled(schema.load(api, version, response=False).struct, values)
    with contextlib.suppress(KafkaError, Disconnect):
        await through.ask(through.client(), api, version, **message)
    return [body for _, body in through.bodies(api)]


def _allowed(api: ApiKey, version: int, through: Through) -> dict[str, Any]:
    """Return values of a request that is forwarded."""
    fields, meaning = request_fields(api, version), MEANINGS[api]
    values: dict[str, Any] = {}
    for path in (meaning.topics + " " + meaning.settled).split():
        if path in fields and path.split(".")[-1] in ("name", "topic", "topic_id", "topic_names"):
            values[path] = through.cluster.ids[OPEN] if fields[path].kind == "uuid" else OPEN
    values |= dict.fromkeys(meaning.groups.split(), "g") | dict.fromkeys(meaning.transactions.split(), "t")
    values |= {"resources.resource_type": TOPIC, "resources.resource_name": OPEN, "acks": 1}
    values |= {"subscribed_topic_names": OPEN, "subscribed_topic_regex": None}
    values |= {"timeout_ms": 1000, "topics.topic_name": "__cluster_metadata"}
    if api is ApiKey.DELETE_TOPICS and version >= 6:
        values["topics.topic_id"] = None
    return values


@pytest.fixture(autouse=True)
def _only_what_is_forwarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the node's own handlers refuse only topics that are hidden from clients."""

    async def own_answer(context: Any, request: Any) -> dict[str, Any]:
        answers = [
            {
                "resource_type": each.resource_type,
                "resource_name": each.resource_name,
                "error_code": 0 if context.broker.topics.get(each.resource_name) else 3,
            }
            for each in getattr(request, "resources", ())
        ]
        described = [each | {"configs": []} for each in answers]
        return {"results": described, "responses": answers, "groups": []}

    monkeypatch.setattr("sharecore.tier.forward.settings.own_answer", own_answer)
    monkeypatch.setattr("sharecore.tier.forward.beside.own_answer", own_answer)


def test_every_field_of_every_api_that_is_forwarded_has_a_meaning() -> None:
    found = {
        api: {
            path
            for version in range(SERVED[api].min_version, SERVED[api].max_version + 1)
            for path in request_fields(api, version)
        }
        for api in routes()
    }
    assert found == {api: meaning.paths() for api, meaning in MEANINGS.items()}


@pytest.mark.heavy
@pytest.mark.parametrize(("api", "version"), CASES, ids=lambda each: getattr(each, "name", each))
@in_virtual_time
async def test_nothing_of_the_tier_reaches_the_cluster(api: ApiKey, version: int) -> None:
    through = await _way()
    through.broker.configs.get = lambda kind, name: {}
    fields, meaning = request_fields(api, version), MEANINGS[api]
    allowed = _allowed(api, version, through)
    assert await _sent(through, api, version, allowed), "not even what is allowed goes through"
    ids = through.cluster.ids

    async def refuse(paths: str, *targets: str | UUID) -> None:
        for path in [each for each in paths.split() if each in fields]:
            is_id = fields[path].kind == "uuid"
            for target in targets:
                if isinstance(target, UUID) is not is_id:
                    continue
                values = allowed | {path: target}
                if api is ApiKey.DELETE_TOPICS and version >= 6:
                    values["topics.topic_id" if path == "topics.name" else "topics.name"] = None
                bodies = await _sent(through, api, version, values)
                assert not any(str(target) in repr(body) for body in bodies), (path, target)

    await refuse(meaning.topics, STATE, SETTINGS, LEDGER, ids[SETTINGS], ids[LEDGER], ids[COORDINATED])
    if api not in _ONLY_DESCRIBES:
        await refuse(meaning.topics, COORDINATED, PLAIN, ids[PLAIN])
    if api not in _READS:
        await refuse(meaning.topics, SHOWN, ids[STATE])
    await refuse(meaning.groups, GROUP)
    await refuse(meaning.transactions, TRANSACTION)
    await through.end()


@pytest.mark.parametrize(
    ("api", "version"),
    [each for each in CASES if MEANINGS[each[0]].fixed],
    ids=lambda each: getattr(each, "name", each),
)
@in_virtual_time
async def test_no_client_says_what_brokers_say_to_each_other(api: ApiKey, version: int) -> None:
    through = await _way()
    fields, meaning = request_fields(api, version), MEANINGS[api]
    hostile: dict[str, Any] = {"string": "mine", "uuid": UUID(int=7)}
    fixed = {path: value for path, value in meaning.fixed.items() if path in fields}
    said = {path: hostile.get(fields[path].kind, 2) for path in fixed}
    (body,) = await _sent(through, api, version, _allowed(api, version, through) | said)
    assert {path: values_at(body, path) for path in fixed} == {
        path: [] if path.startswith("replica_state.") else [value] for path, value in fixed.items()
    }
    await through.end()
