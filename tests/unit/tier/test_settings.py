"""Settings of a tier: what was set is there for the next node, whichever wrote it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.coordinator_log.world import World
from tests.unit.tier.partition import Partition

from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import ResourceType
from sharecore.tier.settings import SettingsCatalogue, TierConfigs


class Cluster(Partition):
    """The partition with the settings; `refuses` has what is sent fail."""

    refuses = False

    def send(self, topic: str, index: int, data: bytes) -> asyncio.Future[int]:
        sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self.refuses:
            sent.set_exception(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few"))
            return sent
        count = int.from_bytes(data[57:61], "big")
        base, self.end = self.end, self.end + count
        self.batches.append((base, self.end, base.to_bytes(8, "big") + data[8:]))
        sent.set_result(base)
        return sent


async def node(cluster: Cluster) -> TierConfigs:
    catalogue = SettingsCatalogue("settings", cluster, cluster.send, World())
    await catalogue.load()
    return TierConfigs(catalogue)


def run(test: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        await test(Cluster())

    asyncio.run(main())


def test_settings_outlive_the_node() -> None:
    async def test(cluster: Cluster) -> None:
        configs = await node(cluster)
        await configs.replace(ResourceType.GROUP, "g", {"share.auto.offset.reset": "earliest"})
        await configs.replace(ResourceType.GROUP, "h", {"share.isolation.level": "read_committed"})
        await configs.replace(ResourceType.GROUP, "g", {"share.auto.offset.reset": "latest"})
        await configs.replace(ResourceType.GROUP, "h", {})
        after = await node(cluster)
        assert after.get(ResourceType.GROUP, "g") == {"share.auto.offset.reset": "latest"}
        assert after.names(ResourceType.GROUP) == ["g"]

    run(test)


def test_what_was_not_written_does_not_count() -> None:
    async def test(cluster: Cluster) -> None:
        configs = await node(cluster)
        cluster.refuses = True
        with pytest.raises(KafkaError) as error:
            await configs.replace(ResourceType.GROUP, "g", {"share.auto.offset.reset": "earliest"})
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert "too few" in error.value.message
        assert configs.get(ResourceType.GROUP, "g") == {}

    run(test)


def test_settings_of_topics_are_the_clusters_but_for_its_letters() -> None:
    async def test(cluster: Cluster) -> None:
        configs = await node(cluster)
        with pytest.raises(KafkaError) as error:
            await configs.replace(ResourceType.TOPIC, "t", {"retention.ms": "1"})
        assert error.value.code is ErrorCode.INVALID_REQUEST
        assert "retention.ms: set it on the cluster" in error.value.message
        await configs.replace(ResourceType.TOPIC, "t", {"errors.deadletterqueue.group.enable": "true"})
        assert (await node(cluster)).names(ResourceType.TOPIC) == ["t"]

    run(test)


def test_what_another_node_sets_is_seen() -> None:
    async def test(cluster: Cluster) -> None:
        one, other = await node(cluster), SettingsCatalogue("settings", cluster, cluster.send, World())
        await other.load()
        seen = TierConfigs(other)
        told: list[tuple[int, str]] = []
        seen.on_change(lambda kind, name: told.append((kind, name)))
        other.follow(Still(), seen.told)
        await one.replace(ResourceType.GROUP, "g", {"share.auto.offset.reset": "earliest"})
        await one.replace(ResourceType.GROUP, "h", {"share.auto.offset.reset": "latest"})
        await one.replace(ResourceType.GROUP, "h", {})
        at = 0
        while at < cluster.end:
            fetched = await cluster.read("settings", 0, at, 1000)
            other.fetched(fetched)
            at = fetched.end
        assert seen.get(ResourceType.GROUP, "g") == {"share.auto.offset.reset": "earliest"}
        assert seen.names(ResourceType.GROUP) == ["g"]
        assert told == [(ResourceType.GROUP, "g"), (ResourceType.GROUP, "h"), (ResourceType.GROUP, "h")]

    run(test)


class Still:
    """A fetcher that the test stands in for."""

    offset = 0

    def subscribe(self, *how: object) -> Still:
        return self

    def allow(self, room: int) -> None:
        assert room > 0

    def seek(self, offset: int, room: int) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is under way."""
