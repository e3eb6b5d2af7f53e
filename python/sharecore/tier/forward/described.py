"""Adapts descriptions of upstream groups and transactions: topics hidden from the client are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from sharecore.broker.handlers.group_topics import HIDDEN_TOPICS
from sharecore.broker.requests.context import NOT_REQUESTED, RequestContext
from sharecore.errors import ErrorCode
from sharecore.security.acl import Operation, ResourceType
from sharecore.tier.forward.forwarder import RequestForwarder
from sharecore.tier.forward.shapes import Answer
from sharecore.tier.forward.subscriptions import Subscription
from sharecore.waiting import Steps

if TYPE_CHECKING:
    from sharecore.protocol import received


Described = TypeVar(
    "Described",
    "received.DescribeGroupsDescribedGroup",
    "received.ConsumerGroupDescribeDescribedGroup",
)


def adapt_classic_group(
    forwarder: RequestForwarder, context: RequestContext, asked: object, answer: Described
) -> Steps[Described]:
    """Return a description with the operations of this client, not those of the node's user."""
    yield
    if "authorized_operations" not in answer._fields or answer.authorized_operations == NOT_REQUESTED:
        return answer
    return answer._replace(authorized_operations=context.operations(ResourceType.GROUP, answer.group_id))


def adapt_consumer_group(
    subscription_of: Callable[[str, str], Subscription | None],
    forwarder: RequestForwarder,
    context: RequestContext,
    asked: object,
    answer: received.ConsumerGroupDescribeDescribedGroup,
) -> Steps[Answer]:
    """Return a consumer group's description, or an error if it has topics hidden from the client.

    Args:
        subscription_of: by group and member, the subscriptions resolved by this node.
    """
    members: list[received.ConsumerGroupDescribeMember] = []
    names: set[str] = set()
    for each in answer.members:
        member = _member(forwarder, each, subscription_of(answer.group_id, each.member_id))
        members.append(member)
        for assignment in (member.assignment, member.target_assignment):
            names.update(topic.topic_name for topic in assignment.topic_partitions)
        yield
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    if not all(name in seen for name in names):
        return {
            "group_id": answer.group_id,
            "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "error_message": HIDDEN_TOPICS,
        }
    return (yield from adapt_classic_group(forwarder, context, asked, answer._replace(members=members)))


def adapt_transaction(
    forwarder: RequestForwarder,
    context: RequestContext,
    asked: object,
    answer: received.DescribeTransactionsTransactionState,
) -> Steps[received.DescribeTransactionsTransactionState]:
    """Return the description of a transaction with only the topics visible to the client."""
    shown = (_shown(forwarder, topic.topic) for topic in answer.topics)
    names = (name for name in shown if name is not None)
    seen = yield from context.may_each(Operation.DESCRIBE, ResourceType.TOPIC, names)
    topics = []
    for topic in answer.topics:
        name = _shown(forwarder, topic.topic)
        if name is not None and name in seen:
            topics.append(topic._replace(topic=name))
        yield
    return answer._replace(topics=topics)


def _shown(forwarder: RequestForwarder, name: str) -> str | None:
    """Return the client's name of a topic in a transaction, including coordinators' topics."""
    return name if name in forwarder.own.closed else forwarder.own.client_name(name)


def _member(
    forwarder: RequestForwarder,
    member: received.ConsumerGroupDescribeMember,
    subscription: Subscription | None,
) -> received.ConsumerGroupDescribeMember:
    """Return a member as it subscribed, without topics hidden from clients of the tier."""
    answered = member._replace(
        subscribed_topic_names=_known(forwarder, member.subscribed_topic_names),
        assignment=_assignment(forwarder, member.assignment),
        target_assignment=_assignment(forwarder, member.target_assignment),
    )
    if subscription is None:
        return answered
    return answered._replace(
        subscribed_topic_names=sorted(subscription.names), subscribed_topic_regex=subscription.expression
    )


def _known(forwarder: RequestForwarder, names: Iterable[str]) -> list[str]:
    return [known for name in names if (known := forwarder.own.client_name(name)) is not None]


def _assignment(
    forwarder: RequestForwarder, assignment: received.ConsumerGroupDescribeAssignment
) -> received.ConsumerGroupDescribeAssignment:
    topics = [
        topic._replace(topic_name=name)
        for topic in assignment.topic_partitions
        if (name := forwarder.own.client_name(topic.topic_name)) is not None
    ]
    return assignment._replace(topic_partitions=topics)
