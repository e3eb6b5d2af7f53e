"""Offered versions: those common to a node and every broker behind it."""

from __future__ import annotations

from tests.unit.client.virtual import in_virtual_time
from tests.unit.tier.forward.through import ALL, Through
from tests.unit.upstream.cluster import Cluster

from sharecore.broker.served import Served
from sharecore.protocol import ApiKey
from sharecore.tier.forward.versions import Offer, in_common, levels_in_common

KNOWN = {
    ApiKey.PRODUCE: Served(3, 13, "produce", "make_produce", offered_min_version=0),
    ApiKey.FETCH: Served(4, 18, "fetch", "make_fetch"),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Served(0, 1, "consumer_groups", "consumer_group_heartbeat"),
}


def test_what_all_brokers_have() -> None:
    old, new = Offer({0: (0, 11), 1: (0, 17)}, {}), Offer({0: (3, 13), 1: (5, 17), 68: (0, 1)}, {})
    found = in_common(KNOWN, [old, new])
    assert {api: (each.min_version, each.max_version) for api, each in found.items()} == {
        ApiKey.PRODUCE: (3, 11),
        ApiKey.FETCH: (5, 17),
    }
    assert found[ApiKey.PRODUCE].offered_min_version == 0


def test_levels_that_all_brokers_have() -> None:
    offers = [Offer({}, {"transaction.version": 2, "group.version": 1}), Offer({}, {"group.version": 1})]
    names = ["transaction.version", "group.version"]
    assert levels_in_common(names, offers) == {"transaction.version": 0, "group.version": 1}


@in_virtual_time
async def test_a_node_asks_the_brokers() -> None:
    cluster = Cluster(nodes=3, versions={**ALL, ApiKey.PRODUCE: (0, 9)})
    cluster.create("a")
    through = await Through(cluster).begin()
    assert through.forwarding.served[ApiKey.PRODUCE].max_version == 9
    assert {each.node for each in cluster.asked if each.api is ApiKey.API_VERSIONS} == {0, 1, 2}
    await through.end()
