"""Occasional requests to the cluster: offsets, single reads, topics and their settings."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sharecore.errors import ErrorCode, KafkaError
from sharecore.protocol import calls
from sharecore.upstream.apis import FETCH_BY_NAME
from sharecore.upstream.cluster import PASSING, Upstream
from sharecore.upstream.errors import refusal
from sharecore.upstream.fetched import Fetched, Wanted, fetch_message, read_fetched

if TYPE_CHECKING:
    from sharecore.protocol.received import ListOffsetsPartitionResponse

EARLIEST, LATEST = -2, -1
"""ListOffsets timestamps of the start and the end of a log."""
_TOPIC_RESOURCE, _SET = 2, 0
_SOME = uuid.UUID(int=0)
"""Topic id for a cluster that has none."""

Place = tuple[str, int]
"""Topic and partition."""


class ListedOffset(NamedTuple):
    """An offset, with the timestamp and the leader epoch of its record; -1 if unknown."""

    offset: int
    timestamp: int
    leader_epoch: int


class Administration:
    """Requests outside of subscriptions and writers.

    Args:
        upstream: the cluster; it keeps metadata of the requested topics fresh from then on.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def list_offsets(
        self, wanted: Mapping[Place, int], *, committed: bool = False
    ) -> dict[Place, ListedOffset | KafkaError]:
        """Return offsets by timestamp, by `EARLIEST` or by `LATEST`.

        Args:
            committed: whether the end is the last stable offset instead of the high watermark.

        Raises:
            KafkaError: nobody answers.
        """
        await self._know(topic for topic, _ in wanted)
        found: dict[Place, ListedOffset | KafkaError] = {}

        async def ask() -> None:
            left = {place: at for place, at in wanted.items() if not _settled(found.get(place))}
            found.update(await self._list(left, committed))
            passing = next((each for place in left if not _settled(each := found[place])), None)
            if isinstance(passing, KafkaError):
                raise passing

        try:
            await self._upstream.retry(ask)
        except KafkaError:
            if len(found) < len(wanted):
                raise
        return found

    async def _list(
        self, wanted: Mapping[Place, int], committed: bool
    ) -> dict[Place, ListedOffset | KafkaError]:
        by_node: dict[int, list[Place]] = {}
        for place in wanted:
            by_node.setdefault(self._upstream.metadata.leader(*place)[0], []).append(place)
        found: dict[Place, ListedOffset | KafkaError] = {}
        for place in by_node.pop(-1, ()):
            found[place] = (
                self._leaderless(place)
                if self._is_known(place)
                else _unknown(place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            )
        asked = (self._list_at(node, places, wanted, committed) for node, places in by_node.items())
        for part in await asyncio.gather(*asked):
            found |= part
        return found

    async def _list_at(
        self, node: int, places: list[Place], wanted: Mapping[Place, int], committed: bool
    ) -> dict[Place, ListedOffset | KafkaError]:
        topics: dict[str, list[dict[str, int]]] = {}
        for topic, partition in places:
            asked = {
                "partition_index": partition,
                "current_leader_epoch": -1,
                "timestamp": wanted[topic, partition],
            }
            topics.setdefault(topic, []).append(asked)
        message = {
            "replica_id": -1,
            "isolation_level": 1 if committed else 0,
            "topics": [{"name": name, "partitions": some} for name, some in topics.items()],
            "timeout_ms": self._upstream.settings.request_timeout_ms,
        }
        try:
            answer = await self._upstream.request(node, calls.LIST_OFFSETS, message)
        except KafkaError as error:
            return dict.fromkeys(places, error)
        found = {
            (topic.name, each.partition_index): each for topic in answer.topics for each in topic.partitions
        }
        return {
            # other brokers may learn of a new topic later than the one that reported it
            place: self._leaderless(place)
            if each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._is_known(place)
            else _listed(place, each)
            for place, each in found.items()
        }

    def _is_known(self, place: Place) -> bool:
        return self._upstream.metadata.get(place[0]) is not None

    async def read(
        self,
        topic: str,
        partition: int,
        offset: int,
        max_bytes: int,
        *,
        committed: bool = False,
        wait_ms: int = 0,
    ) -> Fetched:
        """Fetch once from the leader, on a connection without other requests.

        Args:
            max_bytes: approximate limit; at least one batch is returned if there is any.
            committed: whether to read only committed records, with the list of aborted transactions.
            wait_ms: how long to wait for records.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, the topic is unknown, or no broker answers.
        """
        await self._know([topic])

        async def ask() -> Fetched:
            known = self._upstream.metadata.get(topic)
            node, epoch = self._upstream.metadata.leader(topic, partition)
            if known is None or node < 0:
                raise self._leaderless((topic, partition))
            wanted = Wanted(topic, known.topic_id, partition, offset, max_bytes, epoch)
            message = fetch_message([wanted], committed=committed, max_wait_ms=wait_ms, max_bytes=max_bytes)
            connection = await self._upstream.connect(node, "read")
            answer = await connection.request(
                calls.FETCH, message, wait_ms=wait_ms, newest=None if known.has_id else FETCH_BY_NAME
            )
            if answer.error_code:
                raise refusal(answer.error_code, "to read", f"{topic}-{partition}", topic=topic)
            found = answer.responses[0].partitions[0]
            if found.error_code:
                raise refusal(found.error_code, "to read", f"{topic}-{partition}", "Read", topic=topic)
            return read_fetched(found, offset)._replace(leader_epoch=epoch)

        return await self._upstream.retry(ask)

    async def create_topic(
        self, name: str, partitions: int, replication: int, settings: Mapping[str, str]
    ) -> bool:
        """Create a topic and wait until a broker knows it; return False if it exists already.

        Raises:
            KafkaError: a permission is missing, a policy forbids it, or there are too few brokers.
        """
        configs = [{"name": key, "value": value} for key, value in settings.items()]
        topic = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": replication,
            "assignments": [],
            "configs": configs,
        }
        message = {"topics": [topic], "timeout_ms": self._upstream.settings.request_timeout_ms}

        async def create() -> uuid.UUID | None:
            controller = self._upstream.metadata.controller
            if controller < 0:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, "the upstream cluster reports no controller")
            answer = await self._upstream.request(controller, calls.CREATE_TOPICS, message)
            (made,) = answer.topics
            if made.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
                return None
            if made.error_code:
                words = getattr(made, "error_message", None)
                raise refusal(made.error_code, "to create topic", name, "Create", words)
            return getattr(made, "topic_id", None) or _SOME

        created: uuid.UUID | None = None

        async def ask() -> bool:
            # a topic that exists but is not reported may be in deletion: ZooKeeper takes a while
            nonlocal created
            created = created or await create()
            await self._appear(name, created)
            return created is not None

        return await self._upstream.retry(ask)

    async def has_topic(self, name: str) -> bool:
        """Return whether a topic exists, by a new request.

        Raises:
            KafkaError: no broker answers, or a permission is missing.
        """
        found = (await self._upstream.topics([name]))[name]
        if isinstance(found, KafkaError) and found.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise found
        return not isinstance(found, KafkaError)

    async def _appear(self, name: str, topic_id: uuid.UUID | None) -> None:
        """Raise LEADER_NOT_AVAILABLE until the metadata has the new topic and its leaders."""
        found = (await self._upstream.topics([name]))[name]
        if isinstance(found, KafkaError):
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, found.message)
        old = topic_id not in (None, _SOME, found.topic_id) and found.has_id
        if old or any(partition.leader < 0 for partition in found.partitions):
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name} has no leaders yet")

    async def topic_configs(self, name: str) -> dict[str, str | None]:
        """Return a topic's settings; secrets are None.

        Raises:
            KafkaError: the topic does not exist, or a permission is missing.
        """
        resource = {"resource_type": _TOPIC_RESOURCE, "resource_name": name, "configuration_keys": None}

        async def ask() -> dict[str, str | None]:
            nodes = self._upstream.metadata.nodes
            answer = await self._upstream.request(
                next(iter(nodes), -1), calls.DESCRIBE_CONFIGS, {"resources": [resource]}
            )
            (found,) = answer.results
            unheard = found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if unheard and self._upstream.metadata.get(name) is not None:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"a broker does not know {name} yet")
            if found.error_code:
                raise refusal(
                    found.error_code,
                    "to describe the settings of topic",
                    name,
                    "DescribeConfigs",
                    found.error_message,
                )
            return {each.name: each.value for each in found.configs}

        return await self._upstream.retry(ask)

    async def set_topic_configs(self, name: str, values: Mapping[str, str]) -> None:
        """Set some settings of a topic; the others are unchanged.

        Raises:
            KafkaError: a permission is missing, the cluster refuses a value, or no broker answers.
        """
        configs = [{"name": key, "config_operation": _SET, "value": value} for key, value in values.items()]
        resource = {"resource_type": _TOPIC_RESOURCE, "resource_name": name, "configs": configs}
        message = {"resources": [resource], "validate_only": False}

        async def ask() -> None:
            node = next(iter(self._upstream.metadata.nodes), -1)
            answer = await self._upstream.request(node, calls.INCREMENTAL_ALTER_CONFIGS, message)
            (changed,) = answer.responses
            if changed.error_code:
                doing, words = f"to set {', '.join(values)} of", changed.error_message
                raise refusal(changed.error_code, doing, name, "AlterConfigs", words)

        await self._upstream.retry(ask)

    async def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int | KafkaError]:
        """Delete the records before an offset of each partition; return the new log start offsets.

        Raises:
            KafkaError: UNSUPPORTED_VERSION if the cluster cannot (`Upstream.has`), or no broker answers.
        """
        await self._know([topic])
        found: dict[int, int | KafkaError] = {}

        async def ask() -> None:
            by_node: dict[int, list[int]] = {}
            for index in before:
                if not _settled(found.get(index)):
                    by_node.setdefault(self._upstream.metadata.leader(topic, index)[0], []).append(index)
            passing: KafkaError | None = None
            for node, indexes in by_node.items():
                found.update(await self._delete_at(node, topic, {index: before[index] for index in indexes}))
                errors = (found[index] for index in indexes)
                passing = next(
                    (each for each in errors if isinstance(each, KafkaError) and each.code in PASSING),
                    passing,
                )
            if passing is not None:
                raise passing

        try:
            await self._upstream.retry(ask)
        except KafkaError:
            if len(found) < len(before):
                raise
        return found

    async def _delete_at(
        self, node: int, topic: str, before: Mapping[int, int]
    ) -> dict[int, int | KafkaError]:
        if node < 0:
            return {index: self._leaderless((topic, index)) for index in before}
        partitions = [{"partition_index": index, "offset": offset} for index, offset in before.items()]
        message = {
            "topics": [{"name": topic, "partitions": partitions}],
            "timeout_ms": self._upstream.settings.request_timeout_ms,
        }
        answer = await self._upstream.request(node, calls.DELETE_RECORDS, message)
        return {
            each.partition_index: refusal(
                each.error_code,
                "to delete records of",
                f"{topic}-{each.partition_index}",
                "Delete",
                topic=topic,
            )
            if each.error_code
            else each.low_watermark
            for each in answer.topics[0].partitions
        }

    async def _know(self, names: Iterable[str]) -> None:
        """Request the metadata of unknown topics.

        Raises:
            KafkaError: a topic does not exist.
        """
        missing = [name for name in set(names) if self._upstream.metadata.get(name) is None]
        for found in (await self._upstream.topics(missing)).values():
            if isinstance(found, KafkaError):
                raise found

    def _leaderless(self, place: Place) -> KafkaError:
        self._upstream.stale()
        return KafkaError(
            ErrorCode.LEADER_NOT_AVAILABLE, f"{place[0]}-{place[1]} has no leader upstream, or does not exist"
        )


def _settled(found: ListedOffset | KafkaError | int | None) -> bool:
    return found is not None and not (isinstance(found, KafkaError) and found.code in PASSING)


def _unknown(place: Place, code: int) -> KafkaError:
    return refusal(code, "to list offsets of", f"{place[0]}-{place[1]}", "Describe", topic=place[0])


def _listed(place: Place, answer: ListOffsetsPartitionResponse) -> ListedOffset | KafkaError:
    if answer.error_code:
        return _unknown(place, answer.error_code)
    return ListedOffset(answer.offset, answer.timestamp, answer.leader_epoch)
