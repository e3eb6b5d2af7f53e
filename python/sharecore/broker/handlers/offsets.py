"""Committed offsets of groups."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast
from uuid import UUID

from sharecore.broker.requests.context import RequestContext, Result
from sharecore.coordinator.commits import CommitRequest
from sharecore.coordinator.offset_records import NO_TIME, Commits, CommittedOffset, TopicPartition
from sharecore.coordinator.transactions import ProducerState
from sharecore.coordinator_log.topic_log import Producer
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Begun, Done, Gather, Steps, promise

if TYPE_CHECKING:
    from sharecore.protocol import messages
    from sharecore.storage import Topic

    _Topic: TypeAlias = messages.OffsetCommitRequestTopic | messages.TxnOffsetCommitRequestTopic
    _FetchedTopic: TypeAlias = messages.OffsetFetchRequestTopic | messages.OffsetFetchRequestTopics

_IDS_SINCE = 10
_IMPLICIT_SINCE = 5
_GROUP_METADATA_SINCE = 3
_ABORTABLE_SINCE = 4
_TXN_IDS_SINCE = 6
_GROUPS_SINCE = 8
_GROUP_ERROR_SINCE = 2
_NO_OFFSET = -1
_TopicKey = UUID | str | None
"""A topic, by id or name as in the request."""
_Key = tuple[_TopicKey, int]


@dataclass(slots=True)
class RequestedCommits:
    """Offsets of a request.

    Attributes:
        taken: offsets to commit by the group's coordinator.
        refused: unknown or unauthorized partitions.
        has_too_large: whether partitions with too much metadata must be refused once the group has accepted.
        metadata_max_bytes: limit on metadata.
        gone: unknown or unauthorized topics.
    """

    metadata_max_bytes: int
    taken: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    refused: dict[_Key, ErrorCode] = field(default_factory=dict)
    has_too_large: bool = False
    gone: set[_TopicKey] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """Whether the coordinator has nothing to commit."""
        return not self.taken and not self.has_too_large


def _read_commits(
    context: RequestContext, topics: Sequence[_Topic], *, by_id: bool, expire_ms: int = -1
) -> Steps[RequestedCommits]:
    """Return the offsets of a request, accepted or refused."""
    broker = context.broker
    now_ms = broker.clock.now_ms()
    commits = RequestedCommits(broker.config.offset_metadata_max_bytes)
    missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def find(asked: _Topic) -> Topic | None:
        return broker.topics.by_id(asked.topic_id) if by_id else broker.topics.get(asked.name)

    def name_of(asked: _Topic) -> str | None:
        topic = find(asked) if by_id else None
        return topic.name if topic is not None else None if by_id else asked.name

    names = (name for asked in topics if (name := name_of(asked)) is not None)
    all_readable = yield from context.may_each(Operation.READ, ResourceType.TOPIC, names)
    for asked in topics:
        key = asked.topic_id if by_id else asked.name
        topic = find(asked)
        readable = name_of(asked) in all_readable
        if topic is None or not readable:
            commits.gone.add(key)
        for part in asked.partitions:
            index = part.partition_index
            metadata = part.committed_metadata or ""
            if topic is None and by_id:
                commits.refused[key, index] = missing
            elif not readable:
                commits.refused[key, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topic is None:
                commits.refused[key, index] = missing
            elif not 0 <= index < len(topic.partitions):
                commits.refused[key, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif len(metadata.encode()) > commits.metadata_max_bytes:
                commits.has_too_large = True
            else:
                commits.taken[TopicPartition(topic.name, index)] = CommittedOffset(
                    part.committed_offset,
                    part.committed_leader_epoch,
                    metadata,
                    now_ms,
                    expire_ms,
                    topic.topic_id,
                )
            yield
        yield
    return commits


def _answer_commit(
    topics: Sequence[_Topic], commits: RequestedCommits, code: ErrorCode | None, *, by_id: bool
) -> Steps[messages.OffsetCommitResponse]:
    """Return the answer: `code` for each partition not refused individually; None for success.

    As in Apache Kafka's answer, each topic appears once. Unknown topics come first, and an existing topic
    appears only with its partitions.
    """
    answered: dict[_TopicKey, list[messages.OffsetCommitResponsePartition]] = {}
    for is_refused in (True, False):
        for topic in topics:
            key = topic.topic_id if by_id else topic.name
            results: list[messages.OffsetCommitResponsePartition] = []
            for part in topic.partitions:
                if ((key, part.partition_index) in commits.refused) is is_refused:
                    outcome = _commit_code(commits, code, key, part)
                    results.append({"partition_index": part.partition_index, "error_code": outcome})
                yield
            yield
            if results or (is_refused and key in commits.gone):
                answered.setdefault(key, []).extend(results)
    answers: list[messages.OffsetCommitResponseTopic] = []
    for key, partitions in answered.items():
        answers.append(_answer_topic(key, partitions))
        yield
    return {"topics": answers}


def _refuse_all(
    topics: Sequence[_Topic], code: ErrorCode, *, by_id: bool
) -> Steps[messages.OffsetCommitResponse]:
    """Return an answer with the same error for every partition."""
    answers: list[messages.OffsetCommitResponseTopic] = []
    for topic in topics:
        results: list[messages.OffsetCommitResponsePartition] = []
        for part in topic.partitions:
            results.append({"partition_index": part.partition_index, "error_code": code})
            yield
        answers.append(_answer_topic(topic.topic_id if by_id else topic.name, results))
        yield
    return {"topics": answers}


def _answer_topic(
    key: _TopicKey, partitions: list[messages.OffsetCommitResponsePartition]
) -> messages.OffsetCommitResponseTopic:
    if isinstance(key, str):
        return {"name": key, "partitions": partitions}
    return {"topic_id": key, "partitions": partitions}


def _commit_code(
    commits: RequestedCommits,
    code: ErrorCode | None,
    key: _TopicKey,
    part: messages.OffsetCommitRequestPartition | messages.TxnOffsetCommitRequestPartition,
) -> ErrorCode:
    place = key, part.partition_index
    if place in commits.refused:
        return commits.refused[place]
    if code is None and len((part.committed_metadata or "").encode()) > commits.metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return code or ErrorCode.NONE


def offset_commit(
    context: RequestContext, request: messages.OffsetCommitRequest
) -> Result[messages.OffsetCommitResponse]:
    """Commit a group's offsets; needs READ on the group and on each topic."""
    by_id = context.api_version >= _IDS_SINCE
    retention_ms = getattr(request, "retention_time_ms", NO_TIME)
    expire_ms = NO_TIME if retention_ms == NO_TIME else context.broker.clock.now_ms() + retention_ms
    if not context.may(Operation.READ, ResourceType.GROUP, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return context.run(_refuse_all(request.topics, code, by_id=by_id))
    return context.run(_commit(context, request, expire_ms, by_id=by_id))


def _commit(
    context: RequestContext, request: messages.OffsetCommitRequest, expire_ms: int, *, by_id: bool
) -> Steps[Begun[messages.OffsetCommitResponse]]:
    commits = yield from _read_commits(context, request.topics, by_id=by_id, expire_ms=expire_ms)

    def answer(error: KafkaError | None) -> Steps[messages.OffsetCommitResponse]:
        return _answer_commit(request.topics, commits, error.code if error else None, by_id=by_id)

    if commits.is_empty:
        # the coordinator has nothing to commit
        return (yield from answer(None))
    wanted = CommitRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        context.api_version,
        commits.taken,
    )
    gather: Gather[None] = Gather()
    gather.run(None, context.broker.groups.commits.commit, wanted)
    return context.broker.turns.after(gather, lambda: answer(gather.outcomes[None]))


