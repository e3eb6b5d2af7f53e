"""Responses that are short, garbled, late or foreign: the connection ends, and work continues."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from tests.unit.client.scripted import ScriptedBroker, fetched, member
from tests.unit.client.virtual import in_virtual_time

from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey


def frame(correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 4, correlation_id) + body


GARBLED: dict[str, bytes] = {
    "a size below zero": b"\xff\xff\xff\xff",
    "a size beyond the limit": struct.pack(">i", 2_000_000_000),
    "a size too small for an answer": struct.pack(">i", 3) + b"abc",
    "another request's answer": frame(999_999, b"\0" * 40),
    "an answer that nobody asked for": frame(-1, b"\0"),
}
APIS = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH)


@pytest.mark.parametrize("garbled", GARBLED.values(), ids=GARBLED)
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_garbled_answer(api: ApiKey, garbled: bytes) -> None:
    check(lambda broker: broker.says[api].append(garbled))


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_broker_that_hangs_up_instead_of_answering(api: ApiKey) -> None:
    def hang_up(broker: ScriptedBroker) -> None:
        def cut(_: object) -> None:
            for link in list(broker.links):
                link.cut(ConnectionResetError("reset"))

        broker.says[api].append(cut)

    check(hang_up)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_broker_that_never_answers(api: ApiKey) -> None:
    check(lambda broker: broker.says[api].append(None))


def test_acquired_ranges_that_make_no_sense() -> None:
    backwards = [
        {"first_offset": 5, "last_offset": 9, "delivery_count": 1},
        {"first_offset": 0, "last_offset": 4, "delivery_count": 1},
    ]
    answer = fetched([{"partition_index": 0, "records": b"", "acquired_records": backwards}])
    check(lambda broker: broker.says[ApiKey.SHARE_FETCH].append(answer))


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.SHARE_SESSION_LIMIT_REACHED])
def test_an_error_of_a_whole_fetch(code: ErrorCode) -> None:
    check(lambda broker: broker.says[ApiKey.SHARE_FETCH].append({"error_code": code, "responses": []}))


def check(spoil: Callable[[ScriptedBroker], object]) -> None:
    """Check that the records arrive after `spoil`, once and in order."""

    @in_virtual_time
    async def body() -> None:
        broker = ScriptedBroker()
        spoil(broker)
        broker.offer(0, 4)
        async with member(prefetch_records=0) as consumer:
            batch = await consumer.poll(timeout=120)
            assert [record.offset for record in batch] == [0, 1, 2, 3, 4]
            consumer.accept(batch)
            assert list((await consumer.commit_sync()).values()) == [None]
        assert broker.acknowledged == [(0, 4, b"\1")]

    body()
