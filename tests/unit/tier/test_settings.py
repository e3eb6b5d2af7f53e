"""Settings of a tier: visible to the next node, whichever wrote them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from tests.unit.coordinator_log.world import World
from tests.unit.tier.partition import Following, Partition

from sharecore._core import encode_batch
from sharecore.coordinator_log.topic_log import Record
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.quotas import ClientQuotas
from sharecore.quotas.entity import USER
from sharecore.security.acl import Acl, AclFilter
from sharecore.security.acls import Acls
from sharecore.security.scram import Credential, Credentials
from sharecore.storage import ResourceType
from sharecore.tier.settings import topic as settings_module
from sharecore.tier.settings.placement_rules import Pin, PlacementRules
from sharecore.tier.settings.topic import SettingsCatalog, TierConfigs
from sharecore.upstream import Fetched


class Cluster(Partition):
    """The partition with the settings; `refuses` makes writes fail.

    Attributes:
        unread: the error for readers.
        silent: whether readers get no response.
        late: the delay of writes in seconds.
        slow: the delay of their responses.
    """

    refuses = False
    unread: KafkaError | None = None
    silent = False
    late = 0.0
    slow = 0.0

    async def read(self, topic: str, partition: int, offset: int, max_bytes: int) -> Fetched:
        if self.silent:
            await asyncio.Event().wait()
        if self.unread is not None:
            raise self.unread
        return await super().read(topic, partition, offset, max_bytes)

    def write(self, topic: str, index: int, records: Sequence[Record], now_ms: int) -> asyncio.Future[int]:
        data = encode_batch(list(records), now_ms=now_ms, producer=None)
        sent: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self.refuses:
            sent.set_exception(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few"))
            return sent
        if self.late:
            asyncio.get_running_loop().call_later(self.late, self._append, data, sent)
        else:
            self._append(data, sent)
        return sent

    def _append(self, data: bytes, sent: asyncio.Future[int]) -> None:
        count = int.from_bytes(data[57:61], "big")
        base, self.end = self.end, self.end + count
        self.batches.append((base, self.end, base.to_bytes(8, "big") + data[8:]))
        asyncio.get_running_loop().call_later(self.slow, sent.set_result, base)


async def node(cluster: Cluster, *, slots: int | None = None) -> TierConfigs:
    catalog = SettingsCatalog("settings", cluster, cluster.write, World())
    await catalog.load()
    if slots is not None:
        await catalog.check_slots(slots)
    return TierConfigs(catalog)


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
        one, other = await node(cluster), SettingsCatalog("settings", cluster, cluster.write, World())
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


async def told(cluster: Cluster, node: SettingsCatalog, at: int = 0) -> None:
    """Make a node read the topic's content."""
    while at < cluster.end:
        fetched = await cluster.read("settings", 0, at, 1000)
        node.fetched(fetched)
        at = fetched.end


def test_users_rights_and_quotas_reach_other_nodes() -> None:
    async def test(cluster: Cluster) -> None:
        one, other = [SettingsCatalog("settings", cluster, cluster.write, World()) for _ in range(2)]
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
        one, other = [SettingsCatalog("settings", cluster, cluster.write, World()) for _ in range(2)]
        configs, others = TierConfigs(one), TierConfigs(other)
        one.follow(Still())
        cluster.slow = 0.02
        writing = asyncio.ensure_future(configs.replace(ResourceType.GROUP, "g", {"a": "first"}))
        await asyncio.sleep(0)
        cluster.slow = 0
        await others.replace(ResourceType.GROUP, "g", {"a": "second"})
        await told(cluster, one)  # before it learns that its own write is in the log
        await writing
        await told(cluster, other)
        assert one.get(b"setting/32/g/a") == other.get(b"setting/32/g/a") == b"second"
        assert others.get(ResourceType.GROUP, "g") == {"a": "second"}
        assert configs.get(ResourceType.GROUP, "g") == {"a": "second"}

    run(test)


