"""Settings through a node: those of topics are the cluster's, within the node's limits."""

from __future__ import annotations

from tests.unit.client.virtual import in_virtual_time
from tests.unit.tier.forward.through import ALL, Through
from tests.unit.upstream.cluster import Cluster

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

TOPIC, SET = 2, 0
CHANGES_MAX = 5_000


@in_virtual_time
async def test_a_cluster_is_not_asked_to_change_more_settings_of_a_topic_than_a_broker_takes() -> None:
    """Apache Kafka compares each with each: 100,000 keep its handler busy for minutes."""
    cluster = Cluster(versions=ALL)
    cluster.create("few")
    cluster.create("many")
    through = await Through(cluster).begin()
    resources = [
        {
            "resource_type": TOPIC,
            "resource_name": name,
            "configs": [
                {"name": "retention.ms", "config_operation": SET, "value": str(number)}
                for number in range(changes)
            ],
        }
        for name, changes in (("few", CHANGES_MAX), ("many", CHANGES_MAX + 1))
    ]
    cluster.says[ApiKey.INCREMENTAL_ALTER_CONFIGS].append(
        lambda body: {
            "responses": [
                {"error_code": 0, "resource_type": TOPIC, "resource_name": each.resource_name}
                for each in body.resources
            ]
        }
    )
    answer = await through.ask(
        through.client(), ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources, validate_only=True
    )
    assert [(each.resource_name, each.error_code) for each in answer.responses] == [
        ("few", ErrorCode.NONE),
        ("many", ErrorCode.INVALID_REQUEST),
    ]
    (body,) = (body for _, body in through.bodies(ApiKey.INCREMENTAL_ALTER_CONFIGS))
    assert [each.resource_name for each in body.resources] == ["few"]
    await through.end()
