"""What a job's driver asks a cluster beforehand."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from sharecore.admin import Admin, TopicPartition
from sharecore.admin.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport
from sharecore.config import GroupConfig
from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls

Value = TypeVar("Value")

_LIMIT = "share.delivery.count.limit"


@dataclass(frozen=True, slots=True)
class Ends:
    """Where the log of a partition begins and ends; `size_bytes` is None if the broker does not report it."""

    log_start: int
    log_end: int
    size_bytes: int | None = None


def check_group(connection: Mapping[str, str], group: str) -> None:
    """Raise KafkaError unless the share group exists and the broker lets it be read."""

    async def ask() -> None:
        async with Admin(connection) as admin:
            await admin.describe(group)

    _run(ask(), connection, group)


def delivery_limit(connection: Mapping[str, str], group: str) -> int:
    """Return the delivery limit of a group, `share.delivery.count.limit`.

    Raises:
        KafkaError: there is no such share group, or the broker refused.
    """

    async def ask() -> int:
        async with Admin(connection) as admin:
            await admin.describe(group)
            entry = (await admin.configs(group)).get(_LIMIT)
            if entry is None or not entry.value:
                return GroupConfig().share_delivery_count_limit
            return int(entry.value)

    return _run(ask(), connection, group)


def ends(connection: Mapping[str, str], partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Ends]:
    """Return the first and last offsets of the logs of partitions, without deleted ones.

    Raises:
        KafkaError: a broker did not answer, or refused.
    """
    wanted = set(partitions)

    async def ask() -> dict[TopicPartition, Ends]:
        transport = Transport(read_connection_settings(connection))
        try:
            there: set[TopicPartition] = set()
            for topic in sorted({each.topic for each in wanted}):
                there.update(await _partitions_of(transport, topic))
            some = wanted & there
            starts = await transport.offsets_for(some, EARLIEST_TIMESTAMP)
            last = await transport.offsets_for(some, LATEST_TIMESTAMP)
            sizes = await _sizes(transport, some)
            return {each: Ends(starts[each], last[each], sizes.get(each)) for each in some}
        finally:
            await transport.close()

    return _run(ask(), connection)


def topic_of(connection: Mapping[str, str], topic: str) -> tuple[UUID, list[TopicPartition]]:
    """Return the id of a topic, and its partitions; raise KafkaError (UNKNOWN_TOPIC_OR_PARTITION)."""

    async def ask() -> tuple[UUID, list[TopicPartition]]:
        transport = Transport(read_connection_settings(connection))
        try:
            return await transport.topic(topic)
        finally:
            await transport.close()

    return _run(ask(), connection)


async def _partitions_of(transport: Transport, topic: str) -> list[TopicPartition]:
    try:
        return await transport.partitions_of(topic)
    except KafkaError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return []


async def _sizes(transport: Transport, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    message = {"topics": [{"topic": topic, "partitions": some} for topic, some in topics.items()]}
    try:
        answers = await transport.all(calls.DESCRIBE_LOG_DIRS, message)
    except KafkaError as error:
        # it needs DESCRIBE on the cluster, which readers of the group may lack
        if error.code not in (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION):
            raise
        return {}
    found: dict[TopicPartition, int] = {}
    for answer in answers:
        for directory in answer.results:
            for held in directory.topics:
                for part in held.partitions:
                    # replicas have about the same size
                    key = TopicPartition(held.name, part.partition_index)
                    found[key] = max(found.get(key, 0), part.partition_size)
    return found


def _run(work: Coroutine[object, object, Value], connection: Mapping[str, str], group: str = "") -> Value:
    try:
        return asyncio.run(work)
    except KafkaError as error:
        raise explained(error, connection, group) from None


def explained(error: KafkaError, connection: Mapping[str, str], group: str = "") -> KafkaError:
    """Return the error with advice, if there is any."""
    hints = {
        ErrorCode.NETWORK_EXCEPTION: f"no broker answers at {connection.get('bootstrap.servers')}",
        ErrorCode.GROUP_ID_NOT_FOUND: f"there is no share group {group}: sharecore groups list shows all",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: f"the user may not see group {group}: grant DESCRIBE on it",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the user may not read the topic: grant READ on it",
        ErrorCode.SASL_AUTHENTICATION_FAILED: "the credentials in --command-config or -X are not accepted",
        ErrorCode.UNSUPPORTED_VERSION: "share groups need Kafka 4.2 or later, with share.version 1",
    }
    hint = hints.get(error.code)
    return KafkaError(error.code, f"{hint} ({error})") if hint else error