def test_nodes_that_set_different_things_at_a_time_undo_nothing() -> None:
    async def test(cluster: Cluster) -> None:
        one, _, others = await two_nodes(cluster)
        group = ResourceType.GROUP, "g/1"
        await one.alter(*group, lambda: {"a": "1", "b": "1"})
        # it is not notified: it must not revert changes that it does not know
        await others.alter(*group, lambda: {**others.get(*group), "c": "1"})
        assert others.get(*group) == {"a": "1", "b": "1", "c": "1"}
        await one.alter(*group, lambda: {"b": "2", "c": "1"})
        # it computed this from the previous values
        await others.replace(*group, {**others.get(*group), "d": ""})
        await others.alter(ResourceType.GROUP, "g", lambda: {"a": "3"})
        found = await node(cluster)
        assert found.get(*group) == {"b": "2", "c": "1", "d": ""}
        assert found.get(ResourceType.GROUP, "g") == {"a": "3"}

    run(test)


def test_of_quotas_that_nodes_set_at_the_same_time_each_counts() -> None:
    async def test(cluster: Cluster) -> None:
        one, other = [SettingsCatalog("settings", cluster, cluster.write, World()) for _ in range(2)]
        for each in (one, other):
            each.follow(Still())
        quotas, others = ClientQuotas(one), ClientQuotas(other)
        ann, everyone = ((USER, "a/n"),), ((USER, None),)
        await quotas.change({ann: {"request_percentage": 50.0}, everyone: {"producer_byte_rate": 1.0}})
        cluster.late = 0.02  # each has read the topic before the other one's write is in it
        await asyncio.gather(
            quotas.change({ann: {"producer_byte_rate": 5.0, "request_percentage": None}}),
            others.change({ann: {"consumer_byte_rate": 7.0}}),
        )
        set_by_both = {"producer_byte_rate": 5.0, "consumer_byte_rate": 7.0}
        for each in (one, other):
            await each.refresh()
        assert quotas.of(ann) == others.of(ann) == set_by_both
        assert others.limit("consumer_byte_rate", "a/n", "any") == (("a/n", None), 7.0)
        assert quotas.limit("consumer_byte_rate", "a/n", "any") == (("a/n", None), 7.0)
        await others.change({everyone: {"producer_byte_rate": None}})
        found = SettingsCatalog("settings", cluster, cluster.write, World())
        await found.load()
        after = ClientQuotas(found)
        assert {entity: after.of(entity) for entity in after} == {ann: set_by_both}

    run(test)


def test_quotas_that_lie_in_one_record_are_read_and_kept_apart_with_the_next_change() -> None:
    async def test(cluster: Cluster) -> None:
        one, other = [SettingsCatalog("settings", cluster, cluster.write, World()) for _ in range(2)]
        key, entity = b'quota/[["user", "a"]]', ((USER, "a"),)
        await one.put(key, b'{"producer_byte_rate": 5.0, "consumer_byte_rate": 7.0}')
        await other.load()
        quotas, seen = ClientQuotas(one), ClientQuotas(other)
        await quotas.change({entity: {"producer_byte_rate": None}})
        await told(cluster, other)
        assert quotas.of(entity) == seen.of(entity) == {"consumer_byte_rate": 7.0}
        assert (one.get(key), other.get(key)) == (None, None)

    run(test)


def test_rights_are_deleted_that_another_node_has_just_added() -> None:
    async def test(cluster: Cluster) -> None:
        one, other = [SettingsCatalog("settings", cluster, cluster.write, World()) for _ in range(2)]
        rights, others = Acls(one), Acls(other)
        other.follow(Still())
        kept, gone = Acl(2, "t", 3, "User:b", "*", 3, 3), Acl(2, "t", 3, "User:a", "*", 3, 3)
        await rights.change([kept, gone])
        # it is not notified
        filters = [AclFilter(1, None, 1, "User:a", None, 1, 1)]
        assert await others.delete(filters, lambda: asyncio.sleep(0)) == [[gone]]
        await told(cluster, one)
        assert list(rights.of(2, "t")) == list(others.of(2, "t")) == [kept]

    run(test)


