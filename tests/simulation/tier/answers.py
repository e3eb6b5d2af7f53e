"""What the simulated brokers answer, API by API; `fetching` has Fetch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.simulation.tier.cluster import CLUSTER_ID, PORT, Broker, Cluster
from tests.simulation.tier.fetching import fetch
from tests.simulation.tier.groups import committed
from tests.simulation.tier.log import Log

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

Reply = Callable[[Mapping[str, Any]], None]
_UNCONFIRMED_S = 1.0
_EARLIEST, _LATEST, _MAX_TIMESTAMP = -2, -1, -3


def _api_versions(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    keys = [
        {"api_key": api, "min_version": low, "max_version": high}
        for api, (low, high) in cluster.versions.items()
    ]
    reply({"api_keys": keys})


def _metadata(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    known = {name for name, _ in broker.leaders}
    asked = cluster.topics.keys() & known if body.topics is None else {each.name for each in body.topics}
    live = broker.live or {broker.node}
    reply(
        {
            "cluster_id": CLUSTER_ID,
            "controller_id": min(live),
            "brokers": [
                {"node_id": node, "host": "kafka", "port": PORT + node, "rack": None} for node in sorted(live)
            ],
            "topics": [
                _topic(cluster, broker, live, name)
                if name in known
                else {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "name": name}
                for name in sorted(asked)
            ],
        }
    )


def _topic(cluster: Cluster, broker: Broker, live: set[int], name: str) -> dict[str, Any]:
    topic = cluster.topics.get(name)
    if topic is None:
        return {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "name": name}
    partitions = []
    for log in topic.logs:
        leader, epoch = broker.leaders.get((name, log.index), (-1, -1))
        leader = leader if leader in live else -1
        partitions.append(
            {
                "error_code": ErrorCode.LEADER_NOT_AVAILABLE if leader < 0 else 0,
                "partition_index": log.index,
                "leader_id": leader,
                "leader_epoch": epoch,
                "replica_nodes": [each.node for each in cluster.brokers],
                "isr_nodes": sorted(live),
            }
        )
    topic_id = topic.topic_id if cluster.kind.topic_ids else None
    return {"name": name, "topic_id": topic_id, "partitions": partitions, "is_internal": False}


def _find_coordinator(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    found = []
    for key in getattr(body, "coordinator_keys", None) or [body.key]:
        node = cluster.coordinator(f"{'txn' if body.key_type else 'group'} {key}")
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if node < 0 else 0
        found.append({"key": key, "node_id": node, "host": "kafka", "port": PORT + node, "error_code": code})
    reply({**found[0], "coordinators": found})


def _grouped(name: str) -> Callable[[Cluster, Broker, int, Any, Reply], None]:
    def answer(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
        key = f"group {body.group_id}"
        code = _refusal(cluster, broker, key, body)
        if name == "heartbeat" and cluster.is_deposed(key, broker.node, body.member_id):
            # it was replaced, and does not know
            reply({"error_code": ErrorCode.NONE})
        elif code:
            reply({"error_code": code, "members": []})
        else:
            getattr(cluster.group(key), name)(body, reply)

    return answer


def _refusal(cluster: Cluster, broker: Broker, key: str, body: Any) -> ErrorCode:
    """Why a broker does not serve a member of a group, who may be one that is let nowhere now."""
    instance = getattr(body, "group_instance_id", None) or ""
    return cluster.check_coordinator(key, broker.node) or cluster.refused.get(instance, ErrorCode.NONE)


def _describe_groups(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    found = []
    for group in body.groups:
        code = cluster.check_coordinator(f"group {group}", broker.node)
        members = [] if code else cluster.group(f"group {group}").members.values()
        found.append(
            {
                "error_code": code,
                "group_id": group,
                "members": [
                    {"member_id": each.member_id, "group_instance_id": each.instance_id} for each in members
                ],
            }
        )
    reply({"groups": found})


def _offset_commit(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    key = f"group {body.group_id}"
    code = _refusal(cluster, broker, key, body)
    if cluster.is_deposed(key, broker.node, body.member_id):
        # no replica follows it
        cluster.later(_UNCONFIRMED_S, reply, committed(body, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    elif code:
        reply(committed(body, code))
    else:
        cluster.group(key).commit(body, reply)


def _init_producer_id(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    name = body.transactional_id
    code = cluster.check_coordinator(f"txn {name}", broker.node) if name is not None else 0
    if code:
        reply({"error_code": code, "producer_id": -1, "producer_epoch": -1})
        return
    producer_id, epoch = cluster.producer(name)
    reply({"producer_id": producer_id, "producer_epoch": epoch})


def _led(cluster: Cluster, broker: Broker, name: str, index: int) -> tuple[Log | None, ErrorCode]:
    """The log of a partition, and what a broker that does not lead it says, or does not yet know it."""
    log = cluster.log((name, index))
    if log is None:
        return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if log.leader != broker.node:
        return log, ErrorCode.NOT_LEADER_OR_FOLLOWER
    return log, ErrorCode.NONE


def _produce(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    places = [(topic.name, part.index) for topic in body.topic_data for part in topic.partition_data]
    found: dict[tuple[str, int], dict[str, Any]] = {}
    answered = False

    def settle() -> None:
        nonlocal answered
        if answered:
            return
        answered = True
        time_out.cancel()
        rest = {"error_code": ErrorCode.REQUEST_TIMED_OUT, "base_offset": -1}
        topics: dict[str, list[dict[str, Any]]] = {}
        for place in places:
            topics.setdefault(place[0], []).append({"index": place[1], **found.get(place, rest)})
        parts = [{"name": name, "partition_responses": some} for name, some in topics.items()]
        reply({"responses": parts})

    time_out = cluster.later(body.timeout_ms / 1000, settle)
    for topic in body.topic_data:
        for part in topic.partition_data:
            place = topic.name, part.index

            def done(code: ErrorCode, base: int, place: tuple[str, int] = place) -> None:
                found[place] = {"error_code": code, "base_offset": base if not code else -1}
                if len(found) == len(places):
                    settle()

            log, code = _led(cluster, broker, *place)
            if log is None or code:
                done(code, -1)
            else:
                cluster.append(log, bytes(part.records), done)


def _list_offsets(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    topics = []
    for topic in body.topics:
        parts = []
        for asked in topic.partitions:
            log, code = _led(cluster, broker, topic.name, asked.partition_index)
            part = {"partition_index": asked.partition_index, "offset": -1, "timestamp": -1}
            if log is not None and code and broker.node in log.deposed:
                # it does not know yet that it is no longer the leader
                told = {"offset": min(log.deposed[broker.node], log.end), "leader_epoch": log.epoch - 1}
                if broker.leaders.get((log.topic, log.index), (-1, -1))[0] != broker.node:
                    told = {"error_code": code}
                elif asked.timestamp == _EARLIEST:
                    told["offset"] = log.start
                parts.append({**part, **told})
                continue
            if log is None or code:
                parts.append({**part, "error_code": code})
                continue
            committed = log.stable if body.isolation_level else log.shown
            if asked.timestamp == _EARLIEST:
                offset = log.start
            elif log.shown < log.high:
                parts.append({**part, "error_code": ErrorCode.OFFSET_NOT_AVAILABLE})
                continue
            else:
                offset = committed
            parts.append({**part, "offset": offset, "leader_epoch": log.epoch})
        topics.append({"name": topic.name, "partitions": parts})
    reply({"topics": topics})


def _offset_for_leader_epoch(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    topics = []
    for topic in body.topics:
        parts = []
        for asked in topic.partitions:
            log, code = _led(cluster, broker, topic.topic, asked.partition)
            part: dict[str, Any] = {"partition": asked.partition, "error_code": code}
            if log is not None and not code:
                if asked.current_leader_epoch not in (-1, log.epoch):
                    old = asked.current_leader_epoch < log.epoch
                    part["error_code"] = (
                        ErrorCode.FENCED_LEADER_EPOCH if old else ErrorCode.UNKNOWN_LEADER_EPOCH
                    )
                else:
                    part["leader_epoch"], part["end_offset"] = log.end_of_epoch(asked.leader_epoch)
            parts.append(part)
        topics.append({"topic": topic.topic, "partitions": parts})
    reply({"topics": topics})


def _create_topics(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    found = []
    for asked in body.topics:
        if asked.name in cluster.topics:
            found.append({"name": asked.name, "error_code": ErrorCode.TOPIC_ALREADY_EXISTS})
            continue
        settings = {each.name: each.value for each in asked.configs}
        topic = cluster.create(asked.name, max(1, asked.num_partitions), settings)
        found.append({"name": asked.name, "topic_id": topic.topic_id})
    reply({"topics": found})


def _describe_configs(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    results = []
    for asked in body.resources:
        topic = cluster.topics.get(asked.resource_name)
        result: dict[str, Any] = {
            "resource_type": asked.resource_type,
            "resource_name": asked.resource_name,
            "error_message": None,
        }
        if topic is None:
            result["error_code"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        settings = {} if topic is None else {"cleanup.policy": "delete"} | dict(topic.settings)
        result["configs"] = [
            {"name": key, "value": value, "read_only": False, "is_sensitive": False}
            for key, value in settings.items()
        ]
        results.append(result)
    reply({"results": results})


def _delete_records(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    topics = []
    for topic in body.topics:
        parts = []
        for asked in topic.partitions:
            log, code = _led(cluster, broker, topic.name, asked.partition_index)
            part = {"partition_index": asked.partition_index, "error_code": code, "low_watermark": -1}
            if log is not None and not code:
                start = part["low_watermark"] = log.delete_before(asked.offset)
                cluster.story.tell(broker.site, f"deletes {topic.name}-{log.index} up to {start}")
            parts.append(part)
        topics.append({"name": topic.name, "partitions": parts})
    cluster.wake()
    reply({"topics": topics})


ANSWERS: dict[ApiKey, Callable[[Cluster, Broker, int, Any, Reply], None]] = {
    ApiKey.API_VERSIONS: _api_versions,
    ApiKey.METADATA: _metadata,
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.JOIN_GROUP: _grouped("join"),
    ApiKey.SYNC_GROUP: _grouped("sync"),
    ApiKey.HEARTBEAT: _grouped("heartbeat"),
    ApiKey.DESCRIBE_GROUPS: _describe_groups,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.LEAVE_GROUP: _grouped("leave"),
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.DELETE_RECORDS: _delete_records,
}
