"""OffsetDelete: deletes offsets that no member uses."""

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
    answers: dict[str, list[tuple[TopicPartition, ErrorCode]]] = {}
    known: list[TopicPartition] = []
    for topic in request.topics:
        found = broker.topics.get(topic.name)
        if topic.partitions or found is None:
            # as in Apache Kafka, an existing topic appears only with its partitions
            answers.setdefault(topic.name, [])
        for part in topic.partitions:
            partition, code = TopicPartition(topic.name, part.partition_index), ErrorCode.NONE
            if topic.name not in readable:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif found is None or not 0 <= partition.partition < len(found.partitions):
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                known.append(partition)
            answers[topic.name].append((partition, code))
            yield

    commits = broker.groups.commits
    in_use = commits.in_use(request.group_id, known)
    used = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    free = [partition for partition in known if partition not in in_use]

    def answer(error: KafkaError | None) -> dict[str, Any]:
        if error is not None:
            return {"error_code": error.code}
        return {
            "topics": [
                {
                    "name": name,
                    "partitions": [
                        {
                            "partition_index": partition.partition,
                            "error_code": used if partition in in_use else code,
                        }
                        for partition, code in partitions
                    ],
                }
                for name, partitions in answers.items()
            ]
        }

    return promise(lambda done: commits.delete(request.group_id, free, done), answer)
