"""Persister errors as error codes of share-partition clients (KIP-932, "Error codes")."""

from __future__ import annotations

from sharecore.errors import ErrorCode, KafkaError

_FENCED = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})
_NOT_AVAILABLE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
# retriable for consumers: the state does not exist yet, or the coordinator cannot answer
_ON_LOADING = {
    ErrorCode.INVALID_REQUEST: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.KAFKA_STORAGE_ERROR,
}


def is_fenced(error: KafkaError) -> bool:
    """Return whether another leader or another state epoch has taken over."""
    return error.code in _FENCED


def client_error(error: KafkaError) -> KafkaError:
    """Return the client's error for an acknowledgement that could not be persisted."""
    if error.code in _FENCED:
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message)
    if error.code in _NOT_AVAILABLE:
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
    return error


def load_error(error: KafkaError) -> KafkaError:
    """Return the client's error for a share partition that could not be loaded."""
    error = client_error(error)
    return KafkaError(_ON_LOADING.get(error.code, error.code), error.message)
