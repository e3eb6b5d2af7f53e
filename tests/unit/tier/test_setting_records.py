"""Records of the settings topic that no node writes: skipped, and named in the log."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.coordinator_log.world import World
from tests.unit.tier.test_settings import Cluster, run, told

from sharecore.broker.coordinators.producer_ids import ProducerIds
from sharecore.broker.features import Features
from sharecore.quotas import ClientQuotas
from sharecore.security.acl import AclFilter
from sharecore.security.acls import Acls
from sharecore.security.scram import Credentials
from sharecore.storage import ResourceType
from sharecore.tier.settings.placement_rules import Pin, PlacementRules
from sharecore.tier.settings.records import flaw
from sharecore.tier.settings.topic import SettingsCatalog, TierConfigs

STRANGERS: list[tuple[bytes, bytes | None]] = [
    (b"tier/slots", b"many"),
    (b"tier/slots/more", b"7"),
    (b"tier/pin/first", b"1"),
    (b"tier/pin/3", b"node 2"),
    (b"tier/pin/-1", b"1"),
    (b"tier/pin/ 3", b"1"),
    (b"tier/drain/\xff", b"1"),
    (b"tier/drain/", None),
    (b"acl/all of it", b""),
    (b'acl/[2, "t"]', b""),
    (b'acl/[2, 7, 3, "User:x", "*", 3, 3]', b""),
    (b"acl/{}", None),
    (b"scram/SCRAM-SHA-256/\xff", b"[]"),
    (b"scram/SCRAM-SHA-256/x", b"password"),
    (b"scram/SCRAM-SHA-256/x", b'["?", "", "", 1]'),
    (b"quota/everybody", b"{}"),
    (b'quota/[["user", "x"]]', b'{"producer_byte_rate": "much"}'),
    (b'quota/[["user", "x"]]', b"[1]"),
    (b'limit/[["user", 1]]/producer_byte_rate', b"1.0"),
    (b'limit/[["user", "x"]]/producer_byte_rate', b"much"),
    (b"config/32/g", b"not JSON"),
    (b"config/topics/g", b"{}"),
    (b"setting/33/g/share.auto.offset.reset", b"earliest"),
    (b"setting/32/g/share.auto.offset.reset", b"\xff"),
    (b"features", b"all"),
    (b"features", b'{"epoch": 1, "levels": {"share.version": null}}'),
    (b"producer-ids", b"next"),
    (b"acl/" + b"[" * 100_000, None),
]


@pytest.mark.parametrize(("key", "value"), STRANGERS, ids=lambda part: repr(part)[:40])
def test_a_record_that_no_node_writes_is_passed_over(
    key: bytes, value: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(cluster: Cluster) -> None:
        def read(catalog: SettingsCatalog) -> list[Any]:
            ProducerIds(catalog)
            placement = PlacementRules(catalog)
            return [
                catalog.slots,
                placement.pins(),
                placement.drained(),
                list(ClientQuotas(catalog)),
                Credentials(catalog).users(),
                Acls(catalog).select(AclFilter()),
                TierConfigs(catalog).names(ResourceType.GROUP),
                Features(catalog, 1).levels,
            ]

        first = SettingsCatalog("settings", cluster, cluster.write, World())
        await first.check_slots(7)
        placement = PlacementRules(first)
        await placement.pin([Pin(3, 2)])
        before, at = read(first), cluster.end
        await cluster.write("settings", 0, [(key, value)], 0)
        await told(cluster, first, at)
        later = SettingsCatalog("settings", cluster, cluster.write, World())
        await later.load()
        assert read(first) == read(later) == before
        assert (placement.pins(), first.slots) == ({3: 2}, 7)

    run(test)
    (line,) = {each.getMessage() for each in caplog.records if each.levelname == "WARNING"}
    assert f"settings, offset 2: ignoring the record '{repr(key)[2:20]}" in line
    assert len(line) < 500


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"tier/slots", b"64"),
        (b"tier/pin/0", b"0"),
        (b"tier/drain/2147483647", b"1"),
        (b'acl/[2, "t", 3, "User:x", "*", 3, 3]', b""),
        (b"scram/SCRAM-SHA-512/a/b", b'["YQ==", "YQ==", "YQ==", 4096]'),
        (b'quota/[["user", null]]', b'{"producer_byte_rate": 1.5}'),
        (b'limit/[["client-id", "a/b"]]/request_percentage', b"7.0"),
        (b"config/32/g/h", b'{"share.session.timeout.ms": "45000"}'),
        (b"setting/2/t/errors.deadletterqueue.group.enable", b"true"),
        (b"features", b'{"epoch": 1, "levels": {"share.version": 1}}'),
        (b"producer-ids", b"1000"),
        (b"of a later version", b"\xff"),
    ],
)
def test_what_nodes_write_has_no_flaw(key: bytes, value: bytes) -> None:
    assert flaw(key, value) == ""
    assert flaw(key, None) == ""
