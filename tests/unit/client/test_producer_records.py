"""What a record to be sent may consist of: librdkafka itself would crash or cut a name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.harness.aio import in_loop

from sharecore.cli.clients import CommandFailed
from sharecore.cli.producing import Records
from sharecore.client import BlockingProducer, NewRecord, Producer
from sharecore.errors import KafkaError

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"headers": {"\ud800": "x"}}, ValueError, "header '\\ud800'"),
        ({"headers": {"a\0b": "x"}}, ValueError, "header 'a\\x00b'"),
        ({"headers": {"a": "\ud800"}}, ValueError, "header 'a': a string value cannot contain a lone"),
        ({"headers": "ab"}, TypeError, "headers='ab': pass a mapping"),
        ({"headers": 5}, TypeError, "headers=5: pass a mapping"),
        ({"headers": [("a",)]}, TypeError, "header ('a',): pass a pair"),
        ({"headers": {"a": 5}}, TypeError, "header 'a': pass a string"),
        ({"partition": "1"}, TypeError, "partition='1': pass a whole number"),
        ({"partition": True}, TypeError, "partition=True: pass a whole number"),
        ({"partition": -1}, ValueError, "partition=-1: pass 0 to"),
        ({"partition": 2**31}, ValueError, "partition=2147483648: pass 0 to"),
        ({"timestamp": 1.5}, TypeError, "timestamp=1.5: pass a whole number"),
        ({"timestamp": 0}, ValueError, "timestamp=0: pass 1 to"),
        ({"timestamp": 2**63}, ValueError, "timestamp=9223372036854775808: pass 1 to"),
    ],
)
def test_an_invalid_record_is_refused_before_it_is_sent(
    given: dict[str, Any], error: type[Exception], said: str
) -> None:
    with BlockingProducer(NOWHERE) as producer:
        for send in (
            lambda: producer.submit("jobs", b"x", **given),
            lambda: producer.send_many("jobs", [b"first", NewRecord(b"x", **given)]),
        ):
            with pytest.raises(error) as raised:
                send()
            assert said in str(raised.value)
        assert producer.flush(0)


@pytest.mark.parametrize("topic", ["", "a\0b", "\ud800", b"jobs", None])
def test_a_topic_without_a_name_is_refused(topic: Any) -> None:
    with BlockingProducer(NOWHERE) as producer:
        for send in (lambda: producer.submit(topic, b"x"), lambda: producer.send_many(topic, [b"x"])):
            with pytest.raises(ValueError, match="pass the name of a topic"):
                send()


@pytest.mark.parametrize("records", ["abc", b"abc", {"a": 1}, 5, None])
def test_what_is_not_several_records_is_refused(records: Any) -> None:
    with BlockingProducer(NOWHERE) as producer, pytest.raises(TypeError, match="pass a list"):
        producer.send_many("jobs", records)


@pytest.mark.parametrize(
    ("topic", "headers", "said"),
    [
        ("\udcff", [], "record 1: topic name"),
        ("jobs", [("\udcff", b"x")], "record 1: header name"),
        ("jobs", [("a\0b", b"x")], "record 1: header name"),
    ],
)
def test_the_command_line_refuses_a_name_that_crashes_librdkafka(
    topic: str, headers: list[tuple[str, bytes]], said: str
) -> None:
    with Records(NOWHERE, 1) as records, pytest.raises(CommandFailed) as raised:
        records.send(topic, b"x", headers=headers)
    assert said in str(raised.value)


@in_loop
async def test_a_record_that_cannot_be_sent_does_not_stop_those_waiting_behind_it() -> None:
    values = {"first": b"first", "waiting": b"waiting", "wrong": 5, "behind": b"behind"}
    settings = NOWHERE | {"queue.buffering.max.messages": 1, "max.block.ms": 60_000}
    producer = Producer(settings, value_serializer=lambda name: values[name])
    sending = {name: asyncio.ensure_future(producer.send("jobs", name)) for name in values}
    await asyncio.sleep(0)
    for name in ("first", "waiting"):
        while not sending[name].done():
            producer._engine._producer.purge()  # makes space, as a confirmation does
            await asyncio.sleep(0.01)
        with pytest.raises(KafkaError):
            await sending[name]
    with pytest.raises(TypeError):
        await asyncio.wait_for(sending["wrong"], 30)
    await producer.close(0)
    with pytest.raises(KafkaError):
        await sending["behind"]
