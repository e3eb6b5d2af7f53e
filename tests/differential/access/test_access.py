"""Some principals of the matrix; `make differential-access` plays all of it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest
from tests.differential.access import scram_exchanges
from tests.differential.access.brokers import Guarded
from tests.differential.access.case import Case, twice
from tests.differential.access.cases import cases
from tests.differential.access.generated_cases import generated
from tests.differential.access.matrix import allow, guarded, play
from tests.differential.access.principals import principals
from tests.differential.access.steps import compare
from tests.differential.access.strangers import SEQUENCES, answers
from tests.differential.access.user_steps import elections, users

ALWAYS = ("nobody", "all")
AT_RANDOM = 2


def doubled() -> list[Case]:
    return [found for case in cases() if (found := twice(case)) is not None]


# setting up two brokers and the rights of all principals takes most of a minute
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Guarded]]:
    with guarded(tmp_path_factory.mktemp("access"), principals()) as started:
        for broker in started:
            allow(broker, principals())
        yield started


@pytest.mark.timeout(180)
def test_rights_are_judged_as_apache_kafka_judges_them(brokers: list[Guarded]) -> None:
    seed = 20  # `make differential-access` runs all principals
    everybody = principals()
    names = [*ALWAYS, *random.Random(seed).sample(sorted(set(everybody) - set(ALWAYS)), AT_RANDOM)]
    found: list[str] = []
    seen = play(brokers, list(cases()), {name: everybody[name] for name in names}, found.append)
    print(f"seed {seed}: {seen.cases} cases of {names}", dict(seen.known), *found, sep="\n")
    assert found == []
    assert seen.cases > 100 * len(names)


@pytest.mark.timeout(180)
def test_who_may_do_nothing_is_answered_as_by_apache_kafka(brokers: list[Guarded]) -> None:
    """In every API, about what exists and what does not; `make differential-access` takes every version."""
    found: list[str] = []
    seen = play(brokers, list(generated(every_version=False)), {"nobody": []}, found.append)
    print(f"{seen.cases} cases", dict(seen.known), *found, sep="\n")
    assert found == []
    assert seen.cases > 300


@pytest.mark.timeout(180)
def test_what_is_named_twice_is_answered_as_apache_kafka_answers_it(brokers: list[Guarded]) -> None:
    everybody = {name: principals()[name] for name in ("all", "not-topic-describe_configs")}
    found: list[str] = []
    seen = play(brokers, doubled(), everybody, found.append)
    print(f"{seen.cases} cases", dict(seen.known), *found, sep="\n")
    assert found == []
    assert seen.cases > 200


@pytest.mark.parametrize("name", SEQUENCES)
def test_strangers_are_answered_as_apache_kafka_answers_them(brokers: list[Guarded], name: str) -> None:
    apache, ours = (answers(broker, SEQUENCES[name]) for broker in brokers)
    assert ours == apache


def test_exchanges_of_scram_end_as_with_apache_kafka(brokers: list[Guarded]) -> None:
    for broker in brokers:
        scram_exchanges.add_users(broker)
    right, until = scram_exchanges.EXCHANGES["right"], time.monotonic() + 20
    # a broker of Apache Kafka learns of a user from its controller
    while any(scram_exchanges.answers(broker, right)[-1][0] for broker in brokers):
        assert time.monotonic() < until
        time.sleep(0.05)
    found = {
        name: [scram_exchanges.answers(broker, exchange) for broker in brokers]
        for name, exchange in scram_exchanges.EXCHANGES.items()
    }
    different = {name: pair for name, pair in found.items() if pair[0] != pair[1]}
    assert different.keys() == scram_exchanges.DIFFERENT, different


@pytest.mark.timeout(120)
def test_a_right_that_only_one_of_them_knows_is_found(brokers: list[Guarded]) -> None:
    entries = principals()["only-topic-read"]
    ours = brokers[1]
    planted = {"planted": [each._replace(principal="User:nobody") for each in entries]}
    allow(ours, planted)
    found: list[str] = []
    play(brokers, [case for case in cases() if case.name == "fetch"], {"nobody": []}, found.append)
    assert len(found) == 1
    assert "open-t" in found[0]


@pytest.mark.timeout(120)
def test_users_and_elections_are_answered_in_the_same_words(brokers: list[Guarded]) -> None:
    count, different = compare(brokers, [*users(), *elections("open-t")])
    assert different == []
    assert count > 50
