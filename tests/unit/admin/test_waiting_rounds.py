"""Rounds of the exporter's questions why records wait, with brokers of all kinds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sharecore.admin import exported_waiting
from sharecore.admin.exported_waiting import ROUNDS_UNASKED, WaitingRounds
from sharecore.admin.overview import GroupOverview, Position
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.metrics.exposition import Lines
from sharecore.protocol.calls import Call

HELD_BACK = "sharecore.held.back"
GONE = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "node 1 hangs")
Settings = Mapping[str, str]
Answer = Callable[[str, list[str]], Settings | ErrorCode]
"""What a broker reports of a group: by the settings that are asked for."""


class Brokers:
    """Brokers that answer for every group, or fail."""

    def __init__(self, *answers: Answer | KafkaError) -> None:
        self._answers = answers
        self.asked = 0

    async def nodes(self) -> list[int]:
        return [*range(len(self._answers))]

    async def node(self, node: int, call: Call[Any], message: Any) -> Any:
        self.asked += 1
        answer = self._answers[node]
        if isinstance(answer, KafkaError):
            raise answer
        results = []
        for each in message["resources"]:
            group, names = each["resource_name"], each["configuration_keys"]
            found = answer(group, names)
            code = found if isinstance(found, ErrorCode) else ErrorCode.NONE
            entries = {} if isinstance(found, ErrorCode) else found
            configs = [SimpleNamespace(name=n, value=v) for n, v in entries.items() if n in names]
            results.append(
                SimpleNamespace(error_code=code, error_message="", resource_name=group, configs=configs)
            )
        return SimpleNamespace(results=results)


def sharecores(waits: Mapping[str, Any], **settings: str) -> Answer:
    """Return a broker of sharecore, which leads the share partitions in `waits`."""
    own = {name.replace("_", "."): each for name, each in settings.items()}
    reasons = {f"sharecore.waiting.{place}": json.dumps(each) for place, each in waits.items()}
    return lambda group, names: {"share.paused": "false", HELD_BACK: "[]"} | own | reasons


def apaches(group: str, names: list[str]) -> Settings:
    return {}


def lagging(group_id: str, **lags: list[int]) -> GroupOverview:
    group = GroupOverview(group_id, "Stable")
    for topic, of_topic in lags.items():
        group.positions[topic] = {index: Position(0, lag) for index, lag in enumerate(of_topic)}
    return group


def shown(rounds: WaitingRounds) -> list[str]:
    lines = Lines()
    rounds.show({}, lines)
    return [line for line in lines.text().decode().splitlines() if not line.startswith("#")]


def looked(rounds: WaitingRounds, *groups: GroupOverview) -> str:
    return asyncio.run(rounds.look(groups))


def rounds_of(*answers: Answer | KafkaError) -> tuple[WaitingRounds, Brokers]:
    brokers = Brokers(*answers)
    return WaitingRounds(cast(Transport, brokers)), brokers


@pytest.mark.parametrize(
    ("of_brokers", "state"),
    [(([5], [None]), 2), (([None], [None]), 1), (([], []), 0)],
    ids=["open", "half open", "closed"],
)
def test_brokers_that_each_report_a_breaker_make_one_sample(
    of_brokers: tuple[list[int | None], ...], state: int
) -> None:
    answers = []
    for dues in of_brokers:
        held_back = [{"reason": "breaker", "fetches": 0, "dueMs": due} for due in dues]
        answers.append(sharecores({}, **{HELD_BACK: json.dumps(held_back), "share.breaker.percent": "50"}))
    rounds, _ = rounds_of(*answers)
    assert looked(rounds, lagging("g")) == ""
    breakers = [line for line in shown(rounds) if "breaker_state" in line]
    assert breakers == [f'sharecore_share_group_breaker_state{{group="g"}} {state}']


def test_a_group_without_a_breaker_has_no_state_of_one() -> None:
    rounds, _ = rounds_of(sharecores({}, share_breaker_percent="0"))
    looked(rounds, lagging("g"))
    assert shown(rounds) == ['sharecore_share_group_paused{group="g"} 0']


def test_what_other_brokers_report_is_kept_and_the_gap_logged_once() -> None:
    order = [{"reason": "order", "records": 2}]
    rounds, _ = rounds_of(sharecores({"known.0": order, "half.0": order}, share_ordering="key"), GONE)
    group = lagging("g", known=[3], half=[3, 3])
    said = looked(rounds, group)
    assert said == "metrics of why records wait are incomplete: REQUEST_TIMED_OUT: node 1 hangs"
    assert looked(rounds, group) == ""
    assert shown(rounds) == [
        'sharecore_share_group_paused{group="g"} 0',
        'sharecore_share_group_records_waiting{group="g",topic="known",reason="order"} 2',
    ]


def test_a_missing_right_is_named_and_hides_no_other_group() -> None:
    own = sharecores({})
    rounds, _ = rounds_of(
        lambda group, names: own(group, names) if group == "mine" else ErrorCode.GROUP_AUTHORIZATION_FAILED
    )
    said = looked(rounds, lagging("mine"), *(lagging(f"other{number}") for number in range(5)))
    assert "the right DESCRIBE_CONFIGS on group other0 is missing" in said
    assert said.endswith("; and 2 more")
    assert shown(rounds) == ['sharecore_share_group_paused{group="mine"} 0']


def test_brokers_that_report_nothing_are_asked_seldom() -> None:
    rounds, brokers = rounds_of(apaches)
    for _ in range(2 * (1 + ROUNDS_UNASKED)):
        assert looked(rounds, lagging("g", t=[3])) == ""
    assert brokers.asked == 2
    assert shown(rounds) == []


def test_a_topic_has_sums_only_if_all_of_its_partitions_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exported_waiting, "PARTITIONS_MAX", 3)
    waits = {f"{topic}.{index}": [{"reason": "backoff", "records": 1}] for topic in "abc" for index in (0, 1)}
    rounds, _ = rounds_of(sharecores(waits, **{"share.retry.backoff.ms": "60000"}))
    looked(rounds, lagging("g", a=[4, 1], b=[9, 9], c=[1, 0]))
    assert [line for line in shown(rounds) if "records_waiting" in line] == [
        'sharecore_share_group_records_waiting{group="g",topic="b",reason="backoff"} 2',
        'sharecore_share_group_records_waiting{group="g",topic="c",reason="backoff"} 1',
    ]


def test_odd_reasons_make_no_odd_samples() -> None:
    held_back = [
        {"reason": 'a"b', "fetches": 1},
        {"reason": "rate", "fetches": "many"},
        {"reason": "rate", "fetches": 10**400},
        {"reason": ["rate"], "fetches": 1},
        {"reason": "breaker", "dueMs": "soon"},
    ]
    waits = {"t.0": [{"reason": "backoff", "records": "all"}, {"reason": "order", "records": -1, "most": []}]}
    own = sharecores(waits, **{HELD_BACK: json.dumps(held_back), "share.ordering": "key"})
    rounds, _ = rounds_of(own)
    looked(rounds, lagging("g", t=[3]))
    assert shown(rounds) == [
        'sharecore_share_group_paused{group="g"} 0',
        'sharecore_share_group_breaker_state{group="g"} 2',
        'sharecore_share_group_fetches_held_back{group="g",reason="a\\"b"} 1',
        'sharecore_share_group_fetches_held_back{group="g",reason="rate"} 0',
        'sharecore_share_group_records_waiting{group="g",topic="t",reason="backoff"} 0',
        'sharecore_share_group_records_waiting{group="g",topic="t",reason="order"} 0',
    ]
