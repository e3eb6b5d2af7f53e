"""Errors of the upstream cluster, with remedies for operators."""

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
"""Errors that last until the node's user gets a permission."""

OUT_OF_DATE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
"""Errors for a group's member that the coordinator does not know, or not in this generation."""


class NotWritten(KafkaError):
    """An append that is definitely not in the log; the writer continues."""


class Fenced(KafkaError):
    """Another writer has opened or written the partition: this writer is closed."""


class Unresolved(KafkaError):
    """It is unknown whether an append is in the log, and a retry cannot find out.

    The writer is closed, and the log must be read.
    """


class Truncated(KafkaError):
    """The upstream log lost fetched records (unclean leader election).

    Attributes:
        end_offset: the offset at which the log diverges from the fetched records.
    """

    def __init__(self, topic: str, partition: int, end_offset: int) -> None:
        self.end_offset = end_offset
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{topic}-{partition} upstream was truncated to offset {end_offset}: records read after it are "
            "no longer in the log",
        )


_TOO_FEW_IN_SYNC = "{what} has fewer in-sync replicas than its min.insync.replicas"
_REMEDIES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "give the user of this node {right} on topic {topic}",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "give the user of this node {right} on group {what}",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "give the user of this node {right} on transactional id {what}"
    ),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "give the user of this node {right} on the cluster",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "{what} does not exist: create it, or give the right Describe",
    ErrorCode.INVALID_REPLICATION_FACTOR: "there are fewer brokers than requested replicas",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it: create {what} by hand",
    ErrorCode.NOT_ENOUGH_REPLICAS: _TOO_FEW_IN_SYNC,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _TOO_FEW_IN_SYNC,
    ErrorCode.MESSAGE_TOO_LARGE: "raise max.message.bytes of {topic}",
    ErrorCode.RECORD_LIST_TOO_LARGE: "raise max.message.bytes of {topic}",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "raise group.max.size upstream",
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "the session timeout must lie within group.min.session.timeout.ms and group.max.session.timeout.ms "
        "upstream"
    ),
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "{what} is used by something else: name another group",
    ErrorCode.FENCED_INSTANCE_ID: "another process has joined with the same node id: stop one of them",
}


def refusal(
    code: int, doing: str, what: str, right: str = "", message: str | None = None, *, topic: str = ""
) -> KafkaError:
    """Return a one-line error of the upstream cluster.

    Args:
        doing: the operation, such as "reading".
        what: the topic, partition, group or transactional id.
        right: the required permission, such as Read.
        message: the cluster's message.
        topic: the topic of permissions and settings, if `what` is one of its partitions.
    """
    try:
        known = ErrorCode(code)
    except ValueError:
        known = ErrorCode.UNKNOWN_SERVER_ERROR
        message = f"error {code}, an unknown code"
    remedy = _REMEDIES.get(known, "").format(what=what, right=right, topic=topic or what)
    parts = [f"upstream refused {doing} {what}".rstrip(), message or "", remedy]
    return KafkaError(known, ": ".join(part.rstrip(".") for part in parts if part))
