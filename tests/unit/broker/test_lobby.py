"""What a standby answers while another broker leads the home in the bucket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.harness.batches import batch
from tests.harness.running import Client, RunningBroker
from tests.harness.until import until
from tests.unit.broker.test_bucket import TIMEOUT_S, create, settings
from tests.unit.broker.test_features import SAFE, levels, update
from tests.unit.broker.test_home import bucket, home, produce
from typer.testing import CliRunner

from sharecore.broker.broker import Broker
from sharecore.broker.lobby.standby import Lobby
from sharecore.cli.app import app
from sharecore.config import BrokerConfig
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

if TYPE_CHECKING:
    from sharecore.broker.backend import Backend

__all__ = ["bucket"]

HOME = {"sharecore.durability": "bucket", "listeners": "PLAINTEXT://127.0.0.1:0"}


class RunningLobby:
    """Node 2, which waits in a thread of this process."""

    def __init__(
        self,
        directory: Path,
        bucket: Path,
        *,
        leads: Callable[[RunningLobby], Backend] | None = None,
        **more: str,
    ) -> None:
        config = settings(bucket) | HOME | {"node.id": "2", "log.dirs": str(directory)} | more
        self._leads = leads
        self._leading = threading.Event()
        self._config = BrokerConfig.from_properties(config)
        self._announced = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._announced.wait(TIMEOUT_S)
        if self._failure is not None:
            raise self._failure
        self.port = self.lobby.port

    async def _run(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.lobby = Lobby(self._config)
        self._task = asyncio.ensure_future(self.lobby.wait(lambda _: self._announced.set()))
        try:
            await self._task
        except BaseException as failure:
            self._failure = failure
        waited = self.lobby.broker
        if waited is not None and self._leads:
            self.broker = Broker(self._config, backend=self._leads(self), lobby=waited)
            await self.broker.start()
            self._stopping = asyncio.Event()
            self._leading.set()
            await self._stopping.wait()
            await self.broker.stop()
        elif waited is not None:
            await waited.stop()
        self._announced.set()

    def until_leading(self) -> Broker:
        assert self._leading.wait(TIMEOUT_S)
        return self.broker

    def is_waiting(self) -> bool:
        return self._thread.is_alive()

    def until_free(self) -> None:
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()
        assert self._failure is None

    def stop(self) -> None:
        if self._leading.is_set():
            self.loop.call_soon_threadsafe(self._stopping.set)
        elif self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()

    def ask(self, api_key: ApiKey, version: int, **fields: Any) -> Any:
        client = Client(self.port)
        try:
            return client.ask(api_key, version, **fields)
        finally:
            client.close()

    def readiness(self) -> dict[str, Any]:
        port = self.lobby.metrics_port
        try:
            answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10)
        except urllib.error.HTTPError as refused:
            answer = refused
        with answer:
            found: dict[str, Any] = json.load(answer)
        return found


@pytest.fixture
def leader(tmp_path: Path, bucket: Path) -> Iterator[RunningBroker]:
    running = home(tmp_path / "one", bucket)
    create(running, "jobs")
    # it is described after its start
    until((bucket / "nodes/1").exists)
    yield running
    with contextlib.suppress(RuntimeError):
        running.stop()


@pytest.fixture
def lobby(tmp_path: Path, bucket: Path, leader: RunningBroker) -> Iterator[RunningLobby]:
    waiting = RunningLobby(tmp_path / "two", bucket)
    yield waiting
    waiting.stop()


def metadata(asked: RunningBroker | RunningLobby, topic: str, **more: Any) -> Any:
    return asked.ask(ApiKey.METADATA, 13, topics=[{"name": topic, "topic_id": None}], **more)


def test_clients_learn_of_both_brokers_and_who_leads(leader: RunningBroker, lobby: RunningLobby) -> None:
    ports = {1: leader.port, 2: lobby.port}
    found = metadata(lobby, "jobs")
    assert {node.node_id: node.port for node in found.brokers} == ports
    assert found.controller_id == 1
    [topic] = found.topics
    assert (topic.error_code, topic.name) == (0, "jobs")
    of_leader = metadata(leader, "jobs").topics[0]
    assert topic.topic_id == of_leader.topic_id
    assert [(each.leader_id, each.leader_epoch) for each in topic.partitions] == [(1, 1)]
    assert topic.partitions == of_leader.partitions
    cluster = lobby.ask(ApiKey.DESCRIBE_CLUSTER, 2, endpoint_type=1)
    assert (cluster.controller_id, len(cluster.brokers)) == (1, 2)
    coordinator = lobby.ask(ApiKey.FIND_COORDINATOR, 6, key_type=0, coordinator_keys=["workers"])
    assert [(each.node_id, each.port) for each in coordinator.coordinators] == [(1, leader.port)]
    assert lobby.ask(ApiKey.API_VERSIONS, 3, **SOFTWARE) == leader.ask(ApiKey.API_VERSIONS, 3, **SOFTWARE)


SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}


def test_the_leader_names_a_standby_that_has_come_later(leader: RunningBroker, lobby: RunningLobby) -> None:
    asyncio.run_coroutine_threadsafe(_look(leader), leader.loop).result(TIMEOUT_S)
    assert {node.node_id: node.port for node in metadata(leader, "jobs").brokers} == {
        1: leader.port,
        2: lobby.port,
    }
    lobby.stop()
    asyncio.run_coroutine_threadsafe(_look(leader), leader.loop).result(TIMEOUT_S)
    assert [node.node_id for node in metadata(leader, "jobs").brokers] == [1], "it has withdrawn itself"


async def _look(leader: RunningBroker) -> None:
    nodes = leader.broker.backend._nodes  # type: ignore[attr-defined]
    await nodes.look()


def test_a_partition_is_refused_with_the_leader_where_the_api_has_a_field(
    leader: RunningBroker, lobby: RunningLobby
) -> None:
    topic_id = metadata(leader, "jobs").topics[0].topic_id
    data = [{"topic_id": topic_id, "partition_data": [{"index": 0, "records": batch([b"1"])}]}]
    produced = lobby.ask(ApiKey.PRODUCE, 13, acks=-1, timeout_ms=1000, topic_data=data)
    fetched = lobby.ask(
        ApiKey.FETCH,
        17,
        max_wait_ms=0,
        min_bytes=0,
        session_epoch=-1,
        topics=[
            {
                "topic_id": topic_id,
                "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}],
            }
        ],
        forgotten_topics_data=[],
    )
    share = {"group_id": "workers", "member_id": "AAAAAAAAAAAAAAAAAAAAAA"}
    asked = [{"topic_id": topic_id, "partitions": [{"partition_index": 0}]}]
    share_fetched = lobby.ask(
        ApiKey.SHARE_FETCH, 2, **share, share_session_epoch=0, topics=asked, forgotten_topics_data=[]
    )
    for answer, partitions in (
        (produced, "partition_responses"),
        (fetched, "partitions"),
        (share_fetched, "partitions"),
    ):
        [part] = getattr(answer.responses[0], partitions)
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (1, 1)
        assert [(node.node_id, node.port) for node in answer.node_endpoints] == [(1, leader.port)]
    for epoch in (4, -1):
        again = lobby.ask(
            ApiKey.SHARE_FETCH, 2, **share, share_session_epoch=epoch, topics=[], forgotten_topics_data=[]
        )
        assert again.error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_group_is_refused_and_nothing_is_here_to_list(lobby: RunningLobby) -> None:
    member = {"group_id": "workers", "member_id": "AAAAAAAAAAAAAAAAAAAAAA", "member_epoch": 0}
    answer = lobby.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **member, subscribed_topic_names=["jobs"])
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    listed = lobby.ask(ApiKey.LIST_GROUPS, 5, states_filter=[], types_filter=[])
    assert (listed.error_code, listed.groups) == (0, [])


def test_a_connection_is_closed_where_a_client_would_ask_this_broker_again(lobby: RunningLobby) -> None:
    new = {"transactional_id": None, "transaction_timeout_ms": 1000}
    with pytest.raises(EOFError):
        lobby.ask(ApiKey.INIT_PRODUCER_ID, 4, **new)
    with pytest.raises(EOFError):
        lobby.ask(ApiKey.CREATE_TOPICS, 7, topics=[], timeout_ms=1000)
    client = Client(lobby.port)
    asked = {"topics": [{"name": "new", "topic_id": None}], "allow_auto_topic_creation": True}
    first = client.ask(ApiKey.METADATA, 13, **asked)
    assert first.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(first.brokers) == 2
    with pytest.raises(EOFError):
        client.ask(ApiKey.METADATA, 13, **asked)
    client.close()


@pytest.mark.heavy
def test_topics_are_followed(leader: RunningBroker, lobby: RunningLobby) -> None:
    create(leader, "later")
    until(lambda: metadata(lobby, "later").topics[0].error_code == 0)
    leader.ask(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "later", "topic_id": None}], timeout_ms=5000)
    until(lambda: metadata(lobby, "later").topics[0].error_code != 0)


@pytest.mark.heavy
def test_feature_levels_are_followed(leader: RunningBroker, lobby: RunningLobby) -> None:
    assert levels(lobby) == levels(leader)
    assert update(leader, ("share.version", 1, SAFE), ("group.version", 0, SAFE)).error_code == 0
    assert levels(leader) == (2, {"share.version": 1, "transaction.version": 2})
    until(lambda: levels(lobby) == levels(leader))


def test_a_standby_is_ready_and_says_who_leads(bucket: Path, lobby: RunningLobby) -> None:
    found = lobby.readiness()
    assert found["ready"]
    assert found["standby"] == f"node 1 leads file://{bucket} (epoch 1)"


@pytest.mark.heavy
def test_the_next_leader_has_a_later_epoch_and_truncates_nothing(
    tmp_path: Path, bucket: Path, leader: RunningBroker, lobby: RunningLobby
) -> None:
    produce(leader, "jobs", [b"1", b"2"])
    assert lobby.is_waiting()
    leader.stop()
    lobby.until_free()
    second = home(tmp_path / "two", bucket, **{"node.id": "2"})
    try:
        [part] = metadata(second, "jobs").topics[0].partitions
        assert (part.leader_id, part.leader_epoch) == (2, 2)
        ends = [_end_of(second, current, 0) for current in (-1, 2)]
        assert [(each.error_code, each.leader_epoch, each.end_offset) for each in ends] == [(0, 0, 2)] * 2
        assert _end_of(second, 1, 0).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert _end_of(second, 3, 0).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert _end_of(second, 2, 3).end_offset == -1, "an epoch that has not begun"
    finally:
        second.stop()


def _end_of(broker: RunningBroker, current: int, epoch: int) -> Any:
    part = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
    answer = broker.ask(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, replica_id=-1, topics=[{"topic": "jobs", "partitions": [part]}]
    )
    return answer.topics[0].partitions[0]


def status_of(bucket: Path) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["bucket", "status", f"file://{bucket}", "--output", "json"])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def until_claimed(bucket: Path) -> None:
    """Wait until node 1 writes to a bucket; the first files in it say so only later."""
    until((bucket / "format").exists)
    until(lambda: status_of(bucket)["leader"] == 1)


def test_the_status_says_who_leads_who_stands_by_and_what_it_costs(
    tmp_path: Path, bucket: Path, leader: RunningBroker
) -> None:
    found = status_of(bucket)
    assert (found["mode"], found["leader"], found["standbys"]) == ("home", 1, [])
    alone = found["dollars_an_hour"]
    assert alone > 0
    waiting = RunningLobby(tmp_path / "two", bucket)
    found = status_of(bucket)
    assert (found["mode"], found["leader"], found["standbys"]) == ("home with standby", 1, [2])
    # a look a second and a list every two minutes
    assert found["dollars_an_hour"] - alone >= 0.99 * (3600 * 0.4e-6 + 30 * 5e-6)
    shown = CliRunner().invoke(app, ["bucket", "status", f"file://{bucket}"]).stdout
    assert "node 1, silent for " in shown
    waiting.stop()
    leader.stop()
    assert status_of(bucket)["has_ended"]
    shown = CliRunner().invoke(app, ["bucket", "status", f"file://{bucket}"]).stdout
    assert "none: node 1 has ended" in shown


def test_the_status_of_a_copy(tmp_path: Path, bucket: Path) -> None:
    copied = RunningBroker(tmp_path / "data", settings(bucket)).start()
    create(copied, "jobs")
    until_claimed(bucket)
    found = status_of(bucket)
    copied.stop()
    assert (found["mode"], found["leader"], found["standbys"]) == ("backup", 1, [])


def _described(node_id: object, **more: object) -> str:
    listeners = {"PLAINTEXT": ("elsewhere", 9092)}
    return json.dumps(
        {"node_id": node_id, "listeners": listeners, "rack": None, "at_ms": time.time() * 1000} | more
    )


@pytest.mark.heavy
@pytest.mark.parametrize(
    "damaged",
    [
        _described(7).replace('"at_ms": ', '"at_ms": 1e999, "at": '),
        "[" * 60_000,
        _described(3),
        _described(7, listeners={"PLAINTEXT": ("elsewhere", 1 << 40)}),
        _described(7, listeners={"PLAINTEXT": ("\ud800", 9092)}),
        _described(7, rack="r" * 70_000),
        _described(7, at_ms=(time.time() + 86400) * 1000),
    ],
    ids=["infinite", "nested", "another node", "port", "host", "long", "future"],
)
def test_a_damaged_description_is_ignored(
    tmp_path: Path, bucket: Path, leader: RunningBroker, damaged: str
) -> None:
    (bucket / "nodes/7").write_text(damaged)
    (bucket / "nodes/08").write_text(_described(8))
    (bucket / "nodes/9").write_text(_described(9))
    waiting = RunningLobby(tmp_path / "two", bucket)
    try:
        assert {node.node_id for node in metadata(waiting, "jobs").brokers} == {1, 2, 9}
    finally:
        waiting.stop()


def test_the_leader_is_known_however_old_its_description_is(
    bucket: Path, leader: RunningBroker, lobby: RunningLobby
) -> None:
    path = bucket / "nodes/1"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"at_ms": 0}))
    asyncio.run_coroutine_threadsafe(lobby.lobby.nodes.look(), lobby.loop).result(TIMEOUT_S)
    assert metadata(lobby, "jobs").controller_id == 1


def test_a_standby_describes_itself_again_if_its_description_is_gone(
    bucket: Path, leader: RunningBroker, lobby: RunningLobby
) -> None:
    assert (bucket / "nodes/2").exists()
    (bucket / "nodes/2").unlink()
    nodes = lobby.lobby.nodes
    for _ in range(2):
        asyncio.run_coroutine_threadsafe(nodes.look(), lobby.loop).result(TIMEOUT_S)
    assert (bucket / "nodes/2").exists()
