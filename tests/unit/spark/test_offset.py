from __future__ import annotations

import json
from uuid import UUID

import pytest

from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.errors import ConfigError
from sharecore.spark.offset import Offset, Outcome, SharePartition, kinds_of
from sharecore.spark.options import read_options
from sharecore.spark.ranges import Ranges

KEY = SharePartition("t", UUID(int=7), 2)
NEEDED = {"kafka.bootstrap.servers": "localhost:9092", "group.id": "g", "subscribe": "a, b"}


def test_an_offset_survives_the_checkpoint() -> None:
    offset = Offset(3, "g", {KEY: Ranges([(0, 9, 1), (12, 14, 2)])}, {KEY: Ranges([(20, 20, 3)])})
    assert Offset.from_json(json.loads(json.dumps(offset.to_json()))) == offset
    with pytest.raises(ValueError, match="checkpointLocation"):
        Offset.from_json({"t": {"0": 7}})


def test_rows_are_accepted_unless_the_job_says_otherwise_of_that_delivery() -> None:
    leased = {KEY: Ranges([(0, 9, 1), (10, 14, 2)])}
    accept, release, reject = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
    outcomes = [
        Outcome("t", 2, 3, 4, 1, release),
        Outcome("t", 2, 8, 11, 2, reject),
        Outcome("other", 2, 0, 9, 1, reject),
    ]
    assert list(kinds_of(leased, outcomes)[KEY]) == [
        (0, 2, accept),
        (3, 4, release),
        (5, 9, accept),
        (10, 11, reject),
        (12, 14, accept),
    ]


def test_options_are_named_as_spark_users_know_them() -> None:
    options = read_options({**NEEDED, "MAXRECORDSPERTRIGGER": "7", "kafka.fetch.max.bytes": "1000"})
    assert options.topics == ("a", "b")
    assert (options.records_max, options.client.fetch_max_bytes) == (7, 1000)
    assert options.lock_renew
    assert options.fail_on_data_loss


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"subscribes": "a"}, "did you mean subscribe"),
        ({"subscribe": ""}, "subscribe is missing"),
        ({"group.id": ""}, "group.id is missing"),
        ({"maxRecordsPerTrigger": "0"}, "whole number"),
        ({"kafka.bogus": "1"}, "not a setting"),
        ({"kafka.share.acknowledgement.mode": "implicit"}, "the source decides"),
        ({"lock.renew": "yes"}, "true or false"),
        ({"includeHeaders": "1"}, "includeHeaders='1': must be true or false"),
        ({"startingOffsets": '{"t":{"0":7}}'}, "earliest, latest or by_duration:PT1H"),
        ({"maxOffsetsPerTrigger": "7"}, "did you mean maxRecordsPerTrigger"),
    ],
)
def test_wrong_options_are_told(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_options(NEEDED | given)
