"""AddPartitionsToTxn: a producer of transactions V1 announces the partitions it writes to.

All partitions are added or none: if one does not exist, the others get OPERATION_NOT_ATTEMPTED.
"""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.transactional import fenced_as_known
from sharecore.coordinator.offset_records import TopicPartition
from sharecore.coordinator.transactions import ProducerState
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Gather, Steps

_FENCED_SINCE = 2


def handle(context: RequestContext, request: Any) -> Result:
    return context.run(_add(context, request))


def _add(context: RequestContext, request: Any) -> Steps[Result]:
    broker = context.broker
    topics = request.v3_and_below_topics
    transactional_id = request.v3_and_below_transactional_id
    partitions = []
    for topic in topics:
        for index in topic.partitions:
            partitions.append(TopicPartition(topic.name, index))
            yield
    if not context.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        # repeated as often as named, unlike in any other answer
        return (yield from _refused(topics, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    names = (topic.name for topic in topics if topic.partitions)
    writable = yield from context.may_each(Operation.WRITE, ResourceType.TOPIC, names)
    denied, missing = set[TopicPartition](), set[TopicPartition]()
    for each in partitions:
        if each.topic not in writable:
            denied.add(each)
        elif broker.topics.log(*each) is None:
            missing.add(each)
        yield

    def answer(error: KafkaError | None) -> Steps[dict[str, Any]]:
        code = error.code if error else ErrorCode.NONE
        code = fenced_as_known(code, context.api_version, _FENCED_SINCE)
        codes = dict.fromkeys(partitions, code)
        codes |= dict.fromkeys(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return _answer(codes | dict.fromkeys(denied, ErrorCode.TOPIC_AUTHORIZATION_FAILED))

    if missing or denied:
        return (yield from answer(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED)))
    producer = ProducerState(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    transactions = broker.groups.transactions
    gather: Gather[None] = Gather()
    gather.run(None, lambda done: transactions.add_partitions(transactional_id, producer, partitions, done))
    return broker.turns.after(gather, lambda: answer(gather.outcomes[None]))


def _refused(topics: Any, code: ErrorCode) -> Steps[dict[str, Any]]:
    answers = []
    for topic in topics:
        results = []
        for index in topic.partitions:
            results.append({"partition_index": index, "partition_error_code": code})
            yield
        answers.append({"name": topic.name, "results_by_partition": results})
        yield
    return {"results_by_topic_v3_and_below": answers}


def _answer(codes: dict[TopicPartition, ErrorCode]) -> Steps[dict[str, Any]]:
    answers: dict[str, dict[str, Any]] = {}
    for each, code in codes.items():
        answer = answers.get(each.topic)
        if answer is None:
            answer = answers[each.topic] = {"name": each.topic, "results_by_partition": []}
        result = {"partition_index": each.partition, "partition_error_code": code}
        answer["results_by_partition"].append(result)
        yield
    return {"results_by_topic_v3_and_below": list(answers.values())}
