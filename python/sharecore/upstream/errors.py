"""What goes wrong with the existing cluster, said so that an operator knows what to do."""

from __future__ import annotations

from sharecore.errors import ErrorCode, KafkaError

NOT_ALLOWED = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
    }
)
"""Refusals that last until somebody gives the node's user what it lacks."""


class NotWritten(KafkaError):
    """An append that is surely not in the log; the writer goes on."""


class Fenced(KafkaError):
    """Somebody else writes the partition, or has opened it: its writer is closed."""


class Unresolved(KafkaError):
    """Whether an append is in the log is not known, and cannot be found out by asking again: the writer is
    closed, and the log has to be read.
    """


class Truncated(KafkaError):
    """The log upstream lost records that were fetched (an unclean leader election).

    Attributes:
        end_offset: where the log diverges from what was fetched.
    """

    def __init__(self, topic: str, partition: int, end_offset: int) -> None:
        self.end_offset = end_offset
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{topic}-{partition} upstream was truncated to offset {end_offset}: what was read behind it is "
            "not what it holds now",
        )


_TOO_FEW_IN_SYNC = "fewer replicas of {what} are in sync than its min.insync.replicas asks for"
_REMEDIES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "give the user of this node {right} on topic {topic}",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "give the user of this node {right} on group {what}",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "give the user of this node {right} on transactional id {what}"
    ),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "give the user of this node {right} on the cluster",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no {what}: create it, or give the right to describe it",
    ErrorCode.INVALID_REPLICATION_FACTOR: "there are fewer brokers than replicas are asked for",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it: create {what} by hand",
    ErrorCode.NOT_ENOUGH_REPLICAS: _TOO_FEW_IN_SYNC,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _TOO_FEW_IN_SYNC,
    ErrorCode.MESSAGE_TOO_LARGE: "raise max.message.bytes of {topic}",
    ErrorCode.RECORD_LIST_TOO_LARGE: "raise max.message.bytes of {topic}",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "raise group.max.size upstream",
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "the session time-out must lie within group.min.session.timeout.ms and group.max.session.timeout.ms "
        "upstream"
    ),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "{what} is used by something else: name another group",
    ErrorCode.FENCED_INSTANCE_ID: "another process has joined with the same node id: stop one of them",
}


def refusal(
    code: int, doing: str, what: str, right: str = "", message: str | None = None, *, topic: str = ""
) -> KafkaError:
    """Return an error of the existing cluster, in one line.

    Args:
        doing: what was asked for, such as "reading".
        what: the topic, partition, group or transactional id.
        right: the one that it takes, such as Read.
        message: the cluster's own words.
        topic: that rights and settings are of, where `what` is one of its partitions.
    """
    try:
        known = ErrorCode(code)
    except ValueError:
        known = ErrorCode.UNKNOWN_SERVER_ERROR
        message = f"error {code}, which is not known"
    remedy = _REMEDIES.get(known, "").format(what=what, right=right, topic=topic or what)
    parts = [f"upstream refused {doing} {what}".rstrip(), message or "", remedy]
    return KafkaError(known, ": ".join(part.rstrip(".") for part in parts if part))
