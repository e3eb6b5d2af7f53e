"""Producers with and without transactions."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from sharecore.verify.workload.journal import Journal

_QUIET = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 500}
_BURST = 10
_FLUSH_SECONDS_MAX = 120.0
_MESSAGE_MS_MAX = 3_600_000
"""When a record times out, librdkafka sends other records in flight again under a new epoch.

Such duplicates are its own, so the timeout is longer than any fault.
"""
_CERTAIN = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.TOPIC_AUTHORIZATION_FAILED)
"""Errors after which the record is certainly not in the log."""


class Sender:
    """An idempotent producer that records each record with its outcome.

    Args:
        name: of this client in the history.
        pause_s: between bursts.
    """

    def __init__(self, journal: Journal, name: str, settings: Mapping[str, object], pause_s: float) -> None:
        self._journal, self._name, self._pause_s = journal, name, pause_s
        self._settings: dict[str, object] = {
            **_QUIET,
            "enable.idempotence": True,
            "linger.ms": 2,
            "message.timeout.ms": _MESSAGE_MS_MAX,
            "topic.metadata.refresh.interval.ms": 2000,
            **settings,
        }
        self._random = random.Random(f"{journal.plan.seed}-{name}")

    def run(self) -> None:
        """Send until the load ends, in a thread."""
        logger = logging.Logger(self._name)
        logger.addHandler(_EpochBumps(self._journal, self._name))
        producer = Producer({**self._settings, "debug": "eos"}, logger=logger)
        while self._journal.load.is_set():
            for _ in range(_BURST):
                self._send(producer, self._name, None)
            producer.poll(0)
            self._rest()
        if producer.flush(_FLUSH_SECONDS_MAX):
            self._journal.trouble(self._name, "records have no response yet")
            producer.purge()
            producer.flush(5)

    def _rest(self) -> None:
        time.sleep(self._pause_s * (0.5 + self._random.random()))

    def _send(self, producer: Producer, client: str, txn: str | None) -> None:
        topic, partition = self._random.choice(self._journal.plan.places)
        ident = self._journal.new_id()
        began = self._journal.now_ms()
        fields: dict[str, object] = {"client": client, "id": ident, "topic": topic, "partition": partition}
        if txn is not None:
            fields["txn"] = txn

        def answered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._journal.sent += 1
                # a record confirmed as a duplicate of one that the log has already has no known offset
                if (offset := message.offset()) is not None:
                    fields["offset"] = offset
                self._journal.write("send", began, **fields)
            else:
                outcome = "failed" if error.code() in _CERTAIN else "unknown"
                self._journal.write("send", began, outcome, **fields)

        try:
            producer.produce(topic, self._journal.value(ident), partition=partition, on_delivery=answered)
        except BufferError:
            self._journal.write("send", began, "failed", **fields)
            producer.poll(0.1)


class _EpochBumps(logging.Handler):
    """Records why librdkafka takes a new producer epoch; records sent under the old one may be duplicated."""

    def __init__(self, journal: Journal, client: str) -> None:
        super().__init__()
        self._journal, self._client = journal, client

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "epoch bump" in text or "sequence desynchronization" in text:
            self._journal.trouble(self._client, text)
            self._journal.write("log", self._journal.now_ms(), client=self._client, text=text)


class TransactionalSender(Sender):
    """Transactions that commit, abort, or are abandoned; some read before they write."""

    def run(self) -> None:
        """Run transactions until the load ends, in a thread."""
        lives = 0
        while self._journal.load.is_set():
            name = f"{self._name}.{lives}"
            lives += 1
            try:
                self._live(name)
            except KafkaException as error:
                self._journal.trouble(name, error)
                time.sleep(0.5)

    def _live(self, name: str) -> None:
        """Run transactions as one producer, until it fails or is abandoned."""
        identity = {
            "transactional.id": f"{self._journal.plan.run}-{self._name}",
            "transaction.timeout.ms": 30_000,
            "message.timeout.ms": 30_000,
        }
        producer = Producer(self._settings | identity)
        reader = Consumer(
            {key: value for key, value in self._settings.items() if key not in _PRODUCERS_OWN}
            | {"group.id": f"verify-{name}", "enable.auto.commit": False, "isolation.level": "read_committed"}
        )
        try:
            producer.init_transactions(60)
            number = 0
            while self._journal.load.is_set():
                txn = f"{name}-{number}"
                number += 1
                if not self._transaction(producer, reader, name, txn):
                    return
                self._rest()
        finally:
            reader.close()
            producer.purge()
            producer.flush(5)

    def _transaction(self, producer: Producer, reader: Consumer, name: str, txn: str) -> bool:
        """Run a transaction; return whether the producer can continue."""
        producer.begin_transaction()
        if self._random.random() < 0.3:
            self._read(reader, name, txn)
        for _ in range(self._random.randrange(1, 2 * _BURST)):
            self._send(producer, name, txn)
        fate = self._random.random()
        if fate < 0.03:
            # abandoned: the next producer with this ID aborts it
            producer.flush(self._random.random())
            return False
        began = self._journal.now_ms()
        if fate < 0.2:
            producer.abort_transaction(60)
            self._journal.write("end_txn", began, client=name, txn=txn, commit=False)
            return True
        try:
            producer.commit_transaction(60)
        except KafkaException as error:
            self._journal.trouble(name, error)
            return self._abort(producer, name, txn, began, error.args[0])
        self._journal.write("end_txn", began, client=name, txn=txn, commit=True)
        return True

    def _abort(self, producer: Producer, name: str, txn: str, began: float, error: KafkaError) -> bool:
        if error.txn_requires_abort():
            try:
                producer.abort_transaction(60)
            except KafkaException as failure:
                self._journal.trouble(name, failure)
            else:
                self._journal.write("end_txn", began, client=name, txn=txn, commit=False)
                return True
        self._journal.write("end_txn", began, "unknown", client=name, txn=txn, commit=True)
        return False

    def _read(self, reader: Consumer, name: str, txn: str) -> None:
        """Read a few committed records as part of a transaction."""
        topic, partition = self._random.choice(self._journal.plan.places)
        client = f"{name}-reader-{txn}"
        try:
            low, high = reader.get_watermark_offsets(TopicPartition(topic, partition), 5)
            reader.assign([TopicPartition(topic, partition, max(low, high - 20))])
            began = self._journal.now_ms()
            messages = reader.consume(10, 0.3)
        except KafkaException as error:
            self._journal.trouble(client, error)
            return
        records = [
            (each.offset() or 0, self._journal.ident(each.value()))
            for each in messages
            if each.error() is None
        ]
        if records:
            span = {"from": records[0][0], "next": records[-1][0] + 1, "records": records}
            place = {"topic": topic, "partition": partition, "isolation": "read_committed"}
            self._journal.write("read", began, client=client, txn=txn, **place, **span)


_PRODUCERS_OWN = ("enable.idempotence", "linger.ms", "message.timeout.ms")
