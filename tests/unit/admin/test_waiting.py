"""Why records wait, as brokers of all kinds report it, or do not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest

from sharecore.admin.waiting import Waiting, describe_reason, waiting_of, waiting_of_groups
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls
from sharecore.protocol.calls import Call

PARTITION = TopicPartition("jobs", 0)
HELD_BACK, WAITS = "sharecore.held.back", "sharecore.waiting.jobs.0"
BREAKER = {"reason": "breaker", "setting": "share.breaker.percent", "dueMs": 0}
WINDOW = {"reason": "window", "setting": "share.partition.max.waiting", "limit": 7}


def result(configs: Mapping[str, str] = MappingProxyType({}), code: int = 0, group: str = "g") -> Any:
    entries = [SimpleNamespace(name=name, value=value) for name, value in configs.items()]
    return SimpleNamespace(error_code=code, error_message="", resource_name=group, configs=entries)


def answer(configs: Mapping[str, str] = MappingProxyType({}), code: int = 0) -> Any:
    return SimpleNamespace(results=[result(configs, code)])


def reported(held_back: Any = (), waits: Any = ()) -> Any:
    return answer({HELD_BACK: json.dumps(held_back), WAITS: json.dumps(waits)})


class Brokers:
    """Brokers with prepared answers, or failures."""

    def __init__(self, *answers: Any) -> None:
        self._answers = answers
        self.requests = 0

    async def nodes(self) -> list[int]:
        return [*range(len(self._answers))]

    async def node(self, node: int, call: Call[Any], message: Any) -> Any:
        assert call is calls.DESCRIBE_CONFIGS
        self.requests += 1
        found = self._answers[node]
        if isinstance(found, BaseException):
            raise found
        return found


def asked(*answers: Any) -> Waiting:
    return asyncio.run(waiting_of(cast(Transport, Brokers(*answers)), "g", [PARTITION]))


def test_the_reasons_of_all_brokers_count() -> None:
    paused = answer({"share.paused": "true", HELD_BACK: "[]"})
    found = asked(reported(), paused, reported([BREAKER], [WINDOW]))
    assert found.missing == ""
    assert found.of_group() == [
        "paused until it is resumed",
        "the breaker of share.breaker.percent is open until 1970-01-01T00:00:00Z",
    ]
    assert found.of_partitions() == ["jobs-0: no new records: share.partition.max.waiting=7 is reached"]


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (KafkaError(ErrorCode.REQUEST_TIMED_OUT, "node 1 is gone"), "REQUEST_TIMED_OUT: node 1 is gone"),
        (ConnectionResetError("reset by peer"), "reset by peer"),
        (
            answer(code=ErrorCode.GROUP_AUTHORIZATION_FAILED),
            "GROUP_AUTHORIZATION_FAILED: the right DESCRIBE_CONFIGS on group g is missing",
        ),
        (answer(code=ErrorCode.INVALID_REQUEST), "INVALID_REQUEST"),
        (answer({HELD_BACK: "not JSON"}), "does not know"),
        (answer({HELD_BACK: '{"reason": "rate"}'}), "does not know"),
        (answer({HELD_BACK: '["rate"]'}), "does not know"),
        (answer({HELD_BACK: "[" * 100_000}), "does not know"),
        (SimpleNamespace(results=[]), "broker 1 does not answer for this group"),
    ],
)
def test_what_one_broker_does_not_report_is_missing_in_one_line_and_the_rest_is_there(
    trouble: Any, words: str
) -> None:
    found = asked(reported(waits=[WINDOW]), trouble)
    assert found.partitions == {PARTITION: [WINDOW]}
    assert words in found.missing
    assert found.gaps() == [f"why records wait is not known: {found.missing}"]


def test_groups_are_told_apart_by_their_names() -> None:
    of_groups = {"a": {HELD_BACK: json.dumps([BREAKER])}, "b": {HELD_BACK: "[]"}}
    results = [result(configs, group=group) for group, configs in reversed(of_groups.items())]
    brokers = Brokers(SimpleNamespace(results=[*results, result(group="c")]))
    found = asyncio.run(waiting_of_groups(cast(Transport, brokers), dict.fromkeys("ab", ())))
    assert {group: each.fetches for group, each in found.items()} == {"a": [BREAKER], "b": []}


def test_a_broker_that_fails_once_is_not_asked_again() -> None:
    groups = [f"g{number}" for number in range(1000)]
    gone = Brokers(KafkaError(ErrorCode.REQUEST_TIMED_OUT, "node 0 hangs"))
    found = asyncio.run(waiting_of_groups(cast(Transport, gone), dict.fromkeys(groups, ())))
    assert gone.requests == 1
    assert {each.missing for each in found.values()} == {"REQUEST_TIMED_OUT: node 0 hangs"}


def test_a_reason_without_a_name_is_dropped() -> None:
    assert asked(reported([{"reason": ["rate"]}, BREAKER])).fetches == [BREAKER]


def test_a_cluster_that_knows_no_reasons_says_so_once() -> None:
    found = asked(answer(), answer())
    assert found.missing == "the brokers do not report it, as they are not sharecore's, or older"
    refused = answer(code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert asked(refused, refused).missing.count("GROUP_AUTHORIZATION_FAILED") == 1


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ({"reason": "gravity"}, "gravity"),
        ({"reason": "backoff"}, "0 records in back-off"),
        ({"reason": "order"}, "order"),
        ({"reason": "backoff", "records": 1, "dueMs": "soon"}, "backoff"),
        ({"reason": "idle"}, "its records wait for a member that fetches"),
        ({"reason": "idle", "records": 2}, "2 records wait for a member that fetches"),
        ({"reason": "idle", "records": 1}, "1 record waits for a member that fetches"),
        (
            {"reason": "idle", "records": 2, "returned": 1},
            "2 records wait for a member that fetches; a back-off begins then for 1 record delivered before",
        ),
    ],
)
def test_a_reason_of_another_version_is_shown_as_far_as_it_is_known(
    reason: dict[str, Any], words: str
) -> None:
    assert describe_reason(reason) == words
