"""TxnOffsetCommit: offsets that take effect when the producer's transaction commits."""

from __future__ import annotations

from typing import Any

from sharecore.broker.context import RequestContext, Result
from sharecore.broker.offsets import answer_commit, read_commits, refuse_all
from sharecore.coordinator.commits import CommitRequest
from sharecore.coordinator.offset_records import CommittedOffset, TopicPartition
from sharecore.coordinator.transactions import ProducerState
from sharecore.coordinator_log.topic_log import Producer
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Gather, Steps

_IMPLICIT_SINCE = 5
_GROUP_METADATA_SINCE = 3
_ABORTABLE_SINCE = 4
_IDS_SINCE = 6


def handle(context: RequestContext, request: Any) -> Result:
    by_id = context.api_version >= _IDS_SINCE
    if not context.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return context.run(refuse_all(request.topics, code, by_id=by_id))
    if not context.may(Operation.READ, ResourceType.GROUP, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return context.run(refuse_all(request.topics, code, by_id=by_id))
    return context.run(_commit(context, request))


def _commit(context: RequestContext, request: Any) -> Steps[Result]:
    groups = context.broker.groups
    version = context.api_version
    by_id = version >= _IDS_SINCE
    commits = yield from read_commits(context, request.topics, by_id=by_id)

    def answer(error: KafkaError | None) -> Steps[dict[str, Any]]:
        return answer_commit(request.topics, commits, _code(error, version), by_id=by_id)

    if commits.is_empty:
        # the coordinators have nothing to commit
        return (yield from answer(None))
    wanted = CommitRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        # the answer of a non-transactional commit of that version to an unknown group
        9 if version >= _GROUP_METADATA_SINCE else 0,
        # Kafka writes topic ids into transactional records if the request has them
        commits.taken if by_id else _without_ids(commits.taken),
        Producer(request.producer_id, request.producer_epoch),
    )

    def start(done: Any) -> None:
        groups.transactions.admit(
            request.transactional_id,
            ProducerState(request.producer_id, request.producer_epoch),
            [groups.offsets_partition(request.group_id)],
            implicit=version >= _IMPLICIT_SINCE,
        )
        groups.commits.commit(wanted, done)

    gather: Gather[None] = Gather()
    gather.run(None, start)
    return context.broker.turns.after(gather, lambda: answer(gather.outcomes[None]))


def _without_ids(taken: dict[TopicPartition, CommittedOffset]) -> dict[TopicPartition, CommittedOffset]:
    return {partition: value._replace(topic_id=None) for partition, value in taken.items()}


def _code(error: KafkaError | None, version: int) -> ErrorCode | None:
    """Return Kafka's error code for clients of a version."""
    if error is None:
        return None
    unknown = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.STALE_MEMBER_EPOCH)
    if error.code in unknown and version < _IDS_SINCE:
        return ErrorCode.ILLEGAL_GENERATION
    if error.code is ErrorCode.INVALID_TXN_STATE and version >= _ABORTABLE_SINCE:
        return ErrorCode.TRANSACTION_ABORTABLE
    return error.code
