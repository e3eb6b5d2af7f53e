"""Topics created by a node, with settings unknown to the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Configs
from sharecore.tier.upstream.topics import UpstreamTopics
from sharecore.upstream import Metadata

LETTERS = {"errors.deadletterqueue.group.enable": "true"}


class Cluster:
    """A cluster and the tier's stored settings, which fail at a step chosen by a test."""

    def __init__(self, ends_at: str = "", there: bool = False) -> None:
        self.ends_at, self.there = ends_at, there
        self.kept: dict[str, Mapping[str, str]] = {}
        self.metadata = Metadata()
        configs = cast(Configs, SimpleNamespace(replace=self.replace))
        self.topics = UpstreamTopics(self.metadata, cast(Any, SimpleNamespace(budget=None)), self, configs)

    def _step(self, name: str) -> None:
        if name == self.ends_at:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)

    async def has_topic(self, name: str) -> bool:
        return self.there

    async def replace(self, resource_type: int, name: str, settings: Mapping[str, str]) -> None:
        self._step("settings")
        self.kept[name] = settings

    async def create_topic(
        self, name: str, partitions: int, replication: int, settings: Mapping[str, str]
    ) -> bool:
        self._step("topic")
        assert not LETTERS.keys() & settings.keys()
        made, self.there = not self.there, True
        topic = {"name": name, "error_code": 0, "topic_id": None, "is_internal": False, "partitions": []}
        told: Any = SimpleNamespace(
            cluster_id="c", controller_id=0, brokers=[], topics=[SimpleNamespace(**topic)]
        )
        self.metadata.take(told, 0)
        return made

    def create(self) -> ErrorCode | None:
        try:
            asyncio.run(self.topics.create("dlq.a", 1, {**LETTERS, "retention.ms": "1"}))
        except KafkaError as error:
            return error.code
        return None


@pytest.mark.parametrize("ends_at", ["settings", "topic"])
def test_no_topic_is_left_without_its_settings_wherever_a_node_ends(ends_at: str) -> None:
    cluster = Cluster(ends_at)
    assert cluster.create() is ErrorCode.NETWORK_EXCEPTION
    assert not cluster.there
    cluster.ends_at = ""
    assert cluster.create() is None
    assert (cluster.there, cluster.kept) == (True, {"dlq.a": LETTERS})
    assert cluster.topics.get("dlq.a") is not None


def test_a_topic_that_is_there_keeps_its_settings() -> None:
    cluster = Cluster(there=True)
    assert cluster.create() is ErrorCode.TOPIC_ALREADY_EXISTS
    assert cluster.kept == {}
