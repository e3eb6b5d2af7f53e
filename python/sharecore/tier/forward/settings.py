"""Settings: those of topics are the cluster's, with a few exceptions; all others are the tier's."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING, TypeVar

from sharecore.broker.handlers.configs.change import check_number
from sharecore.broker.handlers.configs.rights import config_rights
from sharecore.broker.requests.context import EVERY_NAME, RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.security.acl import Operation
from sharecore.storage import ResourceType
from sharecore.tier.forward.beside import own_answer
from sharecore.tier.forward.forwarder import RequestForwarder, code_of, throttle_of
from sharecore.tier.forward.shapes import Answer, Fields, as_fields, field_of, list_of
from sharecore.tier.upstream.topics import OWN_SETTINGS

if TYPE_CHECKING:
    from sharecore.protocol import messages

Alteration = TypeVar("Alteration", "messages.AlterConfigsRequest", "messages.IncrementalAlterConfigsRequest")
_Resource = tuple[int, str]
_Answered = dict[_Resource, deque[Fields]]
"""By resource; a resource requested twice has two entries, each with its own keys."""


async def describe_configs(
    forwarder: RequestForwarder, context: RequestContext, request: messages.DescribeConfigsRequest
) -> Fields:
    """Describe settings; for topics the cluster's, with the ones that the tier stores."""
    own = await own_answer(context, request)
    pace = context.broker.turns.pace()
    results, topics = [], {}
    for described in list_of(own, "results"):
        await pace.step()
        result = as_fields(
            described
        ).copy()  # a repeated resource may share one response, which is modified here
        results.append(result)
        key = _key(result)
        if key[0] == ResourceType.TOPIC and not result.get("error_code"):
            topics[key] = forwarder.own.shown.get(key[1], key[1])
    asked = []
    for resource in request.resources:
        await pace.step()
        name = topics.get((resource.resource_type, resource.resource_name))
        if name is not None:
            asked.append(resource._replace(resource_name=name))
    answered, throttle_ms = await _ask(forwarder, context, request._replace(resources=asked), "results")
    for each in results:
        await pace.step()
        name = topics.get(_key(each))
        if name is None:
            continue
        found = {"configs": (), **_take(answered, (ResourceType.TOPIC, name))}
        kept = [entry for entry in list_of(each, "configs") if _name(entry) in OWN_SETTINGS]
        theirs = [entry for entry in list_of(found, "configs") if _name(entry) not in OWN_SETTINGS]
        entries = [] if found["error_code"] else theirs + kept
        each |= {**found, "resource_name": each["resource_name"], "configs": entries}
    return {"results": results, "throttle_time_ms": throttle_ms}


def _key(result: Fields) -> _Resource:
    return field_of(result, "resource_type", int), field_of(result, "resource_name", str)


def _name(entry: Answer) -> str:
    return field_of(entry, "name", str)


async def alter_configs(
    forwarder: RequestForwarder,
    context: RequestContext,
    request: Alteration,
) -> Fields:
    """Alter settings; those of topics on the cluster."""
    responses: dict[_Resource, Fields] = {}
    ours, theirs = [], []
    named = [
        (ResourceType.TOPIC, each.resource_name)
        for each in request.resources
        if each.resource_type == ResourceType.TOPIC
    ]
    times = Counter(name for _, name in named)
    rights = await context.finish(config_rights(context, Operation.ALTER_CONFIGS, named))
    pace = context.broker.turns.pace()
    for resource in request.resources:
        await pace.step()
        if resource.resource_type != ResourceType.TOPIC:
            ours.append(resource)
            continue
        kept = [each for each in resource.configs if each.name in OWN_SETTINGS]
        rest = [each for each in resource.configs if each.name not in OWN_SETTINGS]
        name = resource.resource_name
        try:
            if times[name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            rights.require(ResourceType.TOPIC, name)
            check_number(resource.configs)
            if context.broker.topics.get(name) is not None:
                forwarder.topic(context, name, EVERY_NAME, writes=True)
            elif forwarder.own.hides(name):
                text = f"The topic '{name}' does not exist."
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            else:
                # the cluster's errors about its settings come first
                theirs.append(resource._replace(configs=rest))
                continue
        except KafkaError as error:
            responses[ResourceType.TOPIC, name] = _refused(ResourceType.TOPIC, name, error)
            continue
        replaces = context.api_key == ApiKey.ALTER_CONFIGS
        if kept or (replaces and context.broker.configs.get(ResourceType.TOPIC, name)):
            ours.append(resource._replace(configs=kept))
        if rest or replaces or not kept:
            theirs.append(resource._replace(configs=rest))
    own = await own_answer(context, request._replace(resources=ours))
    for answer in list_of(own, "responses"):
        response = as_fields(answer)
        responses[_key(response)] = response
    answered, throttle_ms = await _ask(forwarder, context, request._replace(resources=theirs), "responses")
    for resource in theirs:
        await pace.step()
        key = resource.resource_type, resource.resource_name
        if not responses.get(key, {}).get("error_code"):
            responses[key] = _take(answered, key)
    described = []
    for each in request.resources:
        await pace.step()
        described.append(responses[each.resource_type, each.resource_name])
    return {"responses": described, "throttle_time_ms": throttle_ms}


async def _ask(
    forwarder: RequestForwarder,
    context: RequestContext,
    request: messages.DescribeConfigsRequest | Alteration,
    answer: str,
) -> tuple[_Answered, int]:
    """Return any broker's response about the resources of a request, and its throttle time."""
    if not request.resources:
        return {}, 0
    try:
        response = await forwarder.send(context, forwarder.any_node(context), request)
    except KafkaError as error:
        forwarder.upstream.stale()
        lost = ErrorCode.REQUEST_TIMED_OUT
        code = code_of(error, unsent=lost, sent=lost)
        keys = [(each.resource_type, each.resource_name) for each in request.resources]
        return {key: deque([_refused(*key, KafkaError(code))]) for key in keys}, 0
    found: _Answered = defaultdict(deque)
    pace = context.broker.turns.pace()
    for each in getattr(response, answer):
        await pace.step()
        found[each.resource_type, each.resource_name].append(each._asdict())
    return found, throttle_of(response)


def _take(answered: _Answered, key: _Resource) -> Fields:
    """Return the next response about a resource."""
    left = answered.get(key)
    if not left:
        return _refused(*key, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
    return left.popleft() if len(left) > 1 else left[0]


def _refused(kind: int, name: str, error: KafkaError) -> Fields:
    return {
        "error_code": error.code,
        "error_message": error.message or None,
        "resource_type": kind,
        "resource_name": name,
    }