def test_settings_that_lie_in_one_record_are_read_and_kept_apart_with_the_next_change() -> None:
    async def test(cluster: Cluster) -> None:
        _, catalog, configs = await two_nodes(cluster)
        await catalog.put(b"config/32/g", b'{"a": "1", "b": "2"}')
        assert (await node(cluster)).get(ResourceType.GROUP, "g") == {"a": "1", "b": "2"}
        configs = TierConfigs(catalog)
        await configs.alter(ResourceType.GROUP, "g", lambda: {"b": "2", "c": "3"})
        assert configs.get(ResourceType.GROUP, "g") == {"b": "2", "c": "3"}
        assert catalog.get(b"config/32/g") is None
        assert (await node(cluster)).get(ResourceType.GROUP, "g") == {"b": "2", "c": "3"}

    run(test)


def test_nothing_is_set_while_it_is_not_known_what_others_have_set() -> None:
    async def test(cluster: Cluster) -> None:
        _, _, others = await two_nodes(cluster)
        cluster.end += 1
        cluster.unread = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        with pytest.raises(KafkaError) as error:
            await others.alter(ResourceType.GROUP, "g", lambda: {"a": "1"})
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR

    run(test)


def test_what_operators_want_reaches_nodes() -> None:
    async def test(cluster: Cluster) -> None:
        one, other = [SettingsCatalog("settings", cluster, cluster.write, World()) for _ in range(2)]
        placement, seen = PlacementRules(one), PlacementRules(other)
        changes: list[int] = []
        seen.on_change(lambda: changes.append(1))
        await placement.pin([Pin(3, 2), Pin(11, 0)])
        await placement.drain(2, drained=True)
        await told(cluster, other)
        assert (seen.pins(), seen.drained(), len(changes)) == ({3: 2, 11: 0}, {2}, 3)
        at = cluster.end
        await placement.pin([Pin(3, None)])
        await placement.drain(2, drained=False)
        await told(cluster, other, at)
        assert (seen.pins(), seen.drained(), len(changes)) == ({11: 0}, set(), 5)

    run(test)


def test_a_state_topic_that_has_grown_is_refused() -> None:
    async def test(cluster: Cluster) -> None:
        one, other = [SettingsCatalog("settings", cluster, cluster.write, World()) for _ in range(2)]
        await one.check_slots(64)
        await one.check_slots(64)
        await other.load()
        with pytest.raises(ConfigError, match="has 65 partitions; allowed: the 64"):
            await other.check_slots(65)

    run(test)


async def current(catalog: SettingsCatalog) -> KafkaError | None:
    """Return the result of waiting until all settings are known."""
    heard: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
    catalog.when_current(heard.set_result)
    return await asyncio.wait_for(heard, 10)


async def two_nodes(cluster: Cluster) -> tuple[TierConfigs, SettingsCatalog, TierConfigs]:
    """Return a node that changes settings, and one that is not notified."""
    one, other = [SettingsCatalog("settings", cluster, cluster.write, World()) for _ in range(2)]
    await one.check_slots(4)
    await other.load()
    other.follow(Still())
    return TierConfigs(one), other, TierConfigs(other)


def test_who_asks_hears_of_what_was_set_before_however_slow_the_node_follows() -> None:
    async def test(cluster: Cluster) -> None:
        one, other, seen = await two_nodes(cluster)
        told: list[str] = []
        seen.on_change(lambda kind, name: told.append(name))
        await one.replace(ResourceType.GROUP, "g", {"share.auto.offset.reset": "earliest"})
        assert seen.get(ResourceType.GROUP, "g") == {}
        assert list(await asyncio.gather(current(other), current(other))) == [None, None]
        assert seen.get(ResourceType.GROUP, "g") == {"share.auto.offset.reset": "earliest"}
        await one.replace(ResourceType.GROUP, "g", {})
        assert await current(other) is None
        assert (seen.names(ResourceType.GROUP), told) == ([], ["g", "g"])

    run(test)


