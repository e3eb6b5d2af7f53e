"""Producer ids and transactions."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sharecore.broker.requests.context import RequestContext, Result
from sharecore.broker.topic_rules import check_name
from sharecore.coordinator.expressions import is_quick, matches
from sharecore.coordinator.offset_records import TopicPartition
from sharecore.coordinator.transactions import ProducerState, Transaction, TransactionState
from sharecore.errors import DENIED, NO_SUCH_PARTITION, ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.topic_names import is_legal_name
from sharecore.waiting import Begun, Gather, Steps, promise

if TYPE_CHECKING:
    from sharecore.protocol import messages

_INIT_FENCED_SINCE = 4
_FENCED_SINCE = 2
_RISING_EPOCHS_SINCE = 5
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_AT_ONCE = 1000
"""Maximum transactional ids matched in the event loop."""


async def init_producer_id(
    context: RequestContext, request: messages.InitProducerIdRequest
) -> messages.InitProducerIdResponse:
    """Return the id of an idempotent producer; register a transactional one and fence its predecessor."""
    broker = context.broker
    version = context.api_version

    def answer(result: ProducerState | KafkaError) -> messages.InitProducerIdResponse:
        if not isinstance(result, KafkaError):
            return {"producer_id": result.id, "producer_epoch": result.epoch}
        code = _fenced_as_known(result.code, version, _INIT_FENCED_SINCE)
        return {"error_code": code, "producer_id": -1, "producer_epoch": -1}

    if (code := producer_refusal(context, request)) is not None:
        return answer(KafkaError(code))
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return answer(KafkaError(ErrorCode.INVALID_REQUEST))
    expected = None
    if request.producer_id != -1:
        expected = ProducerState(request.producer_id, request.producer_epoch)
    try:
        await broker.producer_ids.ensure()
        transactional_id = request.transactional_id
        if transactional_id is None:
            return answer(ProducerState(broker.producer_ids.take(), 0))
        return await promise(
            lambda done: broker.groups.transactions.initialize(
                transactional_id, request.transaction_timeout_ms, expected, done
            ),
            answer,
        )
    except KafkaError as error:
        return answer(error)


def producer_refusal(context: RequestContext, request: messages.InitProducerIdRequest) -> ErrorCode | None:
    """Return the error for an unauthorized producer; None if it is authorized."""
    if request.transactional_id is not None:
        may = context.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        return None if may else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    # a client with write access to any topic may be idempotent (KIP-679)
    may = context.may(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER) or context.may_some(
        Operation.WRITE, ResourceType.TOPIC
    )
    return None if may else ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def add_partitions_to_txn(
    context: RequestContext, request: messages.AddPartitionsToTxnRequest
) -> Result[messages.AddPartitionsToTxnResponse]:
    """Add the partitions that a producer of transactions V1 is about to write to."""
    return context.run(_add(context, request))


def _add(
    context: RequestContext, request: messages.AddPartitionsToTxnRequest
) -> Steps[Begun[messages.AddPartitionsToTxnResponse]]:
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

    def answer(error: KafkaError | None) -> Steps[messages.AddPartitionsToTxnResponse]:
        code = error.code if error else ErrorCode.NONE
        code = _fenced_as_known(code, context.api_version, _FENCED_SINCE)
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


def _refused(
    topics: Sequence[messages.AddPartitionsToTxnTopic], code: ErrorCode
) -> Steps[messages.AddPartitionsToTxnResponse]:
    answers: list[messages.AddPartitionsToTxnTopicResult] = []
    for topic in topics:
        results: list[messages.AddPartitionsToTxnPartitionResult] = []
        for index in topic.partitions:
            results.append({"partition_index": index, "partition_error_code": code})
            yield
        answers.append({"name": topic.name, "results_by_partition": results})
        yield
    return {"results_by_topic_v3_and_below": answers}


def _answer(codes: dict[TopicPartition, ErrorCode]) -> Steps[messages.AddPartitionsToTxnResponse]:
    answers: dict[str, list[messages.AddPartitionsToTxnPartitionResult]] = {}
    for each, code in codes.items():
        answers.setdefault(each.topic, []).append(
            {"partition_index": each.partition, "partition_error_code": code}
        )
        yield
    return {
        "results_by_topic_v3_and_below": [
            {"name": topic, "results_by_partition": results} for topic, results in answers.items()
        ]
    }


def add_offsets_to_txn(
    context: RequestContext, request: messages.AddOffsetsToTxnRequest
) -> Result[messages.AddOffsetsToTxnResponse]:
    """Add the offsets topic of a group to the transaction of a producer of transactions V1."""
    groups = context.broker.groups

    def answer(error: KafkaError | None) -> messages.AddOffsetsToTxnResponse:
        code = error.code if error else ErrorCode.NONE
        code = _fenced_as_known(code, context.api_version, _FENCED_SINCE)
        return {"error_code": code}

    if not context.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return answer(KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not context.may(Operation.READ, ResourceType.GROUP, request.group_id):
        return answer(KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    producer = ProducerState(request.producer_id, request.producer_epoch)
    partition = groups.offsets_partition(request.group_id)
    try:
        return promise(
            lambda done: groups.transactions.add_partitions(
                request.transactional_id, producer, [partition], done
            ),
            answer,
        )
    except KafkaError as error:
        return answer(error)


async def end_txn(context: RequestContext, request: messages.EndTxnRequest) -> messages.EndTxnResponse:
    """Commit or abort a transaction; answered once the decision is durable."""
    broker = context.broker
    version = context.api_version
    await broker.producer_ids.ensure()

    def answer(result: ProducerState | KafkaError) -> messages.EndTxnResponse:
        if not isinstance(result, KafkaError):
            return {"producer_id": result.id, "producer_epoch": result.epoch}
        code = _fenced_as_known(result.code, version, _FENCED_SINCE)
        return {"error_code": code}

    if not context.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return answer(KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    producer = ProducerState(request.producer_id, request.producer_epoch)
    try:
        return await promise(
            lambda done: broker.groups.transactions.end(
                request.transactional_id,
                producer,
                commit=request.committed,
                version=2 if version >= _RISING_EPOCHS_SINCE else 0,
                done=done,
            ),
            answer,
        )
    except KafkaError as error:
        return answer(error)


def describe_producers(
    context: RequestContext, request: messages.DescribeProducersRequest
) -> Result[messages.DescribeProducersResponse]:
    """Return the active producers of partitions (KIP-664)."""
    return context.run(_describe_all_producers(context, request))


def _describe_all_producers(
    context: RequestContext, request: messages.DescribeProducersRequest
) -> Steps[messages.DescribeProducersResponse]:
    names = (topic.name for topic in request.topics if is_legal_name(topic.name))
    readable = yield from context.may_each(Operation.READ, ResourceType.TOPIC, names)
    topics: list[messages.TopicResponse] = []
    for topic in request.topics:
        partitions = yield from _partitions(context, topic, readable)
        topics.append({"name": topic.name, "partitions": partitions})
        yield
    return {"topics": topics}


def _partitions(
    context: RequestContext, topic: messages.DescribeProducersTopicRequest, readable: Container[str]
) -> Steps[list[messages.PartitionResponse]]:
    try:
        check_name(topic.name)
        if topic.name not in readable:
            raise KafkaError(_DENIED, DENIED[_DENIED])
        if context.broker.topics.get(topic.name) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION)
    except KafkaError as error:
        code, text = error.code, error.message
        return [
            {"partition_index": index, "error_code": code, "error_message": text}
            for index in topic.partition_indexes
        ]
    described: dict[int, messages.PartitionResponse] = {}
    for index in topic.partition_indexes:
        # a repeated partition takes no more memory
        if index not in described:
            described[index] = _describe_producers(context, topic.name, index)
        yield
    return [described[index] for index in topic.partition_indexes]


def _describe_producers(context: RequestContext, name: str, index: int) -> messages.PartitionResponse:
    log = context.broker.topics.log(name, index)
    if log is None:
        return {"partition_index": index, "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    return {
        "partition_index": index,
        "active_producers": [
            {
                "producer_id": each.producer_id,
                "producer_epoch": each.epoch,
                "last_sequence": each.last_sequence,
                "last_timestamp": each.last_timestamp_ms,
                "coordinator_epoch": each.coordinator_epoch,
                "current_txn_start_offset": each.transaction_start,
            }
            for each in log.active_producers()
        ],
    }


def describe_transactions(
    context: RequestContext, request: messages.DescribeTransactionsRequest
) -> Result[messages.DescribeTransactionsResponse]:
    """Return state and partitions of transactions (KIP-664)."""
    return context.run(_describe_all_transactions(context, request))


def _describe_all_transactions(
    context: RequestContext, request: messages.DescribeTransactionsRequest
) -> Steps[messages.DescribeTransactionsResponse]:
    names = request.transactional_ids
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, names)
    described: dict[str, messages.DescribeTransactionsTransactionState] = {}
    for name in names:
        # a repeated id takes no more memory
        if name not in described:
            described[name] = yield from _describe_transaction(context, name, seen)
        yield
    return {"transaction_states": [described[name] for name in names]}


def _describe_transaction(
    context: RequestContext, transactional_id: str, seen: Container[str]
) -> Steps[messages.DescribeTransactionsTransactionState]:
    if transactional_id not in seen:
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return {"transactional_id": transactional_id, "error_code": code}
    transaction = context.broker.groups.transactions.get(transactional_id)
    if not transactional_id or transaction is None:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
        return {"transactional_id": transactional_id, "error_code": code}
    partitions: list[TopicPartition] = sorted(transaction.partitions)
    names = (partition.topic for partition in partitions)
    topics_seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        if partition.topic in topics_seen:
            topics.setdefault(partition.topic, []).append(partition.partition)
        yield
    return {
        "transactional_id": transactional_id,
        "transaction_state": transaction.state.kafka_name,
        "transaction_timeout_ms": transaction.timeout_ms,
        "transaction_start_time_ms": transaction.start_ms,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.epoch,
        "topics": [{"topic": name, "partitions": some} for name, some in topics.items()],
    }


def list_transactions(
    context: RequestContext, request: messages.ListTransactionsRequest
) -> Result[messages.ListTransactionsResponse]:
    """Return transactions, filtered by state, producer, duration and name (KIP-664, KIP-994)."""
    pattern = request.transactional_id_pattern or ""
    known = context.broker.groups.transactions.all()
    if not pattern:
        return context.run(_list(context, request, known))
    names = [transaction.transactional_id for transaction in known]
    if is_quick((pattern,)) and len(names) <= _AT_ONCE:
        return context.run(_list(context, request, _chosen(context, _matching(pattern, names))))
    return _list_apart(context, request, pattern, names)


async def _list_apart(
    context: RequestContext, request: messages.ListTransactionsRequest, pattern: str, names: list[str]
) -> messages.ListTransactionsResponse:
    """Match a pattern in a thread."""
    work = partial(_matching, pattern, names)
    found = await context.broker.long_work.run(context.connection.owner, work)
    return await context.finish(_list(context, request, _chosen(context, found)))


def _matching(pattern: str, names: list[str]) -> list[str]:
    try:
        return matches(pattern, names)
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION) from error


def _chosen(context: RequestContext, names: list[str]) -> list[Transaction]:
    """Return the transactional ids that still exist."""
    get = context.broker.groups.transactions.get
    return [found for name in names if (found := get(name)) is not None]


def _list(
    context: RequestContext, request: messages.ListTransactionsRequest, found: Collection[Transaction]
) -> Steps[messages.ListTransactionsResponse]:
    broker = context.broker
    known = {state.kafka_name for state in TransactionState}
    states = {state for state in request.state_filters if state in known}
    unknown = [state for state in dict.fromkeys(request.state_filters) if state not in known]
    producers = set(request.producer_id_filters)
    now_ms = broker.clock.now_ms()
    names = (transaction.transactional_id for transaction in found)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, names, quiet=True)
    listed: list[messages.ListTransactionsTransactionState] = []
    for transaction in found:
        if (
            transaction.transactional_id in seen
            and (not request.state_filters or transaction.state.kafka_name in states)
            and (not producers or transaction.producer_id in producers)
            and (
                request.duration_filter < 0
                or (transaction.is_open and now_ms - transaction.start_ms > request.duration_filter)
            )
        ):
            listed.append(
                {
                    "transactional_id": transaction.transactional_id,
                    "producer_id": transaction.producer_id,
                    "transaction_state": transaction.state.kafka_name,
                }
            )
        yield
    return {"unknown_state_filters": unknown, "transaction_states": listed}


def _fenced_as_known(code: ErrorCode, version: int, known_since: int) -> ErrorCode:
    """Return an error known to a request version: older ones lack PRODUCER_FENCED (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < known_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
