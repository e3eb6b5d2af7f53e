"""Topics: created, deleted, extended, and emptied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID, uuid4

from sharecore.broker.handlers.configs.report import topic_entries
from sharecore.broker.requests.context import EVERY_NAME, RequestContext
from sharecore.broker.topic_rules import (
    PARTITIONS_PER_REQUEST_MAX,
    TIME_IS_OVER,
    check_collision,
    check_name,
    check_replicas,
    has_no_time,
    partition_count,
    refused_deletion,
)
from sharecore.config import check_topic_config
from sharecore.errors import DENIED, NO_SUCH_PARTITION, NO_SUCH_TOPIC_ID, ConfigError, ErrorCode, KafkaError
from sharecore.quotas import Mutations
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import Log, Ticket, Topic
from sharecore.topic_names import INTERNAL_TOPICS
from sharecore.waiting import Steps

if TYPE_CHECKING:
    from sharecore.broker.requests.services import Services
    from sharecore.protocol import messages

_TOPICS_SINCE = 6
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_HIGH_WATERMARK = -1


_Begun = tuple[Log, Ticket] | ErrorCode


async def create_topics(
    context: RequestContext, request: messages.CreateTopicsRequest
) -> messages.CreateTopicsResponse:
    """Create topics one by one: a failed one does not affect the others."""
    named = Counter(topic.name for topic in request.topics)
    by_name = {topic.name: topic for topic in request.topics}
    creatable = await context.finish(_creatable(context, named))
    if has_no_time(request, named, creatable):
        return {"topics": [_refused(topic.name, TIME_IS_OVER) for topic in request.topics]}
    mutations, pace = context.mutations(strict_since=6), context.broker.turns.pace()
    answers: list[messages.CreatableTopicResult] = []
    config_answers = _ConfigAnswers(context.broker)
    for name, times in named.items():
        topic = by_name[name]
        await pace.step()
        try:
            if times > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if name not in creatable:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
            answers.append(
                await _create(context, topic, mutations, config_answers, validate_only=request.validate_only)
            )
        except KafkaError as error:
            answers.append(_refused(name, error))
    return {"throttle_time_ms": mutations.throttle_ms, "topics": answers}


def _refused(name: str, error: KafkaError) -> messages.CreatableTopicResult:
    return {
        "name": name,
        "error_code": error.code,
        "error_message": error.message or None,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": [],
    }


def _creatable(context: RequestContext, names: Iterable[str]) -> Steps[Container[str]]:
    """Return the topics that the client may create."""
    if context.may(Operation.CREATE, ResourceType.CLUSTER, quiet=True):
        return EVERY_NAME
    return (yield from context.may_each(Operation.CREATE, ResourceType.TOPIC, names))


class _ConfigAnswers:
    """Topic configurations in the answer; equal ones share a list."""

    def __init__(self, broker: Services) -> None:
        self._broker = broker
        self._known: dict[tuple[tuple[str, str], ...], list[messages.CreatableTopicConfigs]] = {}

    def of(self, configs: dict[str, str]) -> list[messages.CreatableTopicConfigs]:
        """Return each key with its value and source."""
        key = tuple(sorted(configs.items()))
        found = self._known.get(key)
        if found is None:
            entries = topic_entries(self._broker, configs)
            found = self._known[key] = [
                {
                    "name": entry["name"],
                    "value": entry["value"],
                    "read_only": entry["read_only"],
                    "config_source": entry["config_source"],
                }
                for entry in entries
            ]
        return found


async def _create(
    context: RequestContext,
    topic: messages.CreatableTopic,
    mutations: Mutations,
    config_answers: _ConfigAnswers,
    *,
    validate_only: bool,
) -> messages.CreatableTopicResult:
    broker = context.broker
    check_name(topic.name)
    if broker.topics.get(topic.name) is not None:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    check_collision(topic.name, broker.topics)
    config = broker.config
    configs = values_of(topic.configs)
    try:
        check_topic_config(configs, config)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.answer) from None
    count = partition_count(
        topic, config.num_partitions, config.default_replication_factor, broker.identity.node_id
    )
    mutations.take(count)
    topic_id = uuid4()  # no topic configuration in a validate-only request
    if not validate_only:
        topic_id = (await broker.topics.create(topic.name, count, configs)).topic_id
    answer: messages.CreatableTopicResult = {
        "name": topic.name,
        "topic_id": topic_id,
        "error_message": None,
        "num_partitions": count,
        "replication_factor": 1,
        "configs": config_answers.of(configs),
    }
    if not context.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        answer |= {
            "num_partitions": -1,
            "replication_factor": -1,
            "configs": None,
            "topic_config_error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
    return answer


def values_of(given: Iterable[messages.CreatableTopicConfig]) -> dict[str, str]:
    """Return settings of a new topic; raise KafkaError(INVALID_CONFIG) for one without a value."""
    configs = {}
    for config in given:
        if config.value is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {config.name}"
            )
        configs[config.name] = config.value
    return configs


async def delete_topics(
    context: RequestContext, request: messages.DeleteTopicsRequest
) -> messages.DeleteTopicsResponse:
    """Delete topics by name, or since version 6 by id, one by one."""
    mutations = context.mutations(strict_since=5)
    answers = []
    pace = context.broker.turns.pace()
    for answer, topic in await judge_deletions(context, request):
        await pace.step()
        answers.append(answer)
        if topic is None:
            continue
        try:
            mutations.take(len(topic.partitions))
            await context.broker.topics.delete(topic.name)
        except KafkaError as error:
            answer["error_code"], answer["error_message"] = error.code, error.message or None
    return {"throttle_time_ms": mutations.throttle_ms, "responses": answers}


async def judge_deletions(
    context: RequestContext, request: messages.DeleteTopicsRequest
) -> list[tuple[messages.DeletableTopicResult, Topic | None]]:
    """Return the answer for each requested topic, and the topic if it is to be deleted."""
    pace = context.broker.turns.pace()
    asked: list[tuple[str | None, UUID | None]] = []
    names, ids = Counter[str | None](), Counter[UUID | None]()
    judged: list[tuple[messages.DeletableTopicResult, Topic | None]] = []
    for name, topic_id in _asked(context, request):
        asked.append((name, topic_id))
        if (name is None) == (topic_id is None):
            judged.append((refused_deletion(name, topic_id), None))
        elif name is not None:
            names[name] += 1
        else:
            ids[topic_id] += 1
        await pace.step()
    if has_no_time(request, {**names, **ids}):
        code = TIME_IS_OVER.code
        return [
            ({"name": name, "topic_id": topic_id, "error_code": code, "error_message": None}, None)
            for name, topic_id in asked
        ]
    rights = await context.finish(_rights(context, (name for name in names if name is not None), ids))
    met: set[UUID] = set()
    # names first: an id given as well is reported with its name, and nothing is deleted
    for name, topic_id in chain(((name, None) for name in names), ((None, topic_id) for topic_id in ids)):
        await pace.step()
        answer: messages.DeletableTopicResult = {"name": name, "topic_id": topic_id, "error_message": None}
        if topic_id in met and ids[topic_id] == 1:
            continue
        topic = None
        try:
            if names[name] > 1 or ids[topic_id] > 1:
                what = "id" if name is None else "name"
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
            found = _find(context, name, topic_id, rights, answer)
            if name is not None and found.topic_id in ids:
                met.add(found.topic_id)
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The topic is also named by its id.")
            topic = found
        except KafkaError as error:
            answer["error_code"], answer["error_message"] = error.code, error.message or None
        judged.append((answer, topic))
    return judged


def _asked(
    context: RequestContext, request: messages.DeleteTopicsRequest
) -> Iterable[tuple[str | None, UUID | None]]:
    if context.api_version < _TOPICS_SINCE:
        return ((name, None) for name in request.topic_names)
    return ((topic.name, topic.topic_id) for topic in request.topics)


class _Rights(NamedTuple):
    """Topics that the client may describe, and delete."""

    seen: Container[str]
    deletable: Container[str]

    def require(self, names: Container[str], name: str) -> None:
        if name not in names:
            raise KafkaError(_DENIED, DENIED[_DENIED])


def _rights(context: RequestContext, names: Iterable[str], ids: Iterable[UUID | None]) -> Steps[_Rights]:
    if context.may(Operation.DELETE, ResourceType.CLUSTER, quiet=True):
        return _Rights(EVERY_NAME, EVERY_NAME)
    topics = context.broker.topics
    all_names = dict.fromkeys(names)
    for each in ids:
        topic = topics.by_id(each)
        if topic is not None:
            all_names[topic.name] = None
        yield
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, all_names)
    there = []
    for name in all_names:
        if name in seen and topics.get(name) is not None:
            there.append(name)
        yield
    deletable = yield from context.may_each(Operation.DELETE, ResourceType.TOPIC, there)
    return _Rights(seen, deletable)


def _find(
    context: RequestContext,
    name: str | None,
    topic_id: UUID | None,
    rights: _Rights,
    answer: messages.DeletableTopicResult,
) -> Topic:
    """Return the topic to delete; set the name and id in `answer` that the client may see."""
    broker = context.broker
    if not broker.config.delete_topic_enable:
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled (delete.topic.enable)."
        )
    if name is not None:
        topic = broker.topics.get(name)
    else:
        topic = broker.topics.by_id(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, NO_SUCH_TOPIC_ID)
        name = topic.name
    rights.require(rights.seen, name)
    if topic is not None and rights.deletable is not EVERY_NAME:
        answer["name"] = name
        rights.require(rights.deletable, name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION)
    answer["name"], answer["topic_id"] = topic.name, topic.topic_id
    return topic


async def create_partitions(
    context: RequestContext, request: messages.CreatePartitionsRequest
) -> messages.CreatePartitionsResponse:
    """Add partitions to topics, one topic at a time."""
    times = Counter(topic.name for topic in request.topics)
    by_name = {topic.name: topic for topic in request.topics}
    alterable = await context.finish(context.may_each(Operation.ALTER, ResourceType.TOPIC, times))
    if has_no_time(request, times, alterable):
        code = TIME_IS_OVER.code
        return {
            "results": [
                {"name": topic.name, "error_code": code, "error_message": None} for topic in request.topics
            ]
        }
    mutations, pace = context.mutations(strict_since=3), context.broker.turns.pace()
    answers: list[messages.CreatePartitionsTopicResult] = []
    for name in times:
        await pace.step()
        topic = by_name[name]
        answer: messages.CreatePartitionsTopicResult = {"name": name, "error_message": None}
        try:
            if times[name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if name not in alterable:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            have = _check(context, topic)
            mutations.take(topic.count - have)
            if not request.validate_only:
                await context.broker.topics.add_partitions(name, topic.count)
        except KafkaError as error:
            answer["error_code"], answer["error_message"] = error.code, error.message or None
        answers.append(answer)
    return {"throttle_time_ms": mutations.throttle_ms, "results": answers}


def _check(context: RequestContext, asked: messages.CreatePartitionsTopic) -> int:
    """Return the current number of partitions; raise KafkaError if the request is invalid."""
    topic = context.broker.topics.get(asked.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    have = len(topic.partitions)
    if asked.count == have:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
    if asked.count < have:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {asked.name} currently has {have} partition(s); "
            f"{asked.count} would not be an increase.",
        )
    if asked.count - have > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    if asked.assignments is None:
        return have
    if len(asked.assignments) != asked.count - have:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {asked.count - have} additional partition(s), "
            f"but only {len(asked.assignments)} assignment(s) were specified.",
        )
    for assignment in asked.assignments:
        check_replicas(assignment.broker_ids, context.broker.identity.node_id)
    return have


async def delete_records(
    context: RequestContext, request: messages.DeleteRecordsRequest
) -> messages.DeleteRecordsResponse:
    """Move log start offsets forward; records before them are gone."""
    deleting = await context.finish(_begin_all(context, request))
    pace = context.broker.turns.pace()
    topics: list[messages.DeleteRecordsTopicResult] = []
    for name, begun in deleting.items():
        partitions = []
        for each in begun.items():
            partitions.append(await _end(*each))
            await pace.step()
        topics.append({"name": name, "partitions": partitions})
    return {"topics": topics}


def _begin_all(
    context: RequestContext, request: messages.DeleteRecordsRequest
) -> Steps[dict[str, dict[int, _Begun]]]:
    """Begin the deletions of a request; if a partition repeats, the last entry wins."""
    names = (topic.name for topic in request.topics if topic.partitions)
    deletable = yield from context.may_each(Operation.DELETE, ResourceType.TOPIC, names)
    last: dict[str, dict[int, messages.DeleteRecordsPartition]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            last.setdefault(topic.name, {})[asked.partition_index] = asked
            yield
    deleting: dict[str, dict[int, _Begun]] = {}
    for name, partitions in last.items():
        begun = deleting[name] = {}
        for index, asked in partitions.items():
            begun[index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if name in deletable:
                begun[index] = _begin(context, name, asked)
            yield
    return deleting


def _begin(context: RequestContext, name: str, asked: messages.DeleteRecordsPartition) -> _Begun:
    """Stage the deletion of one partition's records, so that a request's deletions share a commit."""
    log = context.broker.topics.log(name, asked.partition_index)
    if log is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if "delete" not in context.broker.topic_configs.get(name).cleanup_policy:
        return ErrorCode.POLICY_VIOLATION
    before = log.high_watermark if asked.offset == _HIGH_WATERMARK else asked.offset
    if not 0 <= before <= log.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    try:
        return log, log.delete_records(before)
    except KafkaError as error:
        return error.code


async def _end(index: int, begun: _Begun) -> messages.DeleteRecordsPartitionResult:
    if isinstance(begun, ErrorCode):
        return {"partition_index": index, "low_watermark": -1, "error_code": begun}
    log, ticket = begun
    try:
        await ticket
    except KafkaError as error:
        return {"partition_index": index, "low_watermark": -1, "error_code": error.code}
    return {"partition_index": index, "low_watermark": log.start_offset}
