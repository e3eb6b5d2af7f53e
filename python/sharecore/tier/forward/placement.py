"""Replica placement, leader elections and voters: executed by the cluster's controller.

Replicas have the IDs of the cluster's brokers. A node's metadata has other IDs, as its brokers are the nodes.
Hidden topics are neither moved nor listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from sharecore.broker.handlers.cluster.nodes import names_quorum, unknown_quorum
from sharecore.broker.handlers.cluster.replicas import (
    election_refusal,
    refuse_reassignment_list,
    settled_reassignments,
)
from sharecore.broker.requests.context import RequestContext
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.tier.forward.forwarder import RequestForwarder
from sharecore.tier.forward.shapes import Answer, Fields, Message, Places, field_of, list_of

if TYPE_CHECKING:
    from sharecore.protocol import messages, received

_ELECTED = Places(
    topics="topic_partitions",
    name="topic",
    index="",
    answered_topics="replica_election_results",
    answered_partitions="partition_result",
    answered_index="partition_id",
    text="error_message",
)
_MOVED = Places(answered_topics="responses", text="error_message")


class _Named(NamedTuple):
    """Partitions of a topic in ElectLeaders."""

    topic: str
    partitions: list[int]


async def elect(
    forwarder: RequestForwarder, context: RequestContext, request: messages.ElectLeadersRequest
) -> Mapping[str, object]:
    """Elect leaders; without a list, of all topics accessible to clients."""
    refused = election_refusal(context, request)
    if refused is not None:
        return await context.finish(refused)
    everything = request.topic_partitions is None
    named = await _all_partitions(forwarder, context) if everything else request.topic_partitions
    asked = request._replace(topic_partitions=cast("Sequence[messages.ElectLeadersTopicPartitions]", named))
    answer = await _change(forwarder, context, asked, _ELECTED, "No such topic as {}")
    if everything:
        answer["replica_election_results"] = [
            {
                "topic": field_of(topic, "topic", str),
                "partition_result": [
                    each
                    for each in list_of(topic, "partition_result")
                    if field_of(each, "error_code", int) != ErrorCode.ELECTION_NOT_NEEDED
                ],
            }
            for topic in list_of(answer, "replica_election_results")
        ]
    return answer


async def reassign(
    forwarder: RequestForwarder, context: RequestContext, request: messages.AlterPartitionReassignmentsRequest
) -> Mapping[str, object]:
    """Move replicas between brokers of the cluster."""
    settled = settled_reassignments(context, request)
    if settled is not None:
        return settled
    answer = await _change(forwarder, context, request, _MOVED, "Unable to find a topic named {}.")
    # version 1 repeats it
    if hasattr(request, "allow_replication_factor_change"):
        answer["allow_replication_factor_change"] = request.allow_replication_factor_change
    return answer


async def list_reassignments(
    forwarder: RequestForwarder, context: RequestContext, request: messages.ListPartitionReassignmentsRequest
) -> Mapping[str, object]:
    """List replica moves in progress."""
    if not context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return await context.finish(refuse_reassignment_list(request))
    if request.topics is not None:
        request = request._replace(topics=[each for each in request.topics if _is_open(forwarder, each.name)])
        if not request.topics:
            return {"error_message": None, "topics": []}
    try:
        answer = await forwarder.send(
            context, forwarder.controller(context), request, wait_ms=request.timeout_ms
        )
    except KafkaError as error:
        return {"error_code": forwarder.unchanged(error), "error_message": None, "topics": []}
    response = cast("received.ListPartitionReassignmentsResponse", answer)
    forwarder.noticed(response.error_code)
    return {
        **response._asdict(),
        "topics": [each for each in response.topics if _is_open(forwarder, each.name)],
    }


async def adapt_quorum(
    forwarder: RequestForwarder, context: RequestContext, request: messages.DescribeQuorumRequest
) -> Mapping[str, object]:
    """Describe the voters of the cluster's controller."""
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER, said=True)
    if not names_quorum(request):
        return await context.finish(unknown_quorum(request))
    try:
        response = await forwarder.send(context, forwarder.controller(context), request)
    except KafkaError as error:
        return {"error_code": forwarder.unchanged(error), "error_message": None, "topics": [], "nodes": []}
    answer: dict[str, object] = response._asdict()
    return answer


async def _all_partitions(forwarder: RequestForwarder, context: RequestContext) -> list[_Named]:
    pace = context.broker.turns.pace()
    found = []
    for topic in context.broker.topics:
        await pace.step()
        if _is_open(forwarder, topic.name):
            found.append(_Named(topic.name, list(range(len(topic.partitions)))))
    return found


async def _change(
    forwarder: RequestForwarder, context: RequestContext, request: Message, places: Places, unknown: str
) -> Fields:
    """Send partition changes to the controller; return its response, with errors for hidden topics.

    Args:
        unknown: the error for a hidden topic.
    """
    topics = getattr(request, places.topics)
    chosen, pace = [], context.broker.turns.pace()
    for topic in topics:
        await pace.step()
        if _is_open(forwarder, getattr(topic, places.name)):
            chosen.append(topic)
    answer: Fields = {}
    answered: Sequence[Answer] = []
    code: int = ErrorCode.UNKNOWN_SERVER_ERROR
    if chosen:
        message = request._replace(**{places.topics: chosen})
        try:
            response = await forwarder.send(
                context, forwarder.controller(context), message, wait_ms=field_of(request, "timeout_ms", int)
            )
        except KafkaError as error:
            code = forwarder.unchanged(error)
        else:
            answer = response._asdict()
            code = getattr(response, "error_code", 0) or code
            forwarder.noticed(code)
            answered = [*list_of(response, places.answered_topics)]
    # the controller lists topics in request order, including repeated ones
    answers = iter(
        answered if len(answered) == len(chosen) else (_refused(places, each, code) for each in chosen)
    )
    merged = []
    for topic in topics:
        await pace.step()
        name = getattr(topic, places.name)
        if _is_open(forwarder, name):
            merged.append(next(answers))
        else:
            text = unknown.format(name)
            merged.append(_refused(places, topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text))
    return answer | {places.answered_topics: merged}


def _refused(places: Places, topic: Message, code: int, text: str = "") -> Fields:
    parts = getattr(topic, places.partitions)
    indexes = [getattr(part, places.index) if places.index else part for part in parts]
    refused = [places.refused(index, code, text) for index in indexes]
    return {places.name: getattr(topic, places.name), places.answered_partitions: refused}


def _is_open(forwarder: RequestForwarder, name: str) -> bool:
    return forwarder.own.client_name(name) == name
