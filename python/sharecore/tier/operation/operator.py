"""A tier as its operators see it: read from its cluster, and controlled through its settings topic.

No node is needed: reports of nodes are in their group, and placement rules in the settings topic, which all
nodes follow. This takes the permissions of a node's user, and works even if no node runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sharecore.broker.cluster import NOBODY
from sharecore.client.settings import read_connection_settings
from sharecore.clock import SystemClock
from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.protocol import calls
from sharecore.tier.membership.view import FIRST_NODE_ID
from sharecore.tier.names import group_of, settings_topic
from sharecore.tier.settings.own_topics import WrongSetting, find_wrong
from sharecore.tier.settings.placement_rules import PlacementRules
from sharecore.tier.settings.topic import SettingsCatalog
from sharecore.tier.slots import slot_of_partition
from sharecore.tier.slots.ownership import Assignment, MemberFields, Report, unpack_assignments
from sharecore.tier.upstream.sending import Sending
from sharecore.upstream import EARLIEST, LATEST, Administration, ListedOffset, Outlet, Topic, Upstream
from sharecore.upstream.cluster import GROUP
from sharecore.upstream.errors import refusal

if TYPE_CHECKING:
    from sharecore.protocol import received

_DEFAULTS = {
    "client.id": "sharecore-tier-operator",
    "request.timeout.ms": "10000",
    "default.api.timeout.ms": "30000",
}
_LOOK_S = 0.2
_REBALANCE_S = 15.0
_REBALANCING = ("PreparingRebalance", "CompletingRebalance")


class NodeStatus(NamedTuple):
    """A node, by its `node.id`.

    Attributes:
        endpoints: host and port by listener.
        slots, gets, gives_up: number of slots owned, awaited, and being released.
        leaving: whether it is shutting down or drained.
    """

    node: int
    endpoints: Mapping[str, tuple[str, int]]
    rack: str | None
    slots: int
    gets: int
    gives_up: int
    leaving: bool


class SlotStatus(NamedTuple):
    """A slot.

    Attributes:
        owner: its node, by `node.id`; None without one.
        epoch: minimum leader epoch for clients.
        next: the successor.
        pin: the preferred node.
        start, end: offsets of its partition; a claim reads these records.
        leader: the upstream broker that leads the partition; -1 without one.
        in_sync: number of in-sync replicas, and of all.
    """

    slot: int
    owner: int | None
    epoch: int
    next: int | None
    pin: int | None
    start: int
    end: int
    leader: int
    in_sync: tuple[int, int]


class Status(NamedTuple):
    """A tier.

    Attributes:
        cluster_id, brokers: of the upstream cluster.
        state: state of the nodes' group, such as Stable, PreparingRebalance, Empty.
        drained: drained nodes, live or not.
        wrong: settings of the tier's topics to correct.
    """

    cluster_id: str
    brokers: int
    topic: str
    state: str
    nodes: list[NodeStatus]
    slots: list[SlotStatus]
    drained: list[int]
    wrong: list[WrongSetting]


class Operator:
    """Access to one tier; created by `connect`."""

    def __init__(self, config: BrokerConfig, upstream: Upstream) -> None:
        self.topic = config.sharecore_tier_state_topic
        self.config = config
        self.upstream = upstream
        self.admin = Administration(upstream)
        self.outlet = Outlet(upstream)
        self.catalog = SettingsCatalog(
            settings_topic(self.topic), self.admin, Sending(upstream, self.outlet).write, SystemClock()
        )
        self.placement = PlacementRules(self.catalog)

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, config: BrokerConfig) -> AsyncIterator[Operator]:
        """Connect to the cluster of a tier.

        Raises:
            ConfigError: a connection setting is unknown, or no cluster is named.
            KafkaError: the cluster cannot be reached.
        """
        if "bootstrap.servers" not in config.upstream_settings:
            raise ConfigError("which cluster? allowed: --upstream HOST:PORT, or -c with the file of a node")
        upstream = Upstream(
            read_connection_settings(_DEFAULTS | dict(config.upstream_settings)), SystemClock()
        )
        await upstream.start()
        try:
            yield cls(config, upstream)
        finally:
            await upstream.close()

    async def load(self) -> Topic:
        """Read the settings; return the state topic.

        Raises:
            KafkaError: no tier has this name, or it cannot be read.
        """
        found = await self.upstream.topics([self.topic, self.catalog.topic])
        for name, topic in found.items():
            if isinstance(topic, KafkaError):
                raise KafkaError(
                    topic.code,
                    f"{topic.message}; if no node was ever started with sharecore.tier.state.topic="
                    f"{self.topic}, there is no such tier",
                )
            del name
        await self.catalog.load()
        state = found[self.topic]
        assert isinstance(state, Topic)
        return state

    async def members(self) -> tuple[str, dict[str, MemberFields], list[Report], list[Assignment]]:
        """Return the group's state, member metadata, node reports, and slot assignments."""
        group = group_of(self.topic)
        until = asyncio.get_running_loop().time() + _REBALANCE_S

        async def ask() -> received.DescribeGroupsDescribedGroup:
            connection = await self.upstream.coordinator(GROUP, group, "ask")
            message = {"groups": [group], "include_authorized_operations": False}
            answer: received.DescribeGroupsResponse = await connection.request(calls.DESCRIBE_GROUPS, message)
            (found,) = answer.groups
            if found.error_code and found.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise refusal(found.error_code, "to describe group", group, "Describe")
            return found

        # metadata is unavailable while members join
        while (found := await self.upstream.retry(ask)).group_state in _REBALANCING:
            if asyncio.get_running_loop().time() >= until:
                break
            await asyncio.sleep(_LOOK_S)
        metadata = {each.member_id: each for each in found.members if each.member_metadata}
        read: list[MemberFields] = [json.loads(each.member_metadata) for each in metadata.values()]
        nodes = {str(each["node_id"]): each for each in read}
        packed = [each.member_assignment for each in found.members if each.member_assignment]
        assignments = unpack_assignments(json.loads(packed[0])) if packed else []
        return found.group_state, nodes, [Report.unpack(each) for each in nodes.values()], assignments

    async def status(self) -> Status:
        """Return the status of the tier.

        Raises:
            KafkaError: the cluster cannot be queried.
        """
        topic = await self.load()
        state, extra, reports, assignments = await self.members()
        pins, drained = self.placement.pins(), self.placement.drained()
        if len(assignments) < len(topic.partitions):
            assignments = [Assignment(NOBODY, -1)] * len(topic.partitions)
        live = {report.node_id for report in reports}
        places = [(self.topic, slot) for slot in range(len(topic.partitions))]
        starts = await self.admin.list_offsets(dict.fromkeys(places, EARLIEST))
        ends = await self.admin.list_offsets(dict.fromkeys(places, LATEST))
        slots = []
        for slot, partition in enumerate(topic.partitions):
            start, end = (_offset(each[self.topic, slot]) for each in (starts, ends))
            assignment = assignments[slot]
            slots.append(
                SlotStatus(
                    slot,
                    _number(assignment.node_id) if assignment.node_id in live else None,
                    assignment.epoch,
                    _number(assignment.next_id),
                    pins.get(slot),
                    start,
                    end,
                    partition.leader,
                    (len(partition.isr), len(partition.replicas)),
                )
            )
        nodes = [
            NodeStatus(
                report.node_id - FIRST_NODE_ID,
                {
                    name: (host, port)
                    for name, (host, port) in extra[str(report.node_id)]["endpoints"].items()
                },
                extra[str(report.node_id)]["rack"],
                sum(assignment.node_id == report.node_id for assignment in assignments),
                sum(assignment.next_id == report.node_id for assignment in assignments),
                sum(
                    assignment.node_id == report.node_id and assignment.next_id != NOBODY
                    for assignment in assignments
                ),
                report.leaving,
            )
            for report in sorted(reports, key=lambda each: each.node_id)
        ]
        metadata = self.upstream.metadata
        return Status(
            metadata.cluster_id,
            len(metadata.nodes),
            self.topic,
            state,
            nodes,
            slots,
            sorted(drained),
            await find_wrong(self.admin, self.config),
        )

    async def find_slots(self, what: str) -> list[int]:
        """Return the slots of `SLOT`, of `TOPIC:PARTITION`, or of all partitions of `TOPIC`.

        Raises:
            KafkaError: the slot, topic or partition does not exist.
        """
        count = len((await self.load()).partitions)
        name, colon, index = what.rpartition(":")
        if what.isdecimal():
            if int(what) >= count:
                raise _invalid(f"there is no slot {what}: there are 0 to {count - 1}")
            return [int(what)]
        name, chosen = (name, index) if colon and index.isdecimal() else (what, "")
        topic = (await self.upstream.topics([name]))[name]
        if isinstance(topic, KafkaError):
            raise topic
        partitions = range(len(topic.partitions))
        if chosen and int(chosen) not in partitions:
            raise _invalid(f"{name} has partitions 0 to {len(partitions) - 1}, not {chosen}")
        wanted = [int(chosen)] if chosen else partitions
        if name == self.topic:
            return list(wanted)
        return sorted({slot_of_partition(topic.topic_id, each, count) for each in wanted})

    async def wait(self, settled: Callable[[Status], bool], seconds_max: float) -> bool:
        """Return whether the tier reaches the wanted status in time.

        Args:
            settled: called with a `Status`; returns whether it is the wanted one.
        """
        until = asyncio.get_running_loop().time() + seconds_max
        while not settled(await self.status()):
            if asyncio.get_running_loop().time() >= until:
                return False
            await asyncio.sleep(_LOOK_S)
        return True


def _offset(found: ListedOffset | KafkaError) -> int:
    return -1 if isinstance(found, KafkaError) else found.offset


def _number(node_id: int) -> int | None:
    return None if node_id == NOBODY else node_id - FIRST_NODE_ID


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
