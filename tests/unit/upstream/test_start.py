"""The first connection to an existing cluster."""

from __future__ import annotations

import pytest
from tests.unit.client.virtual import in_virtual_time
from tests.unit.upstream.cluster import Cluster

from sharecore.client.errors import Disconnected
from sharecore.protocol import ApiKey


@in_virtual_time
async def test_a_cluster_that_is_silent_for_a_while_is_waited_for() -> None:
    cluster = Cluster()
    upstream = cluster.upstream()
    cluster.says[ApiKey.METADATA] += [None] * 3
    await upstream.start()
    assert len(cluster.bodies(ApiKey.METADATA)) == 4
    assert upstream.problem is None
    await upstream.close()


@in_virtual_time
async def test_a_cluster_that_stays_silent_is_given_up() -> None:
    cluster = Cluster()
    upstream = cluster.upstream(default_api_timeout_ms=10_000)
    cluster.says[ApiKey.METADATA] += [None] * 100
    began = upstream.clock.monotonic_ms()
    with pytest.raises(Disconnected, match=r"cannot reach the upstream cluster .*no response within"):
        await upstream.start()
    assert 8_000 <= upstream.clock.monotonic_ms() - began <= 12_000
    await upstream.close()


@in_virtual_time
async def test_a_wrong_address_is_told_at_once() -> None:
    cluster = Cluster()
    upstream = cluster.upstream()
    cluster.brokers[0].stop()
    began = upstream.clock.monotonic_ms()
    with pytest.raises(Disconnected, match=r"cannot reach the upstream cluster at .*check the addresses"):
        await upstream.start()
    assert upstream.clock.monotonic_ms() - began < 1_000
    await upstream.close()
