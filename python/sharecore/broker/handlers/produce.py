"""Produce: appends batches, and answers when they are durable."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.topic_rules import INTERNAL_TOPICS
from sharecore.broker.transactional import admit
from sharecore.errors import ErrorCode, KafkaError
from sharecore.network import Disconnect
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Log, RecordsRefused, Ticket
from sharecore.waiting import Later

_IDS_SINCE = 13
_NO_ACKNOWLEDGEMENT = 0
_sequence = attrgetter("sequence")
_ATTRIBUTES = 22
"""Where a batch says whether it is of a transaction."""


def handle(context: RequestContext, request: Any) -> Result:
    if context.broker.authorizer is not None and not _may_produce(context, request):
        return _all_refused(context, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    waiting: list[tuple[dict[str, Any], Ticket]] = []
    acks_known = request.acks in (-1, 0, 1)
    now_ms = context.broker.clock.now_ms()
    topics = []
    for topic in request.topic_data:
        answers = []
        for part in topic.partition_data:
            answer: dict[str, Any] = {"index": part.index, "base_offset": -1}
            answers.append(answer)
            try:
                log, records = _log(context, topic, part.index), part.records or b""
                if not acks_known:
                    raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
                admit(context.broker.groups, log, records, request.transactional_id, context.api_version)
                appended = log.append(records, now_ms=now_ms)
            except KafkaError as error:
                answer["error_code"] = error.code
                answer["error_message"] = error.message or None
                if isinstance(error, RecordsRefused):
                    answer["log_start_offset"] = log.start_offset
                    answer["record_errors"] = [
                        {"batch_index": index, "batch_index_error_message": error.reason}
                        for index in error.indexes
                    ]
                continue
            answer["base_offset"] = appended.base_offset
            answer["log_append_time_ms"] = appended.append_time_ms
            answer["log_start_offset"] = appended.log_start_offset
            if not appended.ticket.done() or appended.ticket.error is not None:
                waiting.append((answer, appended.ticket))
        if context.api_version >= _IDS_SINCE:
            topics.append({"topic_id": topic.topic_id, "partition_responses": answers})
        else:
            topics.append({"name": topic.name, "partition_responses": answers})
    message = {"responses": topics}
    if request.acks == _NO_ACKNOWLEDGEMENT:
        _close_on_failure(topics)
        return None
    return _when_durable(message, waiting) if waiting else message


def _log(context: RequestContext, topic: Any, index: int) -> Log:
    """The log to append to; raises KafkaError."""
    topics = context.broker.topics
    if context.api_version >= _IDS_SINCE:
        found = topics.by_id(topic.topic_id)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        context.require(Operation.WRITE, ResourceType.TOPIC, found.name)
    else:
        context.require(Operation.WRITE, ResourceType.TOPIC, topic.name)
        found = topics.get(topic.name)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not 0 <= index < len(found.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if found.name in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {found.name}")
    return found.partitions[index]


def _may_produce(context: RequestContext, request: Any) -> bool:
    """Whether the client may use the transactional id, which only batches of a transaction need."""
    transactional = any(
        part.records is not None and len(part.records) > _ATTRIBUTES and part.records[_ATTRIBUTES] & 0x10
        for topic in request.topic_data
        for part in topic.partition_data
    )
    name = request.transactional_id
    return not transactional or (
        name is not None and context.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
    )


def _all_refused(context: RequestContext, request: Any, code: ErrorCode) -> Result:
    name = "topic_id" if context.api_version >= _IDS_SINCE else "name"
    topics = [
        {
            name: getattr(topic, name),
            "partition_responses": [
                {"index": part.index, "error_code": code, "base_offset": -1} for part in topic.partition_data
            ],
        }
        for topic in request.topic_data
    ]
    if request.acks == _NO_ACKNOWLEDGEMENT:
        _close_on_failure(topics)
    return {"responses": topics}


def _when_durable(message: dict[str, Any], waiting: list[tuple[dict[str, Any], Ticket]]) -> Result:
    """The answer, once every append in it has been written or has failed."""
    later: Later[dict[str, Any]] = Later()

    def written(_: Ticket) -> None:
        for answer, ticket in waiting:
            if ticket.error is not None:
                answer.update(error_code=ticket.error.code, base_offset=-1)
        later.set_result(message)

    # writes end in their order
    max([ticket for _, ticket in waiting], key=_sequence).add_done_callback(written)
    return later


def _close_on_failure(topics: list[dict[str, Any]]) -> None:
    """A client that wants no answer learns of a failure by losing its connection, as with Kafka."""
    for topic in topics:
        for answer in topic["partition_responses"]:
            if "error_code" in answer:
                code = ErrorCode(answer["error_code"])
                raise Disconnect(f"produce without acknowledgement failed: {code.name}")
