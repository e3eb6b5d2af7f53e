"""Messages about a cluster's errors."""

from __future__ import annotations

import pytest

from sharecore.errors import ErrorCode, KafkaError
from sharecore.jobs.cluster import explained


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (ErrorCode.NETWORK_EXCEPTION, "no broker answers at localhost:9092"),
        (ErrorCode.GROUP_ID_NOT_FOUND, "there is no share group g: sharecore groups list shows all"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "the user may not see group g: grant DESCRIBE on it"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the user may not read the topic"),
        (ErrorCode.SASL_AUTHENTICATION_FAILED, "the credentials"),
        (ErrorCode.UNSUPPORTED_VERSION, "Kafka 4.2 or later"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, "UNKNOWN_SERVER_ERROR: why"),
    ],
)
def test_what_to_do_is_said_where_it_is_known(code: ErrorCode, hint: str) -> None:
    told = explained(KafkaError(code, "why"), {"bootstrap.servers": "localhost:9092"}, "g")
    assert told.code == code
    assert hint in str(told)
    assert "why" in str(told)
