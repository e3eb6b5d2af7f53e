"""Fills a broker with something of everything that it keeps, and checks later that all of it is there.

Speaks to the broker as any client does, so that it fills one release as well as another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.harness.clients import (
    ACCEPT,
    QUIET,
    REJECT,
    RELEASE,
    commit,
    configure_group,
    create_topic,
    produce,
    share_consumer,
)

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "log.cleaner.backoff.ms": "200",
    # a store's files have 64 MB each, regardless of this setting
    "log.cleaner.min.cleanable.ratio": "0",
}
"""What a broker with such contents is started with."""

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
_RECORDS, _KEYS, _ROUNDS, _TRIMMED, _SHARED = 60, 12, 30, 7, 40
_COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0"}

Expected = dict[str, Any]


def fill(bootstrap: str, name: str, padding: int = 0) -> Expected:
    """Writes something of everything, under names with `name` in them; what `check` has to find.

    Args:
        padding: bytes to add to each plain record.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    _plain(bootstrap, name, padding)
    trimmed = TopicPartition(f"plain-{name}", 0, _TRIMMED)
    admin.delete_records([trimmed])[trimmed].result(30)
    _compacted(bootstrap, name)
    _transactions(bootstrap, name)
    _committed(bootstrap, name)
    expected = {"share": _shared(bootstrap, name)}
    _administered(admin, name)
    return expected


def check(bootstrap: str, name: str, expected: Expected) -> None:
    """Find all that `fill` wrote, and take what it had left in the share group."""
    for partition, compression in enumerate(COMPRESSIONS):
        first = _TRIMMED if partition == 0 else 0
        found = _read(bootstrap, f"plain-{name}", partition)
        assert [offset for offset, *_ in found] == list(range(first, _RECORDS)), compression
        assert all(value.startswith(b"%d of " % offset) for offset, _, value in found)
    newest = {key: value for _, key, value in _read(bootstrap, f"accounts-{name}", 0)}
    assert newest == {b"%d" % key: b"%d" % (_ROUNDS - 1) for key in range(_KEYS)}
    decided = [value for _, _, value in _read(bootstrap, f"decided-{name}", 0)]
    assert decided == [b"committed %d" % number for number in range(10)]
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": f"readers-{name}", **QUIET})
    (position,) = reader.committed([TopicPartition(f"plain-{name}", 1)], timeout=30)
    reader.close()
    assert (position.offset, position.metadata) == (33, "as far as this")
    _check_administered(AdminClient({"bootstrap.servers": bootstrap, **QUIET}), name)
    _check_shared(bootstrap, name, expected["share"])


def _plain(bootstrap: str, name: str, padding: int) -> None:
    create_topic(bootstrap, f"plain-{name}", len(COMPRESSIONS), **{"retention.ms": "-1"})
    values = [b"%d of %s " % (number, name.encode()) + b"." * padding for number in range(_RECORDS)]
    for partition, compression in enumerate(COMPRESSIONS):
        how = {"compression.type": compression, "enable.idempotence": partition % 2 == 0}
        produce(bootstrap, f"plain-{name}", values, partition, **how)


def _compacted(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, f"accounts-{name}", 1, **_COMPACTED)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **QUIET})
    for value in range(_ROUNDS):
        for key in range(_KEYS):
            producer.produce(f"accounts-{name}", b"%d" % value, b"%d" % key, partition=0)
        assert producer.flush(30) == 0


def _transactions(bootstrap: str, name: str) -> None:
    """Five that are committed, five that are aborted, one that stays open."""
    create_topic(bootstrap, f"decided-{name}", 1)
    how = {"transactional.id": f"writer-{name}", "transaction.timeout.ms": 900_000}
    producer = Producer({"bootstrap.servers": bootstrap, **QUIET, **how})
    producer.init_transactions(30)
    for number in range(5):
        for word, end in (
            (b"committed", producer.commit_transaction),
            (b"aborted", producer.abort_transaction),
        ):
            producer.begin_transaction()
            for each in (2 * number, 2 * number + 1):
                producer.produce(f"decided-{name}", b"%s %d" % (word, each), partition=0)
            end(30)
    producer.begin_transaction()
    producer.produce(f"decided-{name}", b"undecided", partition=0)
    assert producer.flush(30) == 0