def txn_offset_commit(
    context: RequestContext, request: messages.TxnOffsetCommitRequest
) -> Result[messages.TxnOffsetCommitResponse]:
    """Stage offsets that take effect when the producer's transaction commits."""
    by_id = context.api_version >= _TXN_IDS_SINCE
    if not context.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return context.run(_refuse_all(request.topics, code, by_id=by_id))
    if not context.may(Operation.READ, ResourceType.GROUP, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return context.run(_refuse_all(request.topics, code, by_id=by_id))
    return context.run(_commit_in_transaction(context, request))


def _commit_in_transaction(
    context: RequestContext, request: messages.TxnOffsetCommitRequest
) -> Steps[Begun[messages.TxnOffsetCommitResponse]]:
    groups = context.broker.groups
    version = context.api_version
    by_id = version >= _TXN_IDS_SINCE
    commits = yield from _read_commits(context, request.topics, by_id=by_id)

    def answer(error: KafkaError | None) -> Steps[messages.TxnOffsetCommitResponse]:
        return _answer_commit(request.topics, commits, _code(error, version), by_id=by_id)

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

    def start(done: Done) -> None:
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
    if error.code in unknown and version < _TXN_IDS_SINCE:
        return ErrorCode.ILLEGAL_GENERATION
    if error.code is ErrorCode.INVALID_TXN_STATE and version >= _ABORTABLE_SINCE:
        return ErrorCode.TRANSACTION_ABORTABLE
    return error.code


def offset_fetch(
    context: RequestContext, request: messages.OffsetFetchRequest
) -> Result[messages.OffsetFetchResponse]:
    """Return committed offsets of groups."""
    return context.run(_fetch_all(context, request))


def _fetch_all(
    context: RequestContext, request: messages.OffsetFetchRequest
) -> Steps[messages.OffsetFetchResponse]:
    stable = request.require_stable
    if context.api_version < _GROUPS_SINCE:
        seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.GROUP, [request.group_id])
        answer = yield from _fetch(context, request, None, -1, seen, stable=stable)
        code = answer.get("error_code", ErrorCode.NONE)
        if code and context.api_version < _GROUP_ERROR_SINCE:
            return {"topics": _all_absent(request.topics or (), code)}
        return {"topics": answer["topics"], "error_code": code}
    names = (asked.group_id for asked in request.groups)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.GROUP, names)
    groups: list[messages.OffsetFetchResponseGroup] = []
    whole: dict[tuple[str, str | None, int], messages.OffsetFetchResponseGroup] = {}
    for group in request.groups:
        member = group.member_id, group.member_epoch
        # a repeated group takes no more memory
        known = whole.get((group.group_id, *member)) if group.topics is None else None
        if known is None:
            known = yield from _fetch(context, group, *member, seen, stable=stable)
            if group.topics is None:
                whole[(group.group_id, *member)] = known
        groups.append(known)
        yield
    return {"groups": groups}


