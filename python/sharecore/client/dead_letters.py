"""Setting up a dead-letter topic (KIP-1191), on sharecore and on Apache Kafka 4.4 and newer.

Kafka archives a rejected record without a dead-letter record if anything is missing: the feature level, the
name prefix, the topic, its permission, or the group's setting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sharecore.client.configs import ResourceKind, alter_configs, describe_configs
from sharecore.client.groups import group_type
from sharecore.client.topics import BROKER_DEFAULT, create_topic
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls

TOPIC_NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
ENABLE = "errors.deadletterqueue.group.enable"
_PREFIX = "errors.deadletterqueue.topic.name.prefix"
_AUTO_CREATE = "errors.deadletterqueue.auto.create.topics.enable"
_RESERVED_PREFIX = "__"
_FEATURE, _LEVEL = "share.version", 2
_DENIED = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_UNKNOWN_GROUP = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})


@dataclass(frozen=True, slots=True)
class DeadLetterSetup:
    """The changes made by a setup.

    Args:
        changes: what was created or set, as sentences; empty if everything was in place.
        unchecked: what could not be checked, and the missing permission.
    """

    group_id: str
    topic: str
    changes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


async def set_up_dead_letters(
    transport: Transport,
    group_id: str,
    topic: str,
    *,
    create: bool = False,
    copy: bool = True,
    partitions: int = BROKER_DEFAULT,
    replication_factor: int = BROKER_DEFAULT,
) -> DeadLetterSetup:
    """Send a share group's dead-letter records to a topic: enable the topic, and configure the group.

    If everything is in place, only permissions to read it are needed.

    Args:
        create: create the topic if it is missing.
        copy: whether a dead-letter record contains the original record.
        partitions, replication_factor: for a new topic; -1: the broker's defaults.

    Raises:
        KafkaError: dead-letter records would not be written, with the reason; or a permission is missing,
            with its name.
    """
    setup = _Setup(transport, group_id, topic)
    if topic.startswith(_RESERVED_PREFIX) or not topic:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic!r} cannot be a dead-letter topic")
    await setup.check_feature()
    created_later = await setup.check_brokers()
    await setup.check_group()
    exists = await setup.topic_exists()
    if exists:
        await setup.permit_topic()
    elif create:
        await setup.create_topic(partitions, replication_factor)
    elif not created_later:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"there is no topic {topic}, and {_AUTO_CREATE} is not true: create it (--create)",
        )
    await setup.set_group({TOPIC_NAME: topic, COPY: "true" if copy else "false"})
    return DeadLetterSetup(group_id, topic, tuple(setup.changes), tuple(setup.unchecked))


class _Setup:
    def __init__(self, transport: Transport, group_id: str, topic: str) -> None:
        self._transport = transport
        self._group_id = group_id
        self._topic = topic
        self.changes: list[str] = []
        self.unchecked: list[str] = []

    async def check_feature(self) -> None:
        """Raise KafkaError if the cluster does not write dead-letter records."""
        levels = await self._transport.features()
        level, highest = levels.get(_FEATURE, (0, 0))
        if level >= _LEVEL:
            return
        remedy = f"raise it: kafka-features.sh upgrade --feature {_FEATURE}={_LEVEL}"
        if highest < _LEVEL:
            remedy = f"its brokers support at most {highest}: use Apache Kafka 4.4 or newer, or sharecore"
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the cluster does not write dead-letter records: {_FEATURE} is at {level}, and {_LEVEL} is "
            f"needed; {remedy}",
        )

    async def check_brokers(self) -> bool:
        """Return whether brokers create the topic automatically.

        Raises:
            KafkaError: the topic's name lacks the prefix that the brokers require.
        """

        async def ask(node: int) -> Mapping[str, str]:
            found = await describe_configs(
                self._transport, ResourceKind.BROKER, str(node), (_PREFIX, _AUTO_CREATE)
            )
            return {name: entry.value or "" for name, entry in found.items()}

        try:
            brokers = await asyncio.gather(*(ask(node) for node in await self._transport.nodes()))
        except KafkaError as error:
            if error.code not in _DENIED:
                raise
            self.unchecked.append(
                f"whether {_PREFIX} allows {self._topic}: "
                "the right DESCRIBE_CONFIGS on the cluster is missing"
            )
            return False
        for broker in brokers:
            prefix = broker.get(_PREFIX, "")
            if not self._topic.startswith(prefix):
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"{self._topic} does not begin with {prefix}, as dead-letter topics must ({_PREFIX}): "
                    f"use {prefix}{self._topic}",
                )
        return all(broker.get(_AUTO_CREATE) == "true" for broker in brokers)

    async def check_group(self) -> None:
        """Raise KafkaError if the group is not a share group, or reads the topic itself."""
        try:
            read = await self._read_topics()
        except KafkaError as error:
            if error.code in _DENIED:
                self.unchecked.append(
                    f"whether {self._group_id} reads {self._topic} itself: "
                    f"the right DESCRIBE on the group is missing"
                )
                return
            if error.code not in _UNKNOWN_GROUP:
                raise
            kind = await group_type(self._transport, self._group_id)
            if kind not in (None, "share"):
                raise KafkaError(
                    ErrorCode.GROUP_ID_NOT_FOUND,
                    f"{self._group_id} is a {kind} group; only share groups have dead letters",
                ) from None
            return
        if self._topic in read:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"group {self._group_id} reads {self._topic}, and would receive its own dead-letter "
                "records: use another topic",
            )

    async def _read_topics(self) -> set[str]:
        ask = {"group_ids": [self._group_id], "include_authorized_operations": False}
        group = await self._transport.coordinator(
            self._group_id, calls.SHARE_GROUP_DESCRIBE, ask, lambda answer: answer.groups[0]
        )
        offsets = await self._transport.coordinator(
            self._group_id,
            calls.DESCRIBE_SHARE_GROUP_OFFSETS,
            {"groups": [{"group_id": self._group_id, "topics": None}]},
            lambda answer: answer.groups[0],
        )
        subscribed = {name for member in group.members for name in member.subscribed_topic_names}
        return subscribed | {topic.topic_name for topic in offsets.topics}

    async def topic_exists(self) -> bool:
        try:
            with self._needs("DESCRIBE", f"topic {self._topic}"):
                await self._transport.topic(self._topic)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return False
        return True

    async def create_topic(self, partitions: int, replication_factor: int) -> None:
        configs = {ENABLE: "true", "message.timestamp.type": "CreateTime"}
        try:
            with self._needs("CREATE", f"topic {self._topic} or the cluster"):
                await create_topic(
                    self._transport,
                    self._topic,
                    partitions=partitions,
                    replication_factor=replication_factor,
                    configs=configs,
                )
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            await self.permit_topic()  # created by another client meanwhile
            return
        self.changes.append(f"topic {self._topic} created with {ENABLE}=true")

    async def permit_topic(self) -> None:
        """Allow share groups to write dead-letter records to the existing topic."""
        kind = ResourceKind.TOPIC
        try:
            found = await describe_configs(
                self._transport, kind, self._topic, (ENABLE, "cleanup.policy", "message.timestamp.type")
            )
        except KafkaError as error:
            if error.code not in _DENIED:
                raise
            found = {}
        policy = found["cleanup.policy"].value or "" if "cleanup.policy" in found else ""
        if "compact" in policy:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"topic {self._topic} is compacted (cleanup.policy={policy}), which loses dead-letter "
                "records: use another topic, or set cleanup.policy=delete",
            )
        if ENABLE in found and found[ENABLE].value == "true":
            return
        with self._needs("ALTER_CONFIGS", f"topic {self._topic}"):
            await alter_configs(self._transport, kind, self._topic, {ENABLE: "true"})
        self.changes.append(f"topic {self._topic}: {ENABLE}=true")

    async def set_group(self, wanted: Mapping[str, str]) -> None:
        kind = ResourceKind.GROUP
        try:
            found = await describe_configs(self._transport, kind, self._group_id, tuple(wanted))
        except KafkaError as error:
            if error.code not in _DENIED:
                raise
            found = {}
        missing = {
            name: value
            for name, value in wanted.items()
            if name not in found or (found[name].value or "") != value
        }
        if not missing:
            return
        with self._needs("ALTER_CONFIGS", f"group {self._group_id}"):
            await alter_configs(self._transport, kind, self._group_id, missing)
        self.changes += [f"group {self._group_id}: {name}={value}" for name, value in missing.items()]

    @contextmanager
    def _needs(self, right: str, resource: str) -> Iterator[None]:
        """Add the missing permission to an authorization error."""
        try:
            yield
        except KafkaError as error:
            if error.code not in _DENIED:
                raise
            raise KafkaError(
                error.code,
                f"the right {right} on {resource} is missing: grant it, or have an administrator run "
                f"sharecore groups dead-letters {self._group_id} --topic {self._topic} --create",
            ) from None
