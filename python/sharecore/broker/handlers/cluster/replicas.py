"""Replicas and leaders: a partition has a single replica, which leads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharecore.broker.requests.context import RequestContext, Result
from sharecore.broker.topic_rules import TIME_IS_OVER, check_replicas
from sharecore.errors import ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.waiting import Steps

if TYPE_CHECKING:
    from sharecore.protocol import messages

_PREFERRED, _UNCLEAN = 0, 1


def elect_leaders(
    context: RequestContext, request: messages.ElectLeadersRequest
) -> Result[messages.ElectLeadersResponse]:
    """Answer that each partition already has its leader: it has a single replica (KIP-460)."""
    refused = election_refusal(context, request)
    if refused is not None:
        return context.run(refused)
    topics = context.broker.topics
    if request.topic_partitions is None:
        return {
            "replica_election_results": [{"topic": topic.name, "partition_result": []} for topic in topics]
        }
    return context.run(_elect_all(context, request))


def election_refusal(
    context: RequestContext, request: messages.ElectLeadersRequest
) -> Steps[messages.ElectLeadersResponse] | None:
    """Return steps for the refusal of the whole request; None if it is valid."""
    if not context.may(Operation.ALTER, ResourceType.CLUSTER):
        return _refused_election(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if request.timeout_ms <= 0:
        return _refused_election(request, TIME_IS_OVER.code)
    if getattr(request, "election_type", _PREFERRED) not in (_PREFERRED, _UNCLEAN):
        text = f"Unknown election type {request.election_type}"
        return _refused_election(request, ErrorCode.INVALID_REQUEST, text)
    return None


def _elect_all(
    context: RequestContext, request: messages.ElectLeadersRequest
) -> Steps[messages.ElectLeadersResponse]:
    results: list[messages.ReplicaElectionResult] = []
    for asked in request.topic_partitions or ():
        partitions: list[messages.ElectLeadersPartitionResult] = []
        for index in asked.partitions:
            partitions.append(_elect(context, asked.topic, index))
            yield
        results.append({"topic": asked.topic, "partition_result": partitions})
        yield
    return {"replica_election_results": results}


def _refused_election(
    request: messages.ElectLeadersRequest, code: ErrorCode, text: str | None = None
) -> Steps[messages.ElectLeadersResponse]:
    results: list[messages.ReplicaElectionResult] = []
    for asked in request.topic_partitions or ():
        partitions: list[messages.ElectLeadersPartitionResult] = []
        for index in asked.partitions:
            partitions.append({"partition_id": index, "error_code": code, "error_message": text})
            yield
        results.append({"topic": asked.topic, "partition_result": partitions})
        yield
    return {"error_code": code, "replica_election_results": results}


def _elect(context: RequestContext, name: str, index: int) -> messages.ElectLeadersPartitionResult:
    topic = context.broker.topics.get(name)
    if topic is None:
        code, text = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}"
    elif not 0 <= index < len(topic.partitions):
        code, text = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
    else:
        code, text = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    return {"partition_id": index, "error_code": code, "error_message": text}


def alter_partition_reassignments(
    context: RequestContext, request: messages.AlterPartitionReassignmentsRequest
) -> Result[messages.AlterPartitionReassignmentsResponse]:
    """Refuse to move replicas: a partition has a single one (KIP-455)."""
    answer = settled_reassignments(context, request)
    return context.run(_reassign_all(context, request)) if answer is None else answer


def settled_reassignments(
    context: RequestContext, request: messages.AlterPartitionReassignmentsRequest
) -> messages.AlterPartitionReassignmentsResponse | None:
    """Return the answer to a request that is refused as a whole or is empty; None for any other."""
    if not context.may(Operation.ALTER, ResourceType.CLUSTER):
        return _refused_reassignment(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not request.topics:
        return _answer(request, [], "")
    if request.timeout_ms <= 0:
        return _refused_reassignment(request, TIME_IS_OVER.code)
    return None


def _reassign_all(
    context: RequestContext, request: messages.AlterPartitionReassignmentsRequest
) -> Steps[messages.AlterPartitionReassignmentsResponse]:
    responses: list[messages.ReassignableTopicResponse] = []
    for asked in request.topics:
        partitions: list[messages.ReassignablePartitionResponse] = []
        for partition in asked.partitions:
            answer: messages.ReassignablePartitionResponse = {
                "partition_index": partition.partition_index,
                "error_code": ErrorCode.NONE,
                "error_message": None,
            }
            try:
                _reassign(context, asked.name, partition)
            except KafkaError as error:
                answer["error_code"], answer["error_message"] = error.code, error.message or None
            partitions.append(answer)
            yield
        responses.append({"name": asked.name, "partitions": partitions})
        yield
    return _answer(request, responses, None)


def _reassign(context: RequestContext, name: str, partition: messages.ReassignablePartition) -> None:
    """Raise KafkaError unless the partition exists and its requested replicas are the current ones."""
    topic = context.broker.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    index = partition.partition_index
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if partition.replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    check_replicas(partition.replicas, context.broker.identity.node_id)


def _refused_reassignment(
    request: messages.AlterPartitionReassignmentsRequest, code: ErrorCode
) -> messages.AlterPartitionReassignmentsResponse:
    responses: list[messages.ReassignableTopicResponse] = [
        {
            "name": asked.name,
            "partitions": [
                {"partition_index": each.partition_index, "error_code": code, "error_message": None}
                for each in asked.partitions
            ],
        }
        for asked in request.topics
    ]
    return {"error_code": code, "error_message": None, "responses": responses}


def _answer(
    request: messages.AlterPartitionReassignmentsRequest,
    responses: list[messages.ReassignableTopicResponse],
    message: str | None,
) -> messages.AlterPartitionReassignmentsResponse:
    answer: messages.AlterPartitionReassignmentsResponse = {"error_message": message, "responses": responses}
    # version 1 repeats it
    if hasattr(request, "allow_replication_factor_change"):
        answer["allow_replication_factor_change"] = request.allow_replication_factor_change
    return answer


def list_partition_reassignments(
    context: RequestContext, request: messages.ListPartitionReassignmentsRequest
) -> Result[messages.ListPartitionReassignmentsResponse]:
    """Return no reassignments: there can be none (KIP-455); needs DESCRIBE on the cluster."""
    if context.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return {"error_message": None, "topics": []}
    return context.run(refuse_reassignment_list(request))


def refuse_reassignment_list(
    request: messages.ListPartitionReassignmentsRequest,
) -> Steps[messages.ListPartitionReassignmentsResponse]:
    """Return a refusal that names all requested partitions, as Apache Kafka does."""
    topics: list[messages.OngoingTopicReassignment] = []
    for topic in request.topics or ():
        partitions: list[messages.OngoingPartitionReassignment] = []
        for index in topic.partition_indexes:
            partitions.append({"partition_index": index})
            yield
        topics.append({"name": topic.name, "partitions": partitions})
        yield
    return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "error_message": None, "topics": topics}
