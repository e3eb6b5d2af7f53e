"""Offsets that transactions commit for one partition of a group, several at a time.

BROKER=apache runs the same on Apache Kafka.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from time import sleep
from typing import Any

import pytest
from tests.harness.broker import Broker
from tests.harness.clients import create_topic
from tests.harness.running import Client

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

_numbers = itertools.count()
_FOR_NOW = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


def settled(ask: Callable[[], tuple[Any, int]]) -> Any:
    """Return the answer, once a coordinator gives one."""
    for _ in range(200):
        answer, code = ask()
        if code not in _FOR_NOW:
            return answer
        sleep(0.05)
    raise AssertionError(f"no answer but {code}")


class Transactions:
    """Transactional ids that commit offsets of one group for one partition."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.client = Client(broker.port)
        self.topic = topic
        self.group = f"offsets-{next(_numbers)}"
        self.producers: dict[str, dict[str, Any]] = {}
        self.client.ask(ApiKey.FIND_COORDINATOR, 2, key=self.group, key_type=0)

    def begin(self, name: str) -> None:
        transactional_id = f"{name}-{self.group}"
        self.client.ask(ApiKey.FIND_COORDINATOR, 2, key=transactional_id, key_type=1)

        def begin() -> tuple[Any, int]:
            answer = self.client.ask(
                ApiKey.INIT_PRODUCER_ID,
                3,
                transactional_id=transactional_id,
                transaction_timeout_ms=60_000,
                producer_id=-1,
                producer_epoch=-1,
            )
            return answer, answer.error_code

        answer = settled(begin)
        self.producers[name] = {
            "transactional_id": transactional_id,
            "producer_id": answer.producer_id,
            "producer_epoch": answer.producer_epoch,
        }

        def add() -> tuple[Any, int]:
            added = self.client.ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, group_id=self.group, **self.producers[name])
            return added, added.error_code

        assert settled(add).error_code == 0

    def commit(self, offset: int, name: str | None = None) -> None:
        """Commit an offset, in the transaction of that name or outside."""
        partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
        topics = [{"name": self.topic, "partitions": [partition | {"committed_metadata": ""}]}]
        fields: dict[str, Any] = {"group_id": self.group, "member_id": "", "topics": topics}

        def commit() -> tuple[Any, int]:
            if name is None:
                generation = {"generation_id_or_member_epoch": -1, "group_instance_id": None}
                answer = self.client.ask(ApiKey.OFFSET_COMMIT, 7, **fields, **generation)
            else:
                generation = {"generation_id": -1, "group_instance_id": None}
                answer = self.client.ask(
                    ApiKey.TXN_OFFSET_COMMIT, 3, **fields, **generation, **self.producers[name]
                )
            return answer, answer.topics[0].partitions[0].error_code

        assert settled(commit).topics[0].partitions[0].error_code == 0

    def end(self, name: str, *, commit: bool = True) -> None:
        def end() -> tuple[Any, int]:
            answer = self.client.ask(ApiKey.END_TXN, 3, committed=commit, **self.producers[name])
            return answer, answer.error_code

        assert settled(end).error_code == 0

    def committed(self) -> tuple[int, bool]:
        """Return the committed offset, and whether an open transaction may change it."""

        def fetch(*, stable: bool) -> Any:
            topics = [{"name": self.topic, "partition_indexes": [0]}]
            answer = self.client.ask(
                ApiKey.OFFSET_FETCH, 7, group_id=self.group, topics=topics, require_stable=stable
            )
            return answer.topics[0].partitions[0]

        unstable = fetch(stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        return fetch(stable=False).committed_offset, unstable

    def ended(self, offset: int) -> None:
        """Wait until all transactions have ended, which Apache Kafka answers before it has happened."""
        for _ in range(100):
            found = self.committed()
            if not found[1]:
                break
            sleep(0.05)
        assert found == (offset, False)


@pytest.fixture
def transactions(broker: Broker) -> Iterator[Transactions]:
    topic = f"offsets-{next(_numbers)}"
    create_topic(broker.bootstrap, topic)
    made = Transactions(broker, topic)
    yield made
    made.client.close()


def test_the_later_offset_counts_whichever_transaction_ends_first(transactions: Transactions) -> None:
    transactions.begin("one")
    transactions.begin("two")
    transactions.commit(10, "one")
    transactions.commit(20, "two")
    transactions.end("two")
    sleep(0.2)
    assert transactions.committed() == (20, True), "the first transaction is still open"
    transactions.end("one")
    transactions.ended(20)


def test_the_later_offset_counts_where_its_transaction_ends_last(transactions: Transactions) -> None:
    transactions.begin("one")
    transactions.begin("two")
    transactions.commit(10, "one")
    transactions.commit(20, "two")
    transactions.end("one")
    sleep(0.2)
    assert transactions.committed() == (10, True)
    transactions.end("two", commit=False)
    transactions.ended(10)


def test_an_offset_outside_of_transactions_counts_if_it_is_the_later_one(transactions: Transactions) -> None:
    transactions.begin("one")
    transactions.begin("two")
    transactions.commit(10, "one")
    transactions.commit(15)
    assert transactions.committed() == (15, True), "the transaction is still open"
    transactions.commit(20, "two")
    transactions.end("one")
    sleep(0.2)
    assert transactions.committed() == (15, True)
    transactions.end("two")
    transactions.ended(20)


def test_an_offset_that_a_transaction_commits_again_is_its_last(transactions: Transactions) -> None:
    transactions.begin("one")
    transactions.begin("two")
    transactions.commit(10, "one")
    transactions.commit(20, "two")
    transactions.commit(30, "one")
    transactions.end("one")
    sleep(0.2)
    assert transactions.committed() == (30, True)
    transactions.end("two")
    transactions.ended(30)
