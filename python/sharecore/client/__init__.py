"""A share consumer (KIP-932), workers and a producer, for sharecore and Apache Kafka 4.2 and newer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharecore._core import Record
    from sharecore.client.blocking_producer import BlockingProducer
    from sharecore.client.consumer import ShareConsumer
    from sharecore.client.errors import (
        AuthenticationFailed,
        ConsumerClosed,
        CorruptRecords,
        DeserializationError,
        Disconnected,
        LeaseLost,
        ProducerClosed,
        WakeupError,
    )
    from sharecore.client.fetching.acknowledgements import Acknowledged, TopicPartition
    from sharecore.client.fetching.batch import Batch
    from sharecore.client.fetching.lease import AcknowledgeType
    from sharecore.client.keeper import Kept
    from sharecore.client.metrics import MetricName
    from sharecore.client.producer import Producer
    from sharecore.client.producing.records import NewRecord, RecordsNotSent, Sent, SentRecords
    from sharecore.client.workers.figures import register_worker_metrics
    from sharecore.client.workers.health import Health
    from sharecore.client.workers.retry import Backoff, Retry
    from sharecore.client.workers.signals import run_until_signal
    from sharecore.client.workers.verdicts import Reject, Release
    from sharecore.client.workers.worker import Worker, worker

__all__ = [
    "AcknowledgeType",
    "Acknowledged",
    "AuthenticationFailed",
    "Backoff",
    "Batch",
    "BlockingProducer",
    "ConsumerClosed",
    "CorruptRecords",
    "DeserializationError",
    "Disconnected",
    "Health",
    "Kept",
    "LeaseLost",
    "MetricName",
    "NewRecord",
    "Producer",
    "ProducerClosed",
    "Record",
    "RecordsNotSent",
    "Reject",
    "Release",
    "Retry",
    "Sent",
    "SentRecords",
    "ShareConsumer",
    "TopicPartition",
    "WakeupError",
    "Worker",
    "register_worker_metrics",
    "run_until_signal",
    "worker",
]

_HOMES = {
    "AcknowledgeType": "sharecore.client.fetching.lease",
    "Acknowledged": "sharecore.client.fetching.acknowledgements",
    "AuthenticationFailed": "sharecore.client.errors",
    "Backoff": "sharecore.client.workers.retry",
    "Batch": "sharecore.client.fetching.batch",
    "BlockingProducer": "sharecore.client.blocking_producer",
    "ConsumerClosed": "sharecore.client.errors",
    "CorruptRecords": "sharecore.client.errors",
    "DeserializationError": "sharecore.client.errors",
    "Disconnected": "sharecore.client.errors",
    "Health": "sharecore.client.workers.health",
    "Kept": "sharecore.client.keeper",
    "LeaseLost": "sharecore.client.errors",
    "MetricName": "sharecore.client.metrics",
    "NewRecord": "sharecore.client.producing.records",
    "Producer": "sharecore.client.producer",
    "ProducerClosed": "sharecore.client.errors",
    "Record": "sharecore._core",
    "RecordsNotSent": "sharecore.client.producing.records",
    "Reject": "sharecore.client.workers.verdicts",
    "Release": "sharecore.client.workers.verdicts",
    "Retry": "sharecore.client.workers.retry",
    "Sent": "sharecore.client.producing.records",
    "SentRecords": "sharecore.client.producing.records",
    "ShareConsumer": "sharecore.client.consumer",
    "TopicPartition": "sharecore.client.fetching.acknowledgements",
    "WakeupError": "sharecore.client.errors",
    "Worker": "sharecore.client.workers.worker",
    "register_worker_metrics": "sharecore.client.workers.figures",
    "run_until_signal": "sharecore.client.workers.signals",
    "worker": "sharecore.client.workers.worker",
}


if not TYPE_CHECKING:  # type checkers should report unknown names

    def __getattr__(name: str) -> object:
        """Import on demand: commands that need only part of this package start in half the time."""
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found: object = getattr(import_module(home), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
