"""Kafka's error codes, the exception that carries them, and texts for other failures."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any


class ErrorCode(IntEnum):
    """Error codes of the Kafka protocol, as Apache Kafka 4.4.0 numbers them."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133
    GROUP_DELETION_FAILED = 134
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
    CONTROLLER_ID_NOT_REGISTERED = 136


NO_SUCH_PARTITION = "This server does not host this topic-partition."
"""Kafka's words for UNKNOWN_TOPIC_OR_PARTITION."""
NO_SUCH_TOPIC_ID = "This server does not host this topic ID."
"""And for UNKNOWN_TOPIC_ID."""


DENIED = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
"""Kafka's words for the refusals of some APIs; others have none."""


class PortableError(Exception):
    """An error that keeps its text when it is copied or sent to another process.

    Python would make it anew from its text, which is not what these take.
    """

    def __reduce__(self) -> tuple[Callable[..., PortableError], tuple[Any, ...]]:
        return _made_again, (type(self), self.args, vars(self))


def _made_again(
    kind: type[PortableError], arguments: tuple[Any, ...], attributes: dict[str, Any]
) -> PortableError:
    error = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error


class KafkaError(PortableError):
    """A refusal with a code that a Kafka client understands.

    Args:
        code: what goes on the wire.
        message: what was wrong and what to do, for a person; optional.
    """

    def __init__(self, code: ErrorCode | int, message: str = "") -> None:
        self.code = ErrorCode(code)
        self.message = message
        super().__init__(f"{self.code.name}: {message}" if message else self.code.name)


class ConfigError(PortableError):
    """An invalid configuration value; the text names the key, the value and the allowed values.

    Attributes:
        answer: the same in Kafka's words, for its tools.
    """

    def __init__(self, text: str, answer: str | None = None) -> None:
        super().__init__(text)
        self.answer = answer or text


class ConfigUnavailable(ConfigError):
    """A valid value that depends on something which is unavailable now: a later start may succeed."""


class PackageMissing(ConfigError):
    """A valid value that needs something which is not installed here."""


_EXTRAS = {
    "cronsim": "schedules",
    "cryptography": "broker",
    "google": "keda",
    "grpc": "keda",
    "jwt": "broker",
    "opentelemetry": "broker",
    "scramp": "broker",
    "starlette": "page",
    "textual": "page",
    "uvicorn": "page",
    "pandas": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
}
"""Packages that sharecore does not bring without an extra."""
_DEPENDENCIES = frozenset({"confluent_kafka", "kio", "prometheus_client", "rich", "typer"})


def missing(error: ModuleNotFoundError) -> str:
    """Return which package is missing, and the command that installs it."""
    package = str(error.name).partition(".")[0]
    if package not in _EXTRAS and package not in _DEPENDENCIES:
        return f"the module {error.name} is missing; install its package in the environment of sharecore"
    extra = f"[{_EXTRAS[package]}]" if package in _EXTRAS else ""
    return f"{package} is missing; run: pip install 'sharecore{extra}'"


_LISTEN_ADVICE = {
    errno.EADDRINUSE: "another process uses this port; stop it, or choose another port",
    errno.EADDRNOTAVAIL: "this machine has no such address",
    errno.EACCES: "this user may not use the port; ports below 1024 need CAP_NET_BIND_SERVICE",
}
_PATH_ADVICE = {
    errno.EACCES: "this user has no right to it; change its owner or mode, or choose another place",
    errno.EPERM: "this user has no right to it; change its owner or mode, or choose another place",
    errno.EEXIST: "it is there already, and no directory",
    errno.ENOTDIR: "a part of this path is a file",
    errno.ENOENT: "a part of this path does not exist, and cannot be created",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of this user is used up",
    errno.EMFILE: "too many open files; raise the limit (ulimit -n)",
}


@contextmanager
def listening_on(host: str | None, port: int) -> Iterator[None]:
    """Turn an OSError into one line with the address and advice."""
    try:
        yield
    except OSError as error:
        # asyncio's text also contains the address, and is long; a failed name lookup has no errno
        number = error.errno or 0
        why = _LISTEN_ADVICE.get(number) or (os.strerror(number) if number > 0 else error.strerror or error)
        raise OSError(f"cannot listen on {host or ''}:{port}: {why}") from None


def os_error_line(error: OSError) -> str:
    """Return one line for an error of the operating system: the file, the problem and advice."""
    if error.filename is None or not error.errno:
        return str(error)
    why = _PATH_ADVICE.get(error.errno) or os.strerror(error.errno)
    return f"{os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename}: {why}"
