"""Those who wait for a write of a coordinator are told, whatever one of them does."""

from __future__ import annotations

import pytest

from sharecore.coordinator_log.topic_log import settle
from sharecore.errors import ErrorCode, KafkaError


@pytest.mark.parametrize("error", [None, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full")])
def test_one_that_raises_takes_no_other_with_it(
    error: KafkaError | None, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[KafkaError | None] = []

    def raising(_error: KafkaError | None) -> None:
        raise RuntimeError("of the caller's own")

    settle([told.append, raising, told.append], error)
    assert told == [error, error]
    assert "of the caller's own" in caplog.text
