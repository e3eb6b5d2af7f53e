"""Quotas alone: which one applies, what is stored, and memory limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sharecore.errors import ErrorCode, KafkaError
from sharecore.quotas import CONTROLLER, PRODUCER, ClientQuotas, Throttles, check_value, entity_of
from sharecore.rates import Window
from sharecore.storage import Storage, StorageOptions

ANN = entity_of([("user", "ann")])
EVERYONE = entity_of([("user", None)])


def kept(home: Path, test: Callable[[ClientQuotas], Awaitable[None]]) -> None:
    async def run() -> None:
        storage = Storage(home, StorageOptions())
        storage.attach(asyncio.get_running_loop())
        try:
            await test(ClientQuotas(storage.catalog))
        finally:
            storage.close()

    asyncio.run(run())


def test_quotas_outlive_the_broker(tmp_path: Path) -> None:
    async def set_them(quotas: ClientQuotas) -> None:
        await quotas.change({ANN: {PRODUCER: 10.0}, EVERYONE: {PRODUCER: 5.0}})
        await quotas.change({EVERYONE: {PRODUCER: None}})

    async def look(quotas: ClientQuotas) -> None:
        assert list(quotas) == [ANN]
        limit = quotas.limit(PRODUCER, "ann", "any")
        assert limit is not None
        assert limit == (("ann", None), 10.0)
        assert quotas.limit(PRODUCER, "bob", "any") is None

    kept(tmp_path, set_them)
    kept(tmp_path, look)


def test_a_changed_quota_counts_at_once(tmp_path: Path) -> None:
    async def test(quotas: ClientQuotas) -> None:
        throttles = Throttles(quotas, Window(), Window(), lambda: 0.0)
        assert not throttles.on
        await quotas.change({EVERYONE: {PRODUCER: 10.0}})
        assert throttles.on
        assert throttles.produced("bob", "a", 200) == 10_000
        await quotas.change({entity_of([("user", "bob")]): {PRODUCER: 100.0}})
        assert throttles.produced("bob", "a", 0) == 0
        assert throttles.produced("carl", "a", 50) == 0, "each user has a quota of his own"
        await quotas.change({EVERYONE: {PRODUCER: None}, entity_of([("user", "bob")]): {PRODUCER: None}})
        assert not throttles.on

    kept(tmp_path, test)


@pytest.mark.heavy
def test_strangers_without_end_take_no_memory_without_end(tmp_path: Path) -> None:
    async def test(quotas: ClientQuotas) -> None:
        every = entity_of([("user", None), ("client-id", None)])
        await quotas.change({every: {PRODUCER: 10.0, CONTROLLER: 1.0}})
        # all at one moment: nobody has been idle
        throttles = Throttles(quotas, Window(), Window(), lambda: 0.0)
        for number in range(25_000):
            throttles.produced("ann", f"client-{number}", 1)
            throttles.mutations("ann", f"client-{number}", strict=True).take(1)
            if number % 5_000 == 0:
                throttles.produced("bob", "regular", 100)
        assert len(throttles._rates) == 10_000
        assert len(throttles._buckets) == 10_000
        assert throttles.produced("bob", "regular", 0) == 40_000, "who comes again is remembered"

    kept(tmp_path, test)


@pytest.mark.parametrize("value", [float("nan"), 0.0, -1.0, 0.5, 1e300])
def test_what_is_no_rate_of_bytes(value: float) -> None:
    with pytest.raises(KafkaError) as refused:
        check_value(ANN, PRODUCER, value)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_names_of_any_length_are_bounded_in_memory(tmp_path: Path) -> None:
    async def test(quotas: ClientQuotas) -> None:
        await quotas.change({entity_of([("client-id", None)]): {PRODUCER: 100.0}})
        long, longer = "c" * 30_000, "c" * 30_001
        first, second = (quotas.limit(PRODUCER, "alice", each) for each in (long, longer))
        assert first is not None
        assert second is not None
        assert first.scope != second.scope, "each client has its own"
        assert first.scope == getattr(quotas.limit(PRODUCER, "bob", long), "scope", None)
        assert len(str(first.scope)) < 200
        assert not quotas._found

    kept(tmp_path, test)
