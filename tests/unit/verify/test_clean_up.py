"""What a run leaves in the cluster: nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.harness.running import RunningBroker

from sharecore.admin.topics import TopicAdmin
from sharecore.verify.workload.run import _delete_again


@pytest.mark.heavy
def test_topics_that_come_back_are_deleted_again(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path / "data").start()

    async def act() -> list[str]:
        async with TopicAdmin({"bootstrap.servers": f"127.0.0.1:{broker.port}"}) as topics:
            await topics.create("mine")
            await topics.create("verify-1")
            deleting = asyncio.ensure_future(_delete_again(topics, {"verify-1"}))
            while any(each.name == "verify-1" for each in await topics.list_topics()):  # noqa: ASYNC110
                await asyncio.sleep(0)
            # as a producer does that asks for metadata
            await topics.create("verify-1")
            await deleting
            return [each.name for each in await topics.list_topics() if not each.name.startswith("__")]

    try:
        assert asyncio.run(act()) == ["mine"]
    finally:
        broker.stop()
