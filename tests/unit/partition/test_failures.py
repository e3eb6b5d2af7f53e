from __future__ import annotations

import pytest

from sharecore.errors import ErrorCode, KafkaError
from sharecore.partition.failures import client_error, is_fenced, load_error


@pytest.mark.parametrize(
    ("code", "acknowledging", "loading"),
    [
        ("FENCED_STATE_EPOCH", "NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER"),
        ("FENCED_LEADER_EPOCH", "NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER"),
        ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR"),
        ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR"),
        ("INVALID_REQUEST", "INVALID_REQUEST", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("KAFKA_STORAGE_ERROR", "KAFKA_STORAGE_ERROR", "KAFKA_STORAGE_ERROR"),
    ],
)
def test_clients_are_told_what_they_know_how_to_take(code: str, acknowledging: str, loading: str) -> None:
    error = KafkaError(ErrorCode[code], "why")
    assert client_error(error).code.name == acknowledging
    assert load_error(error).code.name == loading
    assert client_error(error).message == load_error(error).message == "why"
    assert is_fenced(error) == code.startswith("FENCED")
