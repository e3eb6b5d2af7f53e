"""What a producer of the workload records about each confirmation."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message

from sharecore.clock import SystemClock
from sharecore.verify.check import check
from sharecore.verify.history import Writer
from sharecore.verify.workload.journal import Journal
from sharecore.verify.workload.plan import Plan
from sharecore.verify.workload.producers import Sender, _EpochBumps


class _Confirming:
    """A producer whose records are all confirmed at one offset."""

    def __init__(self, offset: int | None) -> None:
        self._message = Message("t", 0) if offset is None else Message("t", 0, offset=offset)

    def produce(
        self,
        topic: str,
        value: bytes,
        partition: int,
        on_delivery: Callable[[KafkaError | None, Message], None],
    ) -> None:
        on_delivery(None, self._message)


# librdkafka does not know the offset of a duplicate, as after a lost response
@pytest.mark.parametrize("offset", [7, None])
def test_a_confirmed_record_has_its_offset_if_that_is_known(tmp_path: Path, offset: int | None) -> None:
    path = tmp_path / "history"
    with Writer(path, {"groups": {}}, SystemClock.monotonic_ms) as writer:
        sender = Sender(Journal(Plan("b:1", "r", 1, "g"), writer), "p", {}, 1.0)
        sender._send(_Confirming(offset), "p", None)  # type: ignore[arg-type]
    _, line = map(json.loads, path.read_text().splitlines())
    assert (line["outcome"], line.get("offset"), "offset" in line) == ("ok", offset, offset is not None)
    assert not check([path]).counts


def test_a_new_producer_epoch_is_recorded_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "history"
    reason = "DRAIN [rdkafka#producer-1] [thrd:main]: Beginning partition drain for PID{...} epoch bump: lost"
    with Writer(path, {"groups": {}}, SystemClock.monotonic_ms) as writer:
        journal = Journal(Plan("b:1", "r", 1, "g"), writer)
        logger = logging.Logger("p")
        logger.addHandler(_EpochBumps(journal, "p"))
        logger.info("DRAIN [rdkafka#producer-1] [thrd:main]: t [0] beginning partition drain: new leader")
        logger.info(reason)
    assert journal.troubles == [f"p: {reason}"]
    _, *lines = map(json.loads, path.read_text().splitlines())
    assert [(line["op"], line["client"], line["text"]) for line in lines] == [("log", "p", reason)]
    assert not check([path]).counts
