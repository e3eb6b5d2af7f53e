"""Errors passed to another process, as by process pools and Spark."""

from __future__ import annotations

import copy
import pickle

import pytest

from sharecore.client import DeserializationError, Record
from sharecore.client.errors import AuthenticationFailed, CorruptRecords
from sharecore.client.producing.records import RecordsNotSent
from sharecore.errors import ConfigError, ErrorCode, KafkaError, PortableError

ERRORS = [
    KafkaError(ErrorCode.GROUP_ID_NOT_FOUND),
    KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "a block does not match its checksum"),
    ConfigError("log.segment.bytes=1 is too little", "Invalid value 1"),
    AuthenticationFailed("wrong password"),
    CorruptRecords("jobs", 3, [(4, 9)], "checksum"),
    RecordsNotSent([KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no answer")]),
    DeserializationError(Record(topic="jobs", value=b"7"), ValueError("no number")),
]


@pytest.mark.parametrize("error", ERRORS, ids=[type(error).__name__ for error in ERRORS])
@pytest.mark.parametrize("made_again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_made_again_says_the_same(error: PortableError, made_again: object) -> None:
    assert callable(made_again)
    found = made_again(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found).keys() == vars(error).keys()
    assert repr(vars(found)) == repr(vars(error))
