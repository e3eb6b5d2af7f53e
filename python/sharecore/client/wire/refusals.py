"""Errors with the missing permission: brokers name neither it nor its resource."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, TypeVar

from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import ApiKey
from sharecore.topic_names import NAME_LENGTH_MAX

Answer = TypeVar("Answer")
Missing = Mapping[ErrorCode, str]
"""The permission needed, by error code, such as `READ on topic jobs`."""
_NONE: Missing = MappingProxyType({})
_CHANGES = frozenset({ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS})
_READS_GROUP = frozenset(
    {
        *(ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT),
        *(ApiKey.LEAVE_GROUP, ApiKey.OFFSET_COMMIT),
    }
)
_DELETES_GROUP = frozenset({ApiKey.DELETE_GROUPS, ApiKey.DELETE_SHARE_GROUP_OFFSETS, ApiKey.OFFSET_DELETE})


_CHANGES_TOPIC = {
    ApiKey.CREATE_TOPICS: "CREATE",
    ApiKey.CREATE_PARTITIONS: "ALTER",
    ApiKey.DELETE_TOPICS: "DELETE",
}


def on_changed(api_key: ApiKey, topic: object) -> Missing:
    """Return the permission needed to change a topic, from the response about that topic."""
    return on_topic(_CHANGES_TOPIC.get(api_key, "ALTER"), getattr(topic, "name", None) or "")


def on_settings(api_key: ApiKey, name: str) -> Missing:
    """Return the permissions needed for a resource's settings."""
    right = "DESCRIBE_CONFIGS" if api_key is ApiKey.DESCRIBE_CONFIGS else "ALTER_CONFIGS"
    return {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: f"{right} on topic {name}",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: f"{right} on group {name}",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: f"{right} on the cluster",
    }


def on_topic(right: str, topic: str) -> Missing:
    """Return a permission on a topic."""
    return {ErrorCode.TOPIC_AUTHORIZATION_FAILED: f"{right} on topic {topic}"}


def on_group(api_key: ApiKey, group_id: str) -> Missing:
    """Return the permissions needed for a request about a group."""
    right = "READ" if api_key in _READS_GROUP else "DELETE" if api_key in _DELETES_GROUP else "DESCRIBE"
    return {
        ErrorCode.GROUP_AUTHORIZATION_FAILED: f"{right} on group {group_id}",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: f"DESCRIBE on a topic of group {group_id}",
    }


def on_cluster(api_key: ApiKey) -> Missing:
    """Return the permission on the cluster needed for a request."""
    right = "ALTER" if api_key in _CHANGES else "DESCRIBE"
    return {ErrorCode.CLUSTER_AUTHORIZATION_FAILED: f"{right} on the cluster"}


def refused_topic(name: str, code: int) -> KafkaError:
    """Return the error of a topic missing from the metadata."""
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return KafkaError(code, f"the right DESCRIBE on topic {name} is missing")
    if code == ErrorCode.INVALID_TOPIC_EXCEPTION:
        allowed = f"1 to {NAME_LENGTH_MAX} of a-z, A-Z, 0-9, '.', '_' and '-'"
        return KafkaError(code, f"{name!r} is not a topic name; allowed: {allowed}")
    return KafkaError(code, f"topic {name}")


class Answered(Protocol):
    """A response, or a part of one, with an error and its text."""

    @property
    def error_code(self) -> int: ...

    @property
    def error_message(self) -> str | None: ...


def group_error(answer: Answered, group_id: str) -> KafkaError:
    """Return the error of a response to a group member, or of a coordinator lookup."""
    error = KafkaError(answer.error_code, answer.error_message or f"group {group_id}")
    return worded(error, {ErrorCode.GROUP_AUTHORIZATION_FAILED: f"READ on group {group_id}"})


def worded(error: KafkaError, missing: Missing) -> KafkaError:
    """Return an error with the missing permission."""
    text = missing.get(error.code)
    return error if text is None else KafkaError(error.code, f"the right {text} is missing")


class Coded(Protocol):
    """A response, or a part of one, with an error."""

    @property
    def error_code(self) -> int: ...


def error_of(answer: Coded, missing: Missing = _NONE) -> KafkaError:
    """Return the error in a response, or in a part of one."""
    return refusal(answer.error_code, getattr(answer, "error_message", None), missing)


def refusal(code: int, message: str | None, missing: Missing = _NONE) -> KafkaError:
    """Return the error with a code and a broker's message."""
    return worded(KafkaError(code, message or ""), missing)


def accept(answer: Answer, missing: Missing = _NONE) -> Answer:
    """Return the response; raise KafkaError if it contains an error."""
    if code := getattr(answer, "error_code", 0):
        raise refusal(code, getattr(answer, "error_message", None), missing)
    return answer
