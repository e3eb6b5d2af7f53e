"""Administration: creates, extends and deletes topics; resets the offsets of groups, and deletes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping

from sharecore.admin import Admin, TopicPartition
from sharecore.admin.model import Target
from sharecore.admin.topics import TopicAdmin
from sharecore.client.errors import CorruptRecords
from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.client.producer import Producer
from sharecore.errors import ErrorCode, KafkaError
from sharecore.verify.workload.journal import Journal
from sharecore.verify.workload.member import Member

_RECORDS = 30
_TRIES = 60


class Lives:
    """A topic and a group that are created again and again under the same names.

    In the history each incarnation has a unique name, `NAME#2` after `NAME#1`: nothing of one may appear in
    the next.
    """

    def __init__(self, journal: Journal, settings: Mapping[str, str]) -> None:
        self._journal, self._settings = journal, dict(settings)
        self._topic = self._group = journal.plan.life
        self._number = 0

    async def run(self) -> None:
        """Run incarnations until the load ends."""
        async with Admin(self._settings) as admin, TopicAdmin(self._settings) as topics:
            while self._journal.load.is_set():
                self._number += 1
                try:
                    await self._live(admin, topics)
                except KafkaError as error:
                    self._journal.trouble("lives", error)
                    await asyncio.sleep(1)
            await self._call("delete_topic", topics.delete(self._topic))

    async def _call(self, what: str, call: Awaitable[object]) -> bool:
        """Retry an administrator's call until it succeeds; return whether it did."""
        began = self._journal.now_ms()
        try:
            await call
        except KafkaError as error:
            self._journal.write("admin", began, "unknown", client="lives", what=what, error=str(error)[:200])
            return error.code is ErrorCode.TOPIC_ALREADY_EXISTS
        self._journal.write("admin", began, client="lives", what=what)
        return True

    async def _live(self, admin: Admin, topics: TopicAdmin) -> None:
        label = f"{self._topic}#{self._number}"
        if not await self._call(
            "create_topic", topics.create(self._topic, partitions=1, replication_factor=1)
        ):
            # a topic left behind by an unknown outcome would contain records of its incarnation
            await self._call("delete_topic", topics.delete(self._topic))
            await asyncio.sleep(1)
            return
        sent = await self._fill(label, 0)
        await admin.alter_configs(self._group, {"share.auto.offset.reset": "earliest"})
        await self._drain(label, f"{self._group}#{self._number}.1", sent)
        if await self._call("add_partitions", topics.grow(self._topic, 2)):
            sent += await self._fill(label, 1)
            await self._drain(label, f"{self._group}#{self._number}.1", _RECORDS)
        plan = await admin.plan_reset(self._group, Target.earliest(), topics=[self._topic])
        if await self._call("reset_offsets", admin.reset(plan)):
            await self._drain(label, f"{self._group}#{self._number}.2", sent)
        await self._call("delete_group", admin.delete_group(self._group))
        await self._call("delete_topic", topics.delete(self._topic))
        await asyncio.sleep(1)

    async def _fill(self, label: str, partition: int) -> int:
        """Send records to a partition; return how many were confirmed."""
        confirmed = 0
        async with Producer(self._settings) as producer:
            for _ in range(_RECORDS):
                ident = self._journal.new_id()
                began = self._journal.now_ms()
                fields = {"client": label, "id": ident, "topic": label, "partition": partition}
                try:
                    value = self._journal.value(ident)
                    sent = await producer.send(self._topic, value, partition=partition)
                except KafkaError as error:
                    self._journal.trouble("lives", error)
                    self._journal.write("send", began, "unknown", **fields)
                else:
                    confirmed += 1
                    self._journal.write("send", began, **fields, offset=sent.offset)
        return confirmed

    async def _drain(self, label: str, group: str, wanted: int) -> None:
        """Accept this many records as the only member of the group, and read its start offsets."""
        settings = self._settings | {"group.id": self._group, "share.acknowledgement.mode": "explicit"}
        member = Member(self._journal, f"{group}-member", group, settings, {self._topic: label})
        try:
            member.subscribe([self._topic])
            tries = 0
            while wanted > 0 and tries < _TRIES and not self._journal.stopped.is_set():
                tries += 1
                try:
                    records = await member.poll(50, timeout=0.5)
                except CorruptRecords as error:
                    self._journal.trouble("lives", error)
                    continue
                member.decide(list(records), AcknowledgeType.ACCEPT)
                await member.commit_sync(5)
                wanted -= len(records)
        finally:
            await member.leave()


async def look(journal: Journal, admin: Admin) -> dict[TopicPartition, tuple[int, int | None]]:
    """Record start offsets and lags of the share group, and return them."""
    began = journal.now_ms()
    found = {}
    for each in await admin.offsets(journal.plan.group):
        if each.error is None and each.start_offset is not None:
            found[each.partition] = (each.start_offset, each.lag)
            fields = {
                "client": "admin",
                "group": journal.plan.group,
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "start_offset": each.start_offset,
            }
            if each.lag is not None:
                fields["lag"] = each.lag
            journal.write("offsets", began, **fields)
    return found
