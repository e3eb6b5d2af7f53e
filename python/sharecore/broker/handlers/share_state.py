"""State of share partitions, for the leaders of other brokers (KIP-932)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast
from uuid import UUID

from sharecore.broker.requests.context import RequestContext, Result
from sharecore.errors import DENIED, ErrorCode, KafkaError
from sharecore.security.acl import Operation, ResourceType
from sharecore.sharestate.coordinator import ReadState, StateSummary, check_epochs
from sharecore.sharestate.keys import SharePartitionKey
from sharecore.sharestate.records import pack_batches, unpack_batches
from sharecore.waiting import Begun, Done, Gather, Steps

if TYPE_CHECKING:
    from sharecore.protocol import messages

    class _HasPartition(Protocol):
        @property
        def partition(self) -> int: ...

    Part_co = TypeVar("Part_co", bound=_HasPartition, covariant=True)

    class _OnTopic(Protocol[Part_co]):
        @property
        def topic_id(self) -> UUID | None: ...
        @property
        def partitions(self) -> Sequence[Part_co]: ...

    class _OnPartitions(Protocol[Part_co]):
        @property
        def group_id(self) -> str: ...
        @property
        def topics(self) -> Sequence[_OnTopic[Part_co]]: ...


_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_NO_TOPIC = UUID(int=0)
_NEGATIVE = KafkaError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")

Part = TypeVar("Part", bound="_HasPartition")
Outcome = TypeVar("Outcome")
Answer = TypeVar("Answer")
_Operation: TypeAlias = Callable[[SharePartitionKey, Part, Callable[[Outcome | KafkaError], None]], object]
"""Starts an operation on a share partition: key, its part of the request, completion callback."""
_Describe: TypeAlias = Callable[[Outcome], Mapping[str, object]]
"""Returns the fields of a successful result."""


def _nothing(_: object) -> Mapping[str, object]:
    return {}


def _each_partition(
    context: RequestContext,
    request: _OnPartitions[Part],
    operation: _Operation[Part, Outcome],
    describe: _Describe[Outcome] = _nothing,
    *,
    may_be_empty: bool = False,
) -> Answer | Awaitable[Answer]:
    """Run an operation for each share partition of a request.

    Args:
        context: the context.
        request: the request.
        operation: the operation.
        describe: returns the fields of a successful result.
        may_be_empty: whether a topic without partitions leaves the rest of the request valid.
    """
    complete = may_be_empty or all(topic.partitions for topic in request.topics)
    if not request.group_id or not complete:
        return cast("Answer", {"results": []})
    steps: Steps[Begun[Answer]] = _run(context, request, operation, describe)
    return context.run(steps)


def _run(
    context: RequestContext,
    request: _OnPartitions[Part],
    operation: _Operation[Part, Outcome],
    describe: _Describe[Outcome],
) -> Steps[Begun[Answer]]:
    asked: dict[SharePartitionKey, Part] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            topic_id = topic.topic_id or _NO_TOPIC
            asked[SharePartitionKey(request.group_id, topic_id, partition.partition)] = partition
            yield
    if not context.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        refused = KafkaError(_DENIED, DENIED[_DENIED])
        return (yield from _answer(dict.fromkeys(asked, refused), describe))
    gather: Gather[SharePartitionKey] = Gather(asked)
    for key, partition in asked.items():
        if key.partition < 0:
            gather.put(key, _NEGATIVE)
        else:
            gather.run(key, operation, key, partition)
        yield

    def answer() -> Steps[Answer]:
        return _answer(gather.outcomes, describe)

    return context.broker.turns.after(gather, answer)


def _answer(
    outcomes: Mapping[SharePartitionKey, Outcome | KafkaError], describe: _Describe[Outcome]
) -> Steps[Answer]:
    topics: dict[UUID, list[dict[str, object]]] = {}
    for key, outcome in outcomes.items():
        entry: dict[str, object] = {"partition": key.partition}
        if isinstance(outcome, KafkaError):
            entry["error_code"], entry["error_message"] = outcome.code, outcome.message or None
        else:
            entry |= describe(outcome)
        topics.setdefault(key.topic_id, []).append(entry)
        yield
    results = [{"topic_id": topic_id, "partitions": partitions} for topic_id, partitions in topics.items()]
    return cast("Answer", {"results": results})


def initialize_share_group_state(
    context: RequestContext, request: messages.InitializeShareGroupStateRequest
) -> Result[messages.InitializeShareGroupStateResponse]:
    """Create or reset the state of share partitions, for the group coordinator (KIP-932)."""
    share, cluster = context.broker.share, context.broker.cluster

    def initialize(
        key: SharePartitionKey, asked: messages.InitializeShareGroupStatePartitionData, done: Done
    ) -> None:
        check_epochs(state_epoch=asked.state_epoch)
        cluster.check_asker(key.group_id, request.coordinator_epoch)
        share.check_exists(key)
        share.coordinator.initialize(key, asked.state_epoch, asked.start_offset, done)
        share.state_restarted(key)

    return _each_partition(context, request, initialize, may_be_empty=True)


def read_share_group_state(
    context: RequestContext, request: messages.ReadShareGroupStateRequest
) -> Result[messages.ReadShareGroupStateResponse]:
    """Return the state of share partitions to their new leader, and fence earlier leaders (KIP-932)."""
    coordinator = context.broker.share.coordinator

    def read(
        key: SharePartitionKey,
        asked: messages.ReadShareGroupStatePartitionData,
        done: Callable[[ReadState | KafkaError], None],
    ) -> None:
        coordinator.read(key, asked.leader_epoch, done)

    return _each_partition(context, request, read, _describe)


def _describe(state: ReadState) -> messages.ReadShareGroupStatePartitionResult:
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": [
            {"first_offset": first, "last_offset": last, "delivery_state": kind, "delivery_count": count}
            for first, last, kind, count in unpack_batches(state.batches)
        ],
    }


def write_share_group_state(
    context: RequestContext, request: messages.WriteShareGroupStateRequest
) -> Result[messages.WriteShareGroupStateResponse]:
    """Persist changes of a share partition's leader (KIP-932)."""
    coordinator = context.broker.share.coordinator

    def write(key: SharePartitionKey, asked: messages.WriteShareGroupStatePartitionData, done: Done) -> None:
        batches = pack_batches(asked.state_batches)
        coordinator.write(
            key,
            asked.state_epoch,
            asked.leader_epoch,
            asked.start_offset,
            asked.delivery_complete_count,
            batches,
            done,
        )

    return _each_partition(context, request, write)


def delete_share_group_state(
    context: RequestContext, request: messages.DeleteShareGroupStateRequest
) -> Result[messages.DeleteShareGroupStateResponse]:
    """Delete the state of share partitions, for the group coordinator (KIP-932)."""
    share, cluster = context.broker.share, context.broker.cluster

    def delete(key: SharePartitionKey, _asked: object, done: Done) -> None:
        cluster.check_asker(key.group_id, request.coordinator_epoch)
        share.check_exists(key)
        share.coordinator.delete(key, done)
        share.state_restarted(key)

    return _each_partition(context, request, delete)


def read_share_group_state_summary(
    context: RequestContext, request: messages.ReadShareGroupStateSummaryRequest
) -> Result[messages.ReadShareGroupStateSummaryResponse]:
    """Return start offsets of share partitions, without their batches (KIP-932, KIP-1226)."""
    share = context.broker.share

    def read(
        key: SharePartitionKey, _asked: object, done: Callable[[StateSummary | KafkaError], None]
    ) -> None:
        share.check_exists(key)
        share.coordinator.summary(key, done)

    return _each_partition(context, request, read, StateSummary._asdict)
