"""Settings of a tier: what was set is there for the next node, whichever wrote it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.unit.coordinator_log.world import World
from tests.unit.tier.partition import Partition

from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.quotas import ClientQuotas
from sharecore.quotas.entity import USER
from sharecore.security.acl import Acl
from sharecore.security.acls import Acls
from sharecore.security.scram import Credential, Credentials
from sharecore.storage import ResourceType
from sharecore.tier.settings import SettingsCatalogue, TierConfigs
from sharecore.tier.wishes import Pin, Wishes


class Cluster(Partition):
    """The partition with the settings; `refuses` has what is sent fail."""

    refuses = False
    slow = 0.0

    def send(self, topic: str, index: int, data: bytes) -> asyncio.Future[int]:
        sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self.refuses:
            sent.set_exception(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few"))
            return sent
        count = int.from_bytes(data[57:61], "big")
        base, self.end = self.end, self.end + count
        self.batches.append((base, self.end, base.to_bytes(8, "big") + data[8:]))
        asyncio.get_running_loop().call_later(self.slow, sent.set_result, base)
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
        other.follow(Still())
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


async def told(cluster: Cluster, node: SettingsCatalogue, at: int = 0) -> None:
    """Has a node see what stands in the topic."""
    while at < cluster.end:
        fetched = await cluster.read("settings", 0, at, 1000)
        node.fetched(fetched)
        at = fetched.end


def test_users_rights_and_quotas_reach_other_nodes() -> None:
    async def test(cluster: Cluster) -> None:
        one, other = [SettingsCatalogue("settings", cluster, cluster.send, World()) for _ in range(2)]
        await one.load()
        await other.load()
        users, seen_users = Credentials(one), Credentials(other)
        rights, seen_rights = Acls(one), Acls(other)
        changes: list[int] = []
        seen_rights.on_change(lambda: changes.append(1))
        quotas, seen_quotas = ClientQuotas(one), ClientQuotas(other)
        credential = Credential(b"salt", b"stored", b"server", 4096)
        acl = Acl(2, "t", 3, "User:a", "*", 3, 3)
        entity = ((USER, "a"),)
        await users.change([("a", "SCRAM-SHA-256", credential), ("b", "SCRAM-SHA-256", credential)])
        await rights.change([acl])
        await quotas.change({entity: {"producer_byte_rate": 5.0}})
        await told(cluster, other)
        assert seen_users.get("a", "SCRAM-SHA-256") == credential
        assert list(seen_rights.of(2, "t")) == [acl]
        assert seen_quotas.of(entity) == {"producer_byte_rate": 5.0}
        assert seen_quotas.keys == {"producer_byte_rate"}
        seen = cluster.end
        await users.change(deletes=[("a", "SCRAM-SHA-256")])
        await rights.change(deletes=[acl])
        await quotas.change({entity: {"producer_byte_rate": None}})
        await told(cluster, other, seen)
        assert seen_users.users() == {"b": {"SCRAM-SHA-256": 4096}}
        assert (len(seen_rights), list(seen_quotas), len(changes)) == (0, [], 2)

    run(test)


def test_of_two_nodes_that_set_the_same_the_later_one_counts_on_both() -> None:
    async def test(cluster: Cluster) -> None:
        one, other = [SettingsCatalogue("settings", cluster, cluster.send, World()) for _ in range(2)]
        configs, others = TierConfigs(one), TierConfigs(other)
        one.follow(Still())
        cluster.slow = 0.02
        writing = asyncio.ensure_future(configs.replace(ResourceType.GROUP, "g", {"a": "first"}))
        await asyncio.sleep(0)
        cluster.slow = 0
        await others.replace(ResourceType.GROUP, "g", {"a": "second"})
        await told(cluster, one)  # before it hears that its own write stands in the log
        await writing
        await told(cluster, other)
        assert one.get(b"config/32/g") == other.get(b"config/32/g") == b'{"a": "second"}'
        assert others.get(ResourceType.GROUP, "g") == {"a": "second"}
        assert configs.get(ResourceType.GROUP, "g") == {"a": "second"}

    run(test)


def test_what_operators_want_reaches_nodes() -> None:
    async def test(cluster: Cluster) -> None:
        one, other = [SettingsCatalogue("settings", cluster, cluster.send, World()) for _ in range(2)]
        wishes, seen = Wishes(one), Wishes(other)
        changes: list[int] = []
        seen.on_change(lambda: changes.append(1))
        await wishes.pin([Pin(3, 2), Pin(11, 0)])
        await wishes.drain(2, drained=True)
        await told(cluster, other)
        assert (seen.pins(), seen.drained(), len(changes)) == ({3: 2, 11: 0}, {2}, 3)
        at = cluster.end
        await wishes.pin([Pin(3, None)])
        await wishes.drain(2, drained=False)
        await told(cluster, other, at)
        assert (seen.pins(), seen.drained(), len(changes)) == ({11: 0}, set(), 5)

    run(test)


def test_a_state_topic_that_has_grown_is_refused() -> None:
    async def test(cluster: Cluster) -> None:
        one, other = [SettingsCatalogue("settings", cluster, cluster.send, World()) for _ in range(2)]
        await one.check_slots(64)
        await one.check_slots(64)
        await other.load()
        with pytest.raises(ConfigError, match="has 65 partitions; allowed: the 64"):
            await other.check_slots(65)

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