@pytest.mark.parametrize("silent", [False, True])
def test_who_asks_is_refused_while_the_topic_cannot_be_read(
    silent: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(settings_module, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(settings_module, "_RETRY_S", 0.01)

    async def test(cluster: Cluster) -> None:
        one, other, seen = await two_nodes(cluster)
        await one.replace(ResourceType.GROUP, "g", {"share.auto.offset.reset": "earliest"})
        cluster.silent = silent
        cluster.unread = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "it takes Read on it")
        refused = await current(other)
        assert refused is not None
        assert refused.code is ErrorCode.KAFKA_STORAGE_ERROR
        why = "no answer within" if silent else "it takes Read on it"
        assert "until settings can be read upstream, since it may set its group's share.auto" in caplog.text
        assert (why in caplog.text, why in refused.message) == (True, True)
        cluster.silent, cluster.unread = False, None
        assert await current(other) is None
        assert seen.get(ResourceType.GROUP, "g") == {"share.auto.offset.reset": "earliest"}

    run(test)


def test_settings_that_are_lost_upstream_are_so_on_nodes() -> None:
    """An unclean election drops the newest records; later settings get their offsets."""

    async def test(cluster: Cluster) -> None:
        one, other, seen = await two_nodes(cluster)
        await one.replace(ResourceType.GROUP, "kept", {"a": "1"})
        await one.replace(ResourceType.GROUP, "changed", {"a": "1"})
        end = cluster.end
        await one.replace(ResourceType.GROUP, "changed", {"a": "2"})
        await one.replace(ResourceType.GROUP, "gone", {"a": "1"})
        assert await current(other) is None
        cluster.batches = [batch for batch in cluster.batches if batch[1] <= end]
        cluster.end = end
        assert await current(other) is None
        assert sorted(seen.names(ResourceType.GROUP)) == ["changed", "kept"]
        assert seen.get(ResourceType.GROUP, "changed") == {"a": "1"}
        await (await node(cluster)).replace(ResourceType.GROUP, "changed", {"a": "3"})
        assert await current(other) is None
        assert seen.get(ResourceType.GROUP, "changed") == {"a": "3"}

    run(test)


def test_a_topic_that_was_made_anew_is_followed_and_nothing_begins_before_a_node_has_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings_module, "_RETRY_S", 0.01)

    async def test(cluster: Cluster) -> None:
        one, other, seen = await two_nodes(cluster)
        await one.replace(ResourceType.GROUP, "g", {"share.auto.offset.reset": "earliest"})
        assert await current(other) is None
        other.follow(Following([cluster]))
        cluster.batches, cluster.end = [], 0
        other.failed(KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "it is another topic now"))
        refused = await current(other)
        assert refused is not None
        assert "it is empty" in refused.message
        assert seen.names(ResourceType.GROUP) == []
        configs = await node(cluster, slots=4)
        assert await current(other) is None
        await asyncio.sleep(0.1)
        await configs.replace(ResourceType.GROUP, "h", {"a": "1"})
        cluster.followers[0].advance()
        assert seen.names(ResourceType.GROUP) == ["h"], "it follows the new one"

    run(test)


class Still:
    """A fetcher stand-in."""

    offset = 0

    def subscribe(self, *how: object) -> Still:
        return self

    def allow(self, room: int) -> None:
        assert room > 0

    def seek(self, offset: int, room: int) -> None:
        """Do nothing."""

    def was_read(self, leader_epoch: int) -> None:
        """Do nothing: there is one epoch."""

    def close(self) -> None:
        """Do nothing."""
