"""Run a workload from creating the topics to the last read."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from sharecore.admin import Admin
from sharecore.admin.topics import TopicAdmin
from sharecore.client.wire.cluster import TopicPartition
from sharecore.clock import SystemClock
from sharecore.errors import ErrorCode, KafkaError
from sharecore.verify.history import Writer
from sharecore.verify.workload.journal import Journal
from sharecore.verify.workload.lives import Lives, look
from sharecore.verify.workload.plan import DELIVERY_LIMIT, ISOLATIONS, LOCKS_MS, Plan
from sharecore.verify.workload.producers import Sender, TransactionalSender
from sharecore.verify.workload.readers import Reader
from sharecore.verify.workload.workers import Worker

_LOOK_SECONDS = 2.0
_DRAIN_SECONDS_MAX = 300.0
_LOOKS, _AGAIN_SECONDS = 2, 0.25
"""Topics of a run that was interrupted are looked for so often, with this pause."""
_CLEAN_UP_SECONDS_MAX = 10.0


class Workload:
    """Load, then process all remaining records, then read everything again.

    Args:
        path: of the history.
        header: additions to its first line.
        report: called about once a second with a progress line.
    """

    def __init__(
        self,
        plan: Plan,
        path: Path,
        header: Mapping[str, object],
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._plan, self._path, self._header, self._report = plan, path, header, report
        self._ours = {**plan.settings, "bootstrap.servers": plan.bootstrap}
        self._lock_ms = 0
        self._limit = 0
        self._interrupted = threading.Event()
        self._left_behind: list[str] = []

    def interrupt(self) -> None:
        """End the load early; remaining records are still processed and checked."""
        self._interrupted.set()

    async def run(self, nemesis: Callable[[Writer], Awaitable[None]] | None = None) -> list[str]:
        """Run; return the first problems that parts of the workload had.

        Args:
            nemesis: injects faults during the load, and repairs everything when it ends.

        Raises:
            KafkaError: the cluster cannot be set up.
            OSError: the history cannot be written.
        """
        plan = self._plan
        async with AsyncExitStack() as stack:
            topics = await stack.enter_async_context(TopicAdmin(self._ours))
            admin = await stack.enter_async_context(Admin(self._ours))
            if (kind := await admin.group_type(plan.group)) is not None:
                raise KafkaError(
                    ErrorCode.NON_EMPTY_GROUP,
                    f"there is a {kind} group {plan.group} already; use another name: it is deleted at the "
                    "end",
                )
            names = {*plan.topic_names, plan.life}
            stack.push_async_callback(self._clean_up, partial(_delete_again, topics, names))
            for name in plan.topic_names:
                await topics.create(name, partitions=plan.partitions, configs={"retention.ms": "-1"})
                stack.push_async_callback(self._clean_up, partial(topics.delete, name))
            await self._set_up_group(admin)
            for name in plan.group_names:
                stack.push_async_callback(self._clean_up, partial(_delete_group, admin, name))
            stack.push_async_callback(self._clean_up, partial(topics.delete, plan.life))
            group = {"delivery_limit": self._limit, "isolation": "read_uncommitted", "from": "earliest"}
            header = {
                **self._header,
                "seed": plan.seed,
                "bound_ms": plan.bound_ms,
                "groups": {plan.group: group, plan.life: {"from": "earliest"}},
            }
            with Writer(self._path, header, SystemClock.monotonic_ms) as writer:
                journal = Journal(plan, writer)
                await self._run(journal, admin, writer, nemesis)
        return [*journal.troubles, *self._left_behind]

    async def _clean_up(self, delete: Callable[[], Awaitable[None]]) -> None:
        """Delete everything that the run created, even after a failure, which takes precedence over cleanup
        errors.
        """
        try:
            await asyncio.wait_for(delete(), _CLEAN_UP_SECONDS_MAX)
        except (KafkaError, OSError, asyncio.TimeoutError) as error:
            if getattr(error, "code", None) is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._left_behind.append(f"cleaning up: {error or 'no answer'}")

    async def _set_up_group(self, admin: Admin) -> None:
        """Start the group at the oldest record; use the shortest lock that the cluster allows."""
        await admin.alter_configs(self._plan.group, {"share.auto.offset.reset": "earliest"})
        for lock_ms in LOCKS_MS:
            if await self._is_allowed(admin, "share.record.lock.duration.ms", lock_ms):
                self._lock_ms = lock_ms
                break
        # before Kafka 4.3 groups lack the setting: counts are not checked against a limit
        if await self._is_allowed(admin, "share.delivery.count.limit", DELIVERY_LIMIT):
            self._limit = DELIVERY_LIMIT

    async def _is_allowed(self, admin: Admin, name: str, value: int) -> bool:
        """Set a setting of the group; return whether the cluster allows it."""
        try:
            await admin.alter_configs(self._plan.group, {name: str(value)})
        except KafkaError as error:
            if error.code is not ErrorCode.INVALID_CONFIG:
                raise
            return False
        return True

    async def _run(
        self,
        journal: Journal,
        admin: Admin,
        writer: Writer,
        nemesis: Callable[[Writer], Awaitable[None]] | None,
    ) -> None:
        plan = self._plan
        confluent = {**plan.confluent, "bootstrap.servers": plan.bootstrap}
        pause_s = 10 * max(1, plan.producers) / plan.rate
        senders: list[Sender] = []
        for number in range(plan.producers):
            kind = TransactionalSender if number < plan.transactions else Sender
            senders.append(kind(journal, f"producer-{number}", confluent, pause_s))
        readers = [Reader(journal, each, confluent) for each in ISOLATIONS]
        producing = [threading.Thread(target=each.run, daemon=True) for each in senders]
        reading = [threading.Thread(target=each.run, daemon=True) for each in readers]
        member = self._ours | {"group.id": plan.group, "share.acknowledgement.mode": "explicit"}
        lock_s = (self._lock_ms or LOCKS_MS[-1]) / 1000
        for thread in (*producing, *reading):
            thread.start()
        working = [
            asyncio.ensure_future(Worker(journal, number, lock_s, member).run())
            for number in range(plan.workers)
        ]
        living = asyncio.ensure_future(Lives(journal, self._ours).run())
        breaking = asyncio.ensure_future(nemesis(writer)) if nemesis is not None else None
        try:
            await self._load(journal, admin, breaking)
            if breaking is not None:
                breaking.cancel()
                await asyncio.wait([breaking])
                if not breaking.cancelled():
                    breaking.result()
            journal.load.clear()
            await self._join(producing, journal, "producers send the rest")
            await living
            await self._drain(journal, admin, lock_s)
        except BaseException:
            # without a broker their calls take minutes
            for each in (*working, living):
                each.cancel()
            raise
        finally:
            if breaking is not None:  # it must not restart a broker that is being stopped
                breaking.cancel()
                await asyncio.wait([breaking])
            journal.load.clear()
            journal.stopped.set()
            await asyncio.wait([*working, living])
        await asyncio.gather(*working)
        await self._join(reading, journal, "readers read to the end")
        await self._look(journal, admin)

    async def _join(self, threads: list[threading.Thread], journal: Journal, what: str) -> None:
        while any(thread.is_alive() for thread in threads):
            self._report(f"{what}: {_so_far(journal)}")
            await asyncio.sleep(0.2)

    async def _load(self, journal: Journal, admin: Admin, breaking: asyncio.Future[None] | None) -> None:
        """Wait while the load lasts: for its time, until Ctrl-C, or until the nemesis fails."""
        began = time.monotonic()
        looked = 0.0
        while (past := time.monotonic() - began) < self._plan.seconds and not self._interrupted.is_set():
            if breaking is not None and breaking.done():
                return
            self._report(f"{past:.0f} of {self._plan.seconds:.0f} s: {_so_far(journal)}")
            if past - looked >= _LOOK_SECONDS:
                looked = past
                await self._look(journal, admin)
            await asyncio.sleep(0.2)

    async def _look(self, journal: Journal, admin: Admin) -> Mapping[TopicPartition, tuple[int, int | None]]:
        try:
            return await look(journal, admin)
        except KafkaError as error:
            journal.trouble("admin", error)
            return {}

    async def _drain(self, journal: Journal, admin: Admin, lock_s: float) -> None:
        """Wait until all records are acknowledged, or long enough to consider the rest stuck."""
        plan = self._plan
        began = time.monotonic()
        enough = lock_s + plan.bound_ms / 1000 + 5
        known, since, since_ms = -1, time.monotonic(), journal.now_ms()
        while time.monotonic() - began < _DRAIN_SECONDS_MAX:
            self._report(f"settling what is left: {_so_far(journal)}")
            if journal.taken + journal.settled != known:
                known, since, since_ms = journal.taken + journal.settled, time.monotonic(), journal.now_ms()
            found = await self._look(journal, admin)
            done = len(found) == len(plan.places) and all(lag == 0 for _, lag in found.values())
            if time.monotonic() - since > (2 if done else enough):
                break
            await asyncio.sleep(0.5)
        for topic, partition in plan.places:
            journal.write("quiet", since_ms, group=plan.group, topic=topic, partition=partition)
        await self._look(journal, admin)


async def _delete_group(admin: Admin, name: str) -> None:
    """Delete a group, including members that vanished."""
    kind = await admin.group_type(name)
    if kind is not None:
        await admin.remove_members(name, kind, await admin.group_members(name, kind))
        await admin.delete_group(name)


async def _delete_again(topics: TopicAdmin, names: set[str]) -> None:
    """Delete topics that a producer of an interrupted run, which was still ending, has created again."""
    looks = 0
    while looks < _LOOKS:
        found = names & {each.name for each in await topics.list_topics()}
        for name in found:
            await topics.delete(name)
        looks = 0 if found else looks + 1
        await asyncio.sleep(_AGAIN_SECONDS)


def _so_far(journal: Journal) -> str:
    return f"{journal.sent:,} sent, {journal.taken:,} delivered, {journal.settled:,} settled"
