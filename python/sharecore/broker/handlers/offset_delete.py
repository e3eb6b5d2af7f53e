"""OffsetDelete: forgets offsets that no member uses."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.coordinator.offset_records import TopicPartition
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps, promise


def handle(context: RequestContext, request: Any) -> Result:
    context.require(Operation.DELETE, ResourceType.GROUP, request.group_id)
    return context.run(_delete(context, request))


def _delete(context: RequestContext, request: Any) -> Steps[Result]:
    broker = context.broker
    names = (topic.name for topic in request.topics if topic.partitions)
    readable = yield from context.may_each(Operation.READ, ResourceType.TOPIC, names)
    codes: dict[TopicPartition, ErrorCode] = {}
    known: list[TopicPartition] = []
    for topic in request.topics:
        found = broker.topics.get(topic.name)
        for part in topic.partitions:
            partition = TopicPartition(topic.name, part.partition_index)
            if topic.name not in readable:
                codes[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif found is None or not 0 <= partition.partition < len(found.partitions):
                codes[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                known.append(partition)
            yield

    commits = broker.groups.commits
    in_use = commits.in_use(request.group_id, known)
    codes |= dict.fromkeys(in_use, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    free = [partition for partition in known if partition not in in_use]

    def answer(error: KafkaError | None) -> dict[str, Any]:
        if error is not None:
            return {"error_code": error.code}
        return {
            "topics": [
                {
                    "name": topic.name,
                    "partitions": [
                        {
                            "partition_index": part.partition_index,
                            "error_code": codes.get(
                                TopicPartition(topic.name, part.partition_index), ErrorCode.NONE
                            ),
                        }
                        for part in topic.partitions
                    ],
                }
                for topic in request.topics
                # as Apache Kafka does: a topic that is there is only named with its partitions
                if topic.partitions or broker.topics.get(topic.name) is None
            ]
        }

    return promise(lambda done: commits.delete(request.group_id, free, done), answer)
