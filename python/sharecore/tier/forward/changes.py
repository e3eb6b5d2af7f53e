"""CreateTopics, DeleteTopics and CreatePartitions: executed by the cluster, and visible here once
answered.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from sharecore.broker.handlers.topics import judge_deletions, values_of
from sharecore.broker.requests.context import EVERY_NAME, RequestContext
from sharecore.config import check_topic_config
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.storage import ResourceType as Resource
from sharecore.tier.forward.forwarder import MOVED, RequestForwarder, throttle_of
from sharecore.tier.forward.shapes import Answer, Fields, Keys, Message, as_fields, field_of
from sharecore.tier.upstream.topics import INTERNAL_PREFIX, OWN_SETTINGS

if TYPE_CHECKING:
    from sharecore.protocol import messages, received

_CREATED = Keys(
    "topics",
    "topics",
    "name",
    "name",
    failed={"num_partitions": -1, "replication_factor": -1, "configs": [], "error_message": None},
)
_GROWN = Keys("topics", "results", "name", "name", failed={"error_message": None})
Changed = TypeVar("Changed", "messages.CreateTopicsRequest", "messages.CreatePartitionsRequest")
_BY_ID_SINCE = 6
_SETTINGS_SINCE = 5
_SEEN_S, _LOOK_S = 5.0, 0.05
"""How long to wait for a change in the metadata, and how often to check."""


async def create_topics(
    forwarder: RequestForwarder, context: RequestContext, request: messages.CreateTopicsRequest
) -> Fields:
    """Create topics; settings unknown to the cluster are stored by the tier."""
    answers: dict[str, Answer] = {}
    allowed, ours = [], {}
    times, pace = Counter(topic.name for topic in request.topics), context.broker.turns.pace()
    creatable: Container[str] = EVERY_NAME
    if not context.may(Operation.CREATE, ResourceType.CLUSTER, quiet=True):
        once = (name for name, count in times.items() if count == 1)
        creatable = await context.finish(context.may_each(Operation.CREATE, ResourceType.TOPIC, once))
    for topic in request.topics:
        await pace.step()
        try:
            if times[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if topic.name not in creatable:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
            _check_creation(forwarder, topic.name)
            own = values_of(each for each in topic.configs if each.name in OWN_SETTINGS)
            check_topic_config(own, context.broker.config)
        except ConfigError as error:
            answers[topic.name] = _refused(_CREATED, topic.name, ErrorCode.INVALID_CONFIG, error.answer)
        except KafkaError as error:
            answers[topic.name] = _refused(_CREATED, topic.name, error.code, error.message)
        else:
            ours[topic.name] = own
            theirs = [each for each in topic.configs if each.name not in OWN_SETTINGS]
            allowed.append(topic._replace(configs=theirs))
    throttle_ms = await _change(forwarder, context, request, _CREATED, allowed, answers)
    made = [topic.name for topic in allowed if not _code(answers.get(topic.name))]
    if not request.validate_only:
        for name in made:
            if ours[name]:
                await context.broker.configs.replace(Resource.TOPIC, name, ours[name])
        await _seen(forwarder, made, lambda name: _is_led(forwarder, name))
    described: Container[str] = EVERY_NAME
    if context.api_version >= _SETTINGS_SINCE:
        rights = context.may_each(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, made)
        described = await context.finish(rights)
    for name in made:
        await pace.step()
        if name not in described:
            answers[name] = {
                **as_fields(answers[name]),
                "num_partitions": -1,
                "replication_factor": -1,
                "configs": None,
                "topic_config_error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            }
    return await _join(context, _CREATED, request, answers) | {"throttle_time_ms": throttle_ms}


async def _join(
    context: RequestContext, keys: Keys, request: Changed, answers: Mapping[str, Answer]
) -> Fields:
    missing = ErrorCode.UNKNOWN_SERVER_ERROR
    return await context.finish(keys.join(keys.read(request), _each(answers), missing))


def _check_creation(forwarder: RequestForwarder, name: str) -> None:
    if name.startswith(INTERNAL_PREFIX) or forwarder.own.hides(name):
        text = f"{name}: topics of the tier or that begin with {INTERNAL_PREFIX} are made on the cluster."
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)


async def create_partitions(
    forwarder: RequestForwarder, context: RequestContext, request: messages.CreatePartitionsRequest
) -> Fields:
    """Add partitions to topics."""
    answers: dict[str, Answer] = {}
    allowed = []
    times, pace = Counter(topic.name for topic in request.topics), context.broker.turns.pace()
    once = (name for name, count in times.items() if count == 1)
    alterable = await context.finish(forwarder.allowed_topics(context, once, Operation.ALTER))
    for topic in request.topics:
        await pace.step()
        try:
            if times[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            forwarder.topic(context, topic.name, alterable, writes=True)
            allowed.append(topic)
        except KafkaError as error:
            # Apache Kafka has no message for this error here
            text = "" if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else error.message
            answers[topic.name] = _refused(_GROWN, topic.name, error.code, text)
    throttle_ms = await _change(forwarder, context, request, _GROWN, allowed, answers)
    counts = {topic.name: topic.count for topic in allowed if not _code(answers.get(topic.name))}
    if not request.validate_only:
        await _seen(forwarder, counts, lambda name: _is_led(forwarder, name, counts[name]))
    return await _join(context, _GROWN, request, answers) | {"throttle_time_ms": throttle_ms}


async def delete_topics(
    forwarder: RequestForwarder, context: RequestContext, request: messages.DeleteTopicsRequest
) -> Fields:
    """Delete topics, with their share state."""
    judged, pace = await judge_deletions(context, request), context.broker.turns.pace()
    for number, (answer, topic) in enumerate(judged):
        await pace.step()
        if answer.get("error_code") in MOVED:
            forwarder.upstream.stale()  # it may be new
        if topic is not None:
            try:
                forwarder.topic(context, topic.name, EVERY_NAME, writes=True)
            except KafkaError as error:
                answer["error_code"], answer["error_message"] = error.code, error.message or None
                judged[number] = answer, None
    named = {key for _, topic in judged if topic is not None for key in (topic.name, topic.topic_id)}
    if not named:
        return {"responses": [answer for answer, _ in judged]}
    if context.api_version >= _BY_ID_SINCE:
        # those with both, or neither, are refused
        one = [each for each in request.topics if (each.name is None) != (each.topic_id is None)]
        changed = request._replace(topics=[each for each in one if named & {each.name, each.topic_id}])
    else:
        changed = request._replace(topic_names=[name for name in request.topic_names if name in named])
    throttle_ms = 0
    try:
        response = await forwarder.send(
            context, forwarder.controller(context), changed, wait_ms=request.timeout_ms
        )
    except KafkaError as error:
        code, answered = forwarder.unchanged(error), {}
    else:
        code, throttle_ms = ErrorCode.UNKNOWN_SERVER_ERROR, throttle_of(response)
        results = cast("received.DeleteTopicsResponse", response).responses
        answered = {key: each for each in results for key in (each.name, getattr(each, "topic_id", None))}
    for answer, topic in judged:
        if topic is None:
            continue
        each = answered.get(topic.name) or answered.get(topic.topic_id)
        answer.update(
            {"error_code": code} if each is None else cast("messages.DeletableTopicResult", each._asdict())
        )
        if answer["error_code"]:
            forwarder.noticed(answer["error_code"])
        else:
            forwarder.upstream.metadata.drop(topic.name)
    return {"responses": [answer for answer, _ in judged], "throttle_time_ms": throttle_ms}


async def _change(
    forwarder: RequestForwarder,
    context: RequestContext,
    request: Changed,
    keys: Keys,
    topics: Sequence[messages.CreatableTopic] | Sequence[messages.CreatePartitionsTopic],
    answers: dict[str, Answer],
) -> int:
    """Send topic changes to the controller; add its responses, and return its throttle time."""
    if not topics:
        return 0
    whole: Message = request
    message = whole._replace(topics=topics)
    try:
        response = await forwarder.send(
            context, forwarder.controller(context), message, wait_ms=request.timeout_ms
        )
    except KafkaError as error:
        code = forwarder.unchanged(error)
        answers |= {topic.name: keys.refused(topic.name, code) for topic in topics}
        return 0
    pace = context.broker.turns.pace()
    for name, (answered, *_) in (await context.finish(keys.answers(response))).items():
        answers[name] = answered
        forwarder.noticed(_code(answered))
        await pace.step()
    return throttle_of(response)


def _each(answers: Mapping[str, Answer]) -> dict[str, list[Answer]]:
    return {name: [answer] for name, answer in answers.items()}


def _refused(keys: Keys, name: str, code: int, text: str) -> Fields:
    return keys.refused(name, code) | {"error_message": text or None}


def _code(answer: Answer | None) -> int:
    return 0 if answer is None else field_of(answer, "error_code", int)


def _is_led(forwarder: RequestForwarder, name: str, partitions: int = 1) -> bool:
    topic = forwarder.upstream.metadata.get(name)
    return (
        topic is not None
        and len(topic.partitions) >= partitions
        and all(partition.leader >= 0 for partition in topic.partitions)
    )


async def _seen(forwarder: RequestForwarder, names: Iterable[str], known: Callable[[str], bool]) -> None:
    """Wait until the metadata shows the change, but not long: the cluster has executed it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _SEEN_S
    while (left := [name for name in names if not known(name)]) and loop.time() < until:
        try:
            await forwarder.upstream.topics(left)
        except KafkaError:
            return
        if all(map(known, left)):
            return
        await asyncio.sleep(_LOOK_S)