def _committed(bootstrap: str, name: str) -> None:
    """Committed offsets of a group of consumers."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": f"readers-{name}", **QUIET})
    position = TopicPartition(f"plain-{name}", 1, 33, metadata="as far as this")
    reader.commit(offsets=[position], asynchronous=False)
    reader.close()


def _shared(bootstrap: str, name: str) -> dict[str, list[int]]:
    """Return a share group that has settled some records, released some and never seen others."""
    topic, group = f"shared-{name}", f"workers-{name}"
    create_topic(bootstrap, topic)
    configure_group(bootstrap, group, share_auto_offset_reset="earliest")
    produce(
        bootstrap,
        topic,
        [b"%d" % number for number in range(_SHARED)],
        **{"linger.ms": 0, "batch.num.messages": 1},
    )
    left: dict[str, list[int]] = {"settled": [], "released": []}
    with share_consumer(bootstrap, group, [topic], **{"max.poll.records": 10}) as consumer:
        while len(left["settled"]) + len(left["released"]) < _SHARED // 2:
            for message in consumer.poll(0.5):
                offset = message.offset() or 0
                released = offset % 4 == 3
                consumer.acknowledge(message, RELEASE if released else REJECT if offset % 4 == 2 else ACCEPT)
                if message.delivery_count() == 1:
                    left["released" if released else "settled"].append(offset)
            commit(consumer)
    return left


def _check_shared(bootstrap: str, name: str, left: Mapping[str, list[int]]) -> None:
    """Every record that was not settled comes, and none that was."""
    seen: dict[int, int] = {}
    with share_consumer(bootstrap, f"workers-{name}", [f"shared-{name}"]) as consumer:
        _take_all(consumer, seen, _SHARED - len(left["settled"]))
    assert sorted(seen) == sorted(set(range(_SHARED)) - set(left["settled"]))
    assert all(seen[offset] >= 2 for offset in left["released"]), "a delivery count was forgotten"


def _take_all(consumer: ShareConsumer, seen: dict[int, int], count: int) -> None:
    for _ in range(60):
        for message in consumer.poll(0.5):
            assert message.error() is None, message.error()
            seen[message.offset() or 0] = message.delivery_count() or 0
            consumer.acknowledge(message, ACCEPT)
        commit(consumer)
        if len(seen) >= count:
            return


def _acl(name: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        f"plain-{name}",
        ResourcePatternType.PREFIXED,
        "User:somebody",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )


def _resource(kind: Any, name: str, **settings: str) -> ConfigResource:
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    return ConfigResource(kind, name, incremental_configs=entries)


def _administered(admin: AdminClient, name: str) -> None:
    admin.create_acls([_acl(name)])[_acl(name)].result(30)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    user = UserScramCredentialUpsertion(f"user-{name}", info, b"s3cret")
    admin.alter_user_scram_credentials([user])[f"user-{name}"].result(30)
    for resource in (
        _resource(ConfigResource.Type.TOPIC, f"shared-{name}", retention_bytes="123456789"),
        _resource(ConfigResource.Type.GROUP, f"workers-{name}", share_session_timeout_ms="50000"),
    ):
        admin.incremental_alter_configs([resource])[resource].result(30)


def _check_administered(admin: AdminClient, name: str) -> None:
    acl = _acl(name)
    wanted = AclBindingFilter(
        acl.restype,
        acl.name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
    assert admin.describe_acls(wanted).result(30) == [acl]
    user = f"user-{name}"
    users: Any = admin.describe_user_scram_credentials([user])
    kept = users[user].result(30)
    assert [each.iterations for each in kept.scram_credential_infos] == [4096]
    for kind, resource_name, key, value in (
        (ConfigResource.Type.TOPIC, f"shared-{name}", "retention.bytes", "123456789"),
        (ConfigResource.Type.GROUP, f"workers-{name}", "share.session.timeout.ms", "50000"),
        (ConfigResource.Type.GROUP, f"workers-{name}", "share.auto.offset.reset", "earliest"),
    ):
        resource = ConfigResource(kind, resource_name)
        assert admin.describe_configs([resource])[resource].result(30)[key].value == value
    group = ConsumerGroupTopicPartitions(f"readers-{name}")
    positions = admin.list_consumer_group_offsets([group])[group.group_id].result(30).topic_partitions
    assert [each.offset for each in positions or []] == [33]


def _read(bootstrap: str, topic: str, partition: int) -> list[tuple[int, bytes, bytes]]:
    """Offset, key and value of the decided records that a partition has now."""
    how = {"group.id": "none", "enable.auto.commit": False, "isolation.level": "read_committed"}
    reader = Consumer({"bootstrap.servers": bootstrap, "enable.partition.eof": True, **QUIET, **how})
    # the beginning may be deleted between the assignment and this call
    low, _ = reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
    reader.assign([TopicPartition(topic, partition, low)])
    found = []
    while (message := reader.poll(30)) is not None and message.error() is None:
        found.append((message.offset() or 0, message.key() or b"", message.value() or b""))
    assert message is not None, f"{topic}-{partition} does not end"
    reader.close()
    return found


def as_json(expected: Expected) -> str:
    return json.dumps(expected, indent=1) + "\n"
