"""A client without permissions costs the cluster nothing: a node forwards none of its requests."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from tests.harness.plausible import Names, message, variants
from tests.unit.client.virtual import in_virtual_time
from tests.unit.tier.forward.through import ALL, SETTINGS, SHOWN, STATE, Through
from tests.unit.upstream.cluster import Cluster

from sharecore.broker.handlers import SERVED
from sharecore.errors import KafkaError
from sharecore.network import Disconnect
from sharecore.protocol import ApiKey
from sharecore.tier.forward.routes import routes
from sharecore.waiting import Steps

_TOPICS = ("exists-t", "absent-t", STATE, SETTINGS, SHOWN, "__transaction_state")
_LISTINGS = {ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS}
"""Requests without names: the cluster is asked, and the response is filtered."""
_OF_THE_NODE = (4, 8, 16)
"""Resource types whose settings are the node's own: a broker and its loggers, client metrics."""
_ABOUT_THE_CLUSTER = {ApiKey.API_VERSIONS, ApiKey.METADATA}
"""For an unknown ID the node looks for new topics."""


class Denying:
    """An authorizer that denies everything."""

    def allows(self, *_: Any, **__: Any) -> bool:
        return False

    def allows_each(self, *_: Any, **__: Any) -> Steps[frozenset[str]]:
        yield from ()
        return frozenset()

    def allows_some(self, *_: Any) -> bool:
        return False

    def operations(self, *_: Any) -> int:
        return 0


@pytest.mark.heavy
@pytest.mark.parametrize("api", sorted(set(routes()) - _LISTINGS), ids=lambda api: api.name)
@in_virtual_time
async def test_nothing_is_forwarded(api: ApiKey) -> None:
    cluster = Cluster(versions=ALL)
    for name in _TOPICS:
        if name != "absent-t":
            cluster.create(name, 1)
    through = await Through(cluster, Denying()).begin()
    client, before = through.client(), len(cluster.asked)
    served = SERVED[api]
    for version in range(served.min_version, served.max_version + 1):
        for topic in _TOPICS:
            names = Names(topic, cluster.ids.get(topic, uuid.UUID(int=7)), "g", "x", "u")
            for fixed in variants(api):
                if fixed.get("resource_type") in _OF_THE_NODE:
                    continue
                try:
                    answer = await through.ask(client, api, version, **message(api, version, names, fixed))
                except (KafkaError, Disconnect) as error:
                    answer = error
                asked = {each.api for each in cluster.asked[before:]} - _ABOUT_THE_CLUSTER
                assert asked == set(), f"{api.name} v{version} of {topic}, {fixed}: {answer}"
    await through.end()
