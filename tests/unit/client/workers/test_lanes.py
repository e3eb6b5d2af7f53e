"""Workers of a group with an order, in virtual time: one record of a key at a time."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.client.scripted import ScriptedBroker
from tests.unit.client.virtual import in_virtual_time
from tests.unit.client.workers.harness import running, until

from sharecore.client import Record, Reject, Retry, worker
from sharecore.client.workers.lanes import Order

pytestmark = pytest.mark.usefixtures("virtual_clock", "events")


def ordered_broker(keys: str, ordering: str = "key") -> ScriptedBroker:
    """A broker of a group with an order and a back-off, whose next fetch acquires a record of each key."""
    broker = ScriptedBroker()
    broker.group_configs |= {
        "share.ordering": (ordering, 8),
        "share.ordering.key.header": ("", 5),
        "share.retry.backoff.ms": ("1000", 8),
        "share.retry.backoff.on": ("release,timeout", 5),
    }
    broker.keys = {offset: key.encode() for offset, key in enumerate(keys) if key != "-"}
    broker.offer(0, len(keys) - 1)
    return broker


def outcomes(broker: ScriptedBroker) -> dict[int, int]:
    """Return the outcome of each record, by offset, without renewals."""
    return {
        offset: kind
        for first, last, types in broker.acknowledged
        for offset, kind in zip(range(first, last + 1), types * (last - first + 1), strict=False)
        if kind != 4
    }


@pytest.mark.parametrize(
    ("ordering", "most", "order"), [("key", 3, {"a": [0, 1, 4], "b": [2, 5]}), ("partition", 1, {})]
)
def test_records_of_a_key_are_handled_one_after_another(
    ordering: str, most: int, order: dict[str, list[int]]
) -> None:
    @in_virtual_time
    async def body() -> None:
        broker = ordered_broker("aab-ab", ordering)
        busy: list[int] = []
        begun: list[int] = []
        widths: set[int] = set()

        @worker("topic", concurrency=8)
        async def handle(record: Record) -> None:
            busy.append(record.offset)
            begun.append(record.offset)
            widths.add(len(busy))
            await asyncio.sleep(5 - record.offset * 0.5)
            busy.remove(record.offset)

        async with running(handle):
            await until(lambda: len(outcomes(broker)) == 6)
        assert set(outcomes(broker).values()) == {1}
        assert max(widths) == most
        for offsets in order.values() or [list(range(6))]:
            assert [offset for offset in begun if offset in offsets] == offsets

    body()


@in_virtual_time
async def test_after_a_failure_the_rest_of_its_key_is_given_back_and_others_go_on() -> None:
    broker = ordered_broker("aab-ab")
    begun: list[int] = []

    @worker("topic", concurrency=8, retry=Retry(attempts=1))
    async def handle(record: Record) -> None:
        begun.append(record.offset)
        await asyncio.sleep(1)
        if record.offset == 0:
            raise ValueError

    async with running(handle):
        await until(lambda: len(outcomes(broker)) == 6)
    assert outcomes(broker) == {0: 2, 1: 2, 4: 2, 2: 1, 3: 1, 5: 1}
    assert not {1, 4} & set(begun)


@in_virtual_time
async def test_a_rejected_record_and_one_that_is_tried_again_keep_their_key_in_order() -> None:
    broker = ordered_broker("aaa")
    begun: list[int] = []

    @worker("topic", concurrency=4, retry=Retry(first_seconds=3))
    async def handle(record: Record) -> None:
        begun.append(record.offset)
        if record.offset == 0:
            raise Reject
        if record.offset == 1 and begun.count(1) == 1:
            raise ValueError

    async with running(handle):
        await until(lambda: len(outcomes(broker)) == 3)
    assert begun == [0, 1, 1, 2]
    assert outcomes(broker) == {0: 3, 1: 1, 2: 1}


@in_virtual_time
async def test_a_record_in_its_last_delivery_is_not_given_back_untried() -> None:
    broker = ordered_broker("aa")
    broker.group_configs["share.delivery.count.limit"] = ("1", 8)
    begun: list[int] = []

    @worker("topic", concurrency=2, retry=Retry(attempts=1))
    async def handle(record: Record) -> None:
        begun.append(record.offset)
        if record.offset == 0:
            raise ValueError

    async with running(handle):
        await until(lambda: len(outcomes(broker)) == 2)
    assert begun == [0, 1]
    assert outcomes(broker) == {0: 2, 1: 1}


@in_virtual_time
async def test_a_worker_that_stops_gives_back_what_is_behind() -> None:
    broker = ordered_broker("aab")
    begun = asyncio.Event()

    @worker("topic", concurrency=3)
    async def handle(record: Record) -> None:
        begun.set()
        await asyncio.sleep(10)

    async with running(handle):
        await begun.wait()
        assert handle.health().queued == 1
    assert outcomes(broker) == {0: 1, 1: 2, 2: 1}


def test_the_last_header_of_a_name_is_the_key() -> None:
    def lane(*headers: tuple[str, bytes | None]) -> object:
        return Order(by_key=True, header="h").lane_of(Record(topic="t", key=b"own", headers=headers))

    assert lane(("h", b"1"), ("h", b"2"), ("i", b"3")) == ("t", 0, b"2")
    assert lane(("h", b"")) == ("t", 0, b"")
    assert lane(("h", b"1"), ("h", None)) is None
    assert lane(("i", b"1")) is None
