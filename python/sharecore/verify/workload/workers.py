"""Members of the share group: they accept, release, reject, renew, crash, and let locks expire."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from sharecore._core import Record
from sharecore.client.errors import ConsumerClosed, CorruptRecords
from sharecore.client.fetching.lease import AcknowledgeType
from sharecore.errors import KafkaError
from sharecore.verify.workload.journal import Journal
from sharecore.verify.workload.member import Member

_FATES = ("go on", "crash", "leave", "let locks expire")
_CHANCES = (980, 4, 6, 10)
_KINDS = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW)
_WEIGHTS = (80, 10, 4, 6)


class Worker:
    """A sequence of members, with a part of the work.

    Args:
        number: of the worker.
        lock_s: how long acquisition locks last.
        settings: of the consumers.
    """

    def __init__(self, journal: Journal, number: int, lock_s: float, settings: dict[str, str]) -> None:
        self._journal, self._number, self._lock_s = journal, number, lock_s
        self._settings = settings
        self._random = random.Random(f"{journal.plan.seed}-worker-{number}")
        self._lives = 0

    async def run(self) -> None:
        """Work until the end of the run."""
        while not self._journal.stopped.is_set():
            name = f"worker-{self._number}.{self._lives}"
            self._lives += 1
            member = Member(self._journal, name, self._journal.plan.group, dict(self._settings))
            crashes = False
            try:
                member.subscribe(self._journal.plan.topic_names)
                crashes = await self._live(member)
            except (KafkaError, ConsumerClosed) as error:
                self._journal.trouble(name, error)
                await asyncio.sleep(0.5)
            finally:
                await (member.vanish() if crashes else member.leave())

    async def _live(self, member: Member) -> bool:
        """Work as one member; return whether it should crash."""
        while not self._journal.stopped.is_set():
            try:
                records = await member.poll(50, timeout=0.5)
            except CorruptRecords as error:
                self._journal.trouble(member.name, error)
                continue
            if self._journal.load.is_set():
                fate = self._random.choices(_FATES, _CHANCES)[0]
                if fate in ("crash", "leave"):
                    return fate == "crash"
                if fate == "let locks expire" and records:
                    await asyncio.sleep(self._lock_s * 1.2)
            await self._decide(member, list(records))
        return False

    async def _decide(self, member: Member, records: Sequence[Record]) -> None:
        if not records:
            return
        if not self._journal.load.is_set():
            member.decide(records, AcknowledgeType.ACCEPT)
            await member.commit_sync(5)
            return
        await asyncio.sleep(self._random.random() * 0.05)
        kinds: dict[AcknowledgeType, list[Record]] = {}
        for record in records:
            kinds.setdefault(self._random.choices(_KINDS, _WEIGHTS)[0], []).append(record)
        renewed = kinds.pop(AcknowledgeType.RENEW, [])
        for kind, some in kinds.items():
            member.decide(some, kind)
        if renewed:
            try:
                await member.renew(renewed)
                await asyncio.sleep(self._lock_s * 0.3)
            except KafkaError as error:
                self._journal.trouble(member.name, f"renew: {error}")
            member.decide(renewed, AcknowledgeType.ACCEPT)
        await member.commit_sync(5)
