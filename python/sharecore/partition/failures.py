"""Errors of the persister, as the clients of a share partition are told of them (KIP-932, "Error codes")."""

from __future__ import annotations

from sharecore.errors import ErrorCode, KafkaError

_FENCED = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})
_NOT_AVAILABLE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
# consumers try these again: there is no state yet, or the coordinator cannot tell
_ON_LOADING = {
    ErrorCode.INVALID_REQUEST: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.KAFKA_STORAGE_ERROR,
}


def is_fenced(error: KafkaError) -> bool:
    """Whether another leader, or another state epoch, has taken over."""
    return error.code in _FENCED


def client_error(error: KafkaError) -> KafkaError:
    """Why an acknowledgement could not be written."""
    if error.code in _FENCED:
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message)
    if error.code in _NOT_AVAILABLE:
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
    return error


def load_error(error: KafkaError) -> KafkaError:
    """Why a share partition could not be loaded."""
    error = client_error(error)
    return KafkaError(_ON_LOADING.get(error.code, error.code), error.message)
