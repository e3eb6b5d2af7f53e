"""What job frameworks hold: decided in any order, kept as long as needed, lost by nobody."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.harness.broker import QUICK_GROUPS, Broker
from tests.harness.clients import configure_group, create_topic, produce

from sharecore.adapters.inbox import Held, Inbox, ThreadedInbox, open_inbox, pause_seconds
from sharecore.client.workers.preparation import Needs

LOCK_MS = 3_000


async def take(inbox: Inbox, count: int) -> list[Held]:
    found: list[Held] = []
    while len(found) < count:
        found += await inbox.take(count - len(found), 30)
    return found


def values(several: list[Held]) -> list[tuple[bytes, int]]:
    return sorted((each.record.value, each.record.delivery_count) for each in several)


def test_jobs_are_decided_in_any_order_and_locked_until_then(tmp_path: Path) -> None:
    broker = Broker(tmp_path, settings=QUICK_GROUPS)
    broker.start()
    try:
        create_topic(broker.bootstrap, "jobs")
        configure_group(broker.bootstrap, "workers", share_record_lock_duration_ms=LOCK_MS)
        produce(broker.bootstrap, "jobs", [b"a", b"b", b"c", b"d"])
        config = {"bootstrap.servers": broker.bootstrap, "group.id": "workers"}

        async def work() -> None:
            inbox = await open_inbox(config, ["jobs"], Needs())
            assert inbox.delivery_limit == 5
            a, b, c, d = sorted(await take(inbox, 4), key=lambda each: each.record.offset)
            # longer than a lock: no one else may get them
            assert await inbox.take(1, LOCK_MS / 1000 * 1.5) == []
            c.accept()
            began = time.monotonic()
            b.release(after=0.5)
            a.release()
            assert values(await take(inbox, 2)) == [(b"a", 2), (b"b", 2)]
            assert time.monotonic() - began >= 0.5
            d.reject()
            d.release()
            a.accept()
            await inbox.close()

        asyncio.run(work())
        # records held when the first one closed are redelivered, with a higher count; the others are done
        threaded = ThreadedInbox(config, ["jobs"], Needs())
        held: list[Held] = []
        while len(held) < 2:
            held += threaded.take(2, 30)
        assert values(held) == [(b"a", 3), (b"b", 3)]
        for each in held:
            threaded.run(each.accept)
        threaded.close()
        threaded.close()
        last = ThreadedInbox(config, ["jobs"], Needs())
        assert last.take(1, 1) == []
        last.close()
    finally:
        broker.kill()


def test_a_job_that_fails_waits_twice_as_long_each_time() -> None:
    assert [pause_seconds(count, 0.5, 3) for count in (1, 2, 3, 4, 1_000)] == [0.5, 1, 2, 3, 3]
