"""ConsumerGroupHeartbeat: request and answer of the coordinator."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from sharecore.coordinator.consumer.member import Partition
from sharecore.coordinator.expressions import fault_of
from sharecore.errors import ErrorCode, KafkaError

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2


class Heartbeat(NamedTuple):
    """A member's heartbeat; None means unchanged since the last one.

    Args:
        rebalance_timeout_ms: timeout for revoking partitions; -1 if unchanged.
        owned: partitions that it owns.
        lists_topics: whether it includes its owned partitions, even if empty.
        may_describe: returns whether the member may describe a topic that an expression matches.
        expression_fault: why its expression is invalid; empty if valid, None if not checked.
    """

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_names: Collection[str] | None = None
    subscribed_regex: str | None = None
    server_assignor: str | None = None
    owned: frozenset[Partition] | None = None
    lists_topics: bool = False
    client_id: str = ""
    client_host: str = ""
    may_describe: Callable[[str], bool] = lambda topic: True
    expression_fault: str | None = None

    @property
    def is_full(self) -> bool:
        """Whether all fields are set, as after a member lost its state."""
        subscribed = self.subscribed_names is not None or self.subscribed_regex is not None
        return subscribed and self.owned is not None and self.rebalance_timeout_ms != -1

    def check(self, assignors: Collection[str]) -> None:
        """Raise KafkaError (INVALID_REQUEST, UNSUPPORTED_ASSIGNOR) for invalid fields."""
        if not self.group_id.strip():
            raise _invalid("GroupId can't be empty.")
        # versions in which the broker assigns the member id may join with a blank one
        if not self.member_id.strip() and (self.epoch > JOIN_EPOCH or self.epoch == LEAVE_EPOCH):
            raise _invalid("MemberId can't be empty.")
        if self.instance_id is not None and not self.instance_id.strip():
            raise _invalid("InstanceId can't be empty.")
        if self.rack_id is not None and not self.rack_id.strip():
            raise _invalid("RackId can't be empty.")
        if self.epoch == JOIN_EPOCH:
            if self.rebalance_timeout_ms == -1:
                raise _invalid("RebalanceTimeoutMs must be provided in first request.")
            if self.owned is None or self.owned or self.lists_topics:
                raise _invalid("TopicPartitions must be empty when (re-)joining.")
            if self.subscribed_names is None and self.subscribed_regex is None:
                raise _invalid(
                    "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
                )
        elif self.epoch == LEAVE_STATIC_EPOCH and self.instance_id is None:
            raise _invalid("InstanceId can't be null.")
        elif self.epoch < LEAVE_STATIC_EPOCH:
            raise _invalid("MemberEpoch is invalid.")
        if self.server_assignor is not None and self.server_assignor not in assignors:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                f"ServerAssignor {self.server_assignor} is not supported. "
                f"Supported assignors: {', '.join(assignors)}.",
            )

    def check_expression(self) -> None:
        """Raise KafkaError (INVALID_REGULAR_EXPRESSION) if the expression is invalid."""
        if not self.subscribed_regex:
            return
        fault = fault_of(self.subscribed_regex) if self.expression_fault is None else self.expression_fault
        if fault:
            raise KafkaError(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"SubscribedTopicRegex `{self.subscribed_regex}` is not a valid regular expression: {fault}.",
            )


class HeartbeatAnswer(NamedTuple):
    """Answer to a heartbeat; an assignment of None means unchanged."""

    member_id: str
    epoch: int
    heartbeat_ms: int = 0
    assigned: Collection[Partition] | None = None


Answered = Callable[[HeartbeatAnswer | KafkaError], None]
"""Called once the change is durable, or with an error."""


def fenced_instance(request: Heartbeat, owner: str) -> KafkaError:
    """Return the error for an instance id that another member owns."""
    return KafkaError(
        ErrorCode.FENCED_INSTANCE_ID,
        f"Static member {request.member_id} with instance id {request.instance_id} was fenced by "
        f"member {owner}.",
    )


def unknown_instance(request: Heartbeat) -> KafkaError:
    """Return the error for an instance id without a member."""
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
