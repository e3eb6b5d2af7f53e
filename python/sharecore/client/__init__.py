"""A share consumer (KIP-932), workers and a producer, for Apache Kafka 4.2 and newer as for sharecore."""

from __future__ import annotations

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