def _fetch(
    context: RequestContext,
    asked: messages.OffsetFetchRequest | messages.OffsetFetchRequestGroup,
    member_id: str | None,
    member_epoch: int,
    groups_seen: Container[str],
    *,
    stable: bool,
) -> Steps[messages.OffsetFetchResponseGroup]:
    group_id = asked.group_id
    try:
        if group_id not in groups_seen:
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        commits = context.broker.groups.commits.fetch(group_id, member_id, member_epoch)
    except KafkaError as error:
        return {"group_id": group_id, "topics": [], "error_code": error.code}
    by_id = context.api_version >= _IDS_SINCE
    topics: list[messages.OffsetFetchResponseTopics] = []
    wanted = yield from _wanted(context, asked.topics, commits, by_id=by_id)
    names = (name for _, name, _ in wanted if name is not None)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    for key, name, partitions in wanted:
        refusal = ErrorCode.UNKNOWN_TOPIC_ID
        if name is not None and name not in seen:
            if asked.topics is None:
                continue
            name, refusal = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        answers: list[messages.OffsetFetchResponsePartitions] = []
        for index in partitions:
            if name is None:
                answers.append(_absent(index, refusal))
            else:
                partition = TopicPartition(name, index)
                answers.append(_partition(context, group_id, partition, commits, stable=stable))
            yield
        if isinstance(key, str):
            topics.append({"name": key, "partitions": answers})
        else:
            topics.append({"topic_id": key, "partitions": answers})
    return {"group_id": group_id, "topics": topics}


def _wanted(
    context: RequestContext, topics: Sequence[_FetchedTopic] | None, commits: Commits, *, by_id: bool
) -> Steps[list[tuple[_TopicKey, str | None, Sequence[int]]]]:
    """Return the requested partitions, or all: id or name as in the answer, topic name, indexes."""
    catalog = context.broker.topics
    if topics is not None:
        found: list[tuple[_TopicKey, str | None, Sequence[int]]] = []
        for asked in topics:
            if by_id:
                topic_id = cast("messages.OffsetFetchRequestTopics", asked).topic_id
                topic = catalog.by_id(topic_id)
                found.append((topic_id, None if topic is None else topic.name, asked.partition_indexes))
            else:
                found.append((asked.name, asked.name, asked.partition_indexes))
            yield
        return found
    by_name: dict[str, list[int]] = {}
    for partition in sorted(commits):
        by_name.setdefault(partition.topic, []).append(partition.partition)
        yield
    everything: list[tuple[_TopicKey, str | None, Sequence[int]]] = []
    for name, partitions in by_name.items():
        topic = catalog.get(name)
        if not by_id:
            everything.append((name, name, partitions))
        elif topic is not None:
            everything.append((topic.topic_id, name, partitions))
    return everything


def _partition(
    context: RequestContext, group_id: str, partition: TopicPartition, commits: Commits, *, stable: bool
) -> messages.OffsetFetchResponsePartitions:
    if stable and context.broker.groups.commits.is_unstable(group_id, partition):
        return _absent(partition.partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    value = commits.get(partition)
    if value is None:
        return _absent(partition.partition, ErrorCode.NONE)
    return {
        "partition_index": partition.partition,
        "committed_offset": value.offset,
        "committed_leader_epoch": value.leader_epoch,
        "metadata": value.metadata,
    }


def _all_absent(
    topics: Iterable[messages.OffsetFetchRequestTopic], code: int
) -> list[messages.OffsetFetchResponseTopics]:
    """Return a refusal per partition, as the answer has no field for one of the whole group."""
    return [
        {"name": topic.name, "partitions": [_absent(index, code) for index in topic.partition_indexes]}
        for topic in topics
    ]


def _absent(index: int, code: int) -> messages.OffsetFetchResponsePartitions:
    return {
        "partition_index": index,
        "committed_offset": _NO_OFFSET,
        "committed_leader_epoch": -1,
        "metadata": "",
        "error_code": code,
    }


def offset_delete(
    context: RequestContext, request: messages.OffsetDeleteRequest
) -> Result[messages.OffsetDeleteResponse]:
    """Delete offsets that no member uses; raise KafkaError without DELETE on the group."""
    context.require(Operation.DELETE, ResourceType.GROUP, request.group_id)
    return context.run(_delete(context, request))


def _delete(
    context: RequestContext, request: messages.OffsetDeleteRequest
) -> Steps[Begun[messages.OffsetDeleteResponse]]:
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

    def answer(error: KafkaError | None) -> messages.OffsetDeleteResponse:
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
