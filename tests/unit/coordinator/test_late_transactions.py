"""Writes of the transaction coordinator that are given up after they have timed out."""

from __future__ import annotations

from tests.unit.coordinator.test_transactions import P0, P1, V1, Cluster

from sharecore.coordinator.transactions.transaction import ProducerState
from sharecore.errors import ErrorCode, KafkaError


def test_partitions_whose_write_is_given_up_after_its_time_are_forgotten() -> None:
    """Or each later transaction has its markers in these partitions, and none in its own."""
    cluster = Cluster()
    producer = cluster.begin()
    cluster.log.holding = True
    ended: list[KafkaError | None] = []
    cluster.transactions.add_partitions("tx", producer, [P0], ended.append)
    cluster.world.run(6_000)
    assert [error and error.code for error in ended] == [ErrorCode.REQUEST_TIMED_OUT]
    cluster.log.release(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    cluster.world.run()
    cluster.transactions.add_partitions("tx", producer, [P1], ended.append)
    cluster.world.run()
    assert cluster.end(producer, version=V1) == producer
    assert (cluster.partitions[P0].written, cluster.partitions[P1].written) == ([], [(producer, True)])


def test_a_producer_whose_write_is_given_up_after_its_time_can_begin_again() -> None:
    cluster = Cluster()
    cluster.log.holding = True
    answers: list[ProducerState | KafkaError] = []
    cluster.transactions.initialize("tx", 10_000, None, answers.append)
    cluster.world.run(6_000)
    cluster.log.release(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    cluster.world.run()
    assert cluster.begin() == (102, 0)
