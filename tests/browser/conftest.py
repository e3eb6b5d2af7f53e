"""A broker with groups in every state that the page draws, and Chromium."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import ACCEPT, REJECT, RELEASE, Member, acquired
from tests.unit.page.conftest import SECURED, start

from sharecore._core import encode_records
from sharecore.broker.broker import Broker
from sharecore.protocol import ApiKey

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
OPEN = {
    "sharecore.page.listener": "127.0.0.1:0",
    "sharecore.page.actions": "everyone",
    "errors.deadletterqueue.auto.create.topics.enable": "true",
    # locks last as long as the tests look at them
    "group.share.record.lock.duration.ms": "600000",
    "group.share.max.record.lock.duration.ms": "600000",
    "group.share.session.timeout.ms": "600000",
    "group.share.max.session.timeout.ms": "600000",
}
VALUE = b'{"image": "photo.jpg", "steps": ["resize", "watermark"]}'
LETTERS = {
    "errors.deadletterqueue.topic.name": "dlq.jobs",
    "errors.deadletterqueue.copy.record.enable": "true",
}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    assert CHROMIUM, "no Chromium: install it, or name it with CHROMIUM="
    with sync_playwright() as playwright:
        # Chromium's sandbox does not work as root, the user in containers
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """`workers` with records in every state; `idle` without members."""
    broker = start(tmp_path_factory.mktemp("open"), OPEN)
    for group, settings in (("workers", LETTERS), ("idle", {"share.auto.offset.reset": "earliest"})):
        configs = [{"name": name, "config_operation": 0, "value": value} for name, value in settings.items()]
        resources = [{"resource_type": 32, "resource_name": group, "configs": configs}]
        broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    fill(broker, 40)
    idle = Member(broker, "idle", "jobs", "gone")
    take(idle, 40)
    idle.acknowledge({0: [(0, 39, ACCEPT)]})
    leave(idle)
    first = Member(broker, "workers", "jobs", "first")
    take(first, 40)
    first.acknowledge({0: [(0, 1, ACCEPT), (4, 9, RELEASE), (12, 15, ACCEPT), (18, 19, REJECT)]})
    # three releases are near the limit of five
    for _ in range(2):
        got = take(first, 6)
        first.acknowledge({0: [(got[0][0], got[-1][1], RELEASE)]})
    first.fetch(0, max_records=2, share_acquire_mode=1)
    fill(broker, 25)
    broker.until(has_letters)
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    broker = start(tmp_path_factory.mktemp("secured"), SECURED)
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def shots() -> Path:
    """Where pictures of the page are left, to be looked at."""
    directory = Path(os.environ.get("SHOTS", "build/page/shots"))
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def has_letters(broker: Broker) -> bool:
    topic = broker.topics.get("dlq.jobs")
    return topic is not None and topic.partitions[0].high_watermark > 0


def fill(broker: RunningBroker, count: int) -> None:
    records = [(f"photo-{number}".encode(), VALUE, [("kind", b"urgent")]) for number in range(count)]
    data = [{"index": 0, "records": encode_records(records, round(time.time() * 1000))}]
    broker.ask(
        ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5000, topic_data=[{"name": "jobs", "partition_data": data}]
    )


def take(member: Member, least: int) -> list[tuple[int, int, int]]:
    got: list[tuple[int, int, int]] = []
    deadline = time.monotonic() + 20
    while sum(last - first + 1 for first, last, _ in got) < least:
        assert time.monotonic() < deadline, got
        got += acquired(member.fetch(0)).get(0, [])
    return got


def leave(member: Member) -> None:
    names = {"group_id": member.group, "member_id": member.name}
    member.client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **names, member_epoch=-1)
    member.client.close()
