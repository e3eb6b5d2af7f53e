"""Requests with many entries: read and answered in threads and in turns, as many at a time as there is
room for.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from tests.harness.batches import batch
from tests.harness.running import TIMEOUT_SECONDS, Client, RunningBroker

from sharecore.broker.broker import Broker
from sharecore.broker.handlers.configs import change as config_change
from sharecore.broker.requests.large import Lane
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey, codec
from sharecore.waiting.turns import _STEPS_A_TURN, Turns

MANY = 6_000
"""More than are read on the event loop."""


def ask_offsets(client: Client, topic: str, count: int) -> list[int]:
    """Error codes of ListOffsets for this many partitions, two of which exist."""
    partitions = [{"partition_index": index, "timestamp": -1} for index in range(count)]
    answer = client.ask(ApiKey.LIST_OFFSETS, 7, topics=[{"name": topic, "partitions": partitions}])
    return [each.error_code for each in answer.topics[0].partitions]


def test_a_request_with_many_entries_is_answered_as_a_small_one(broker: RunningBroker, topic: str) -> None:
    client = Client(broker.port)
    small = ask_offsets(client, topic, 10)
    assert ask_offsets(client, topic, MANY) == small + [small[-1]] * (MANY - 10)


def test_a_request_with_more_entries_than_allowed_ends_its_connection(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """sharecore.request.entries.max"""
    directory = tmp_path_factory.mktemp("entries")
    running = RunningBroker(directory, {"sharecore.request.entries.max": "10000"}).start()
    try:
        fits, exceeds = Client(running.port), Client(running.port)
        assert len(ask_offsets(fits, "nowhere", 9_999)) == 9_999  # with the topic
        with pytest.raises(EOFError):
            ask_offsets(exceeds, "nowhere", 10_000)
    finally:
        running.stop()


def test_no_request_overtakes_one_with_many_entries(broker: RunningBroker, topic: str) -> None:
    client = Client(broker.port)
    partitions = [{"partition_index": 0, "committed_offset": number} for number in range(MANY)]
    group = f"group-of-{topic}"
    topics = [{"name": topic, "partitions": partitions}]
    client.send(ApiKey.OFFSET_COMMIT, 8, group_id=group, generation_id_or_member_epoch=-1, topics=topics)
    wanted = [{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}]
    client.send(ApiKey.OFFSET_FETCH, 8, groups=wanted)
    client.receive(ApiKey.OFFSET_COMMIT, 8)
    answer = client.receive(ApiKey.OFFSET_FETCH, 8)
    assert answer.groups[0].topics[0].partitions[0].committed_offset == MANY - 1


def test_what_a_member_of_a_share_group_asks_with_many_entries_is_answered(
    broker: RunningBroker, topic: str
) -> None:
    """The engine's results arrive later, through a callback."""
    client = Client(broker.port)
    forgotten = [{"topic_id": None, "partitions": list(range(MANY))}]
    asked = {"group_id": f"share-of-{topic}", "member_id": "one", "max_wait_ms": 1, "max_bytes": 1}
    answer = client.ask(
        ApiKey.SHARE_FETCH, 1, **asked, share_session_epoch=0, forgotten_topics_data=forgotten
    )
    assert answer.error_code == 0


@pytest.mark.parametrize("acks", [1, 0])
def test_produce_to_many_partitions_appends_each_batch(broker: RunningBroker, acks: int) -> None:
    client, name = Client(broker.port), f"many-{acks}"
    asked = {"name": name, "num_partitions": 1200, "replication_factor": 1}
    client.ask(ApiKey.CREATE_TOPICS, 5, topics=[asked], timeout_ms=5000)
    data = [{"index": index, "records": batch([b"x"])} for index in range(1200)]
    topic_data = [{"name": name, "partition_data": data}]
    if acks:
        answer = client.ask(ApiKey.PRODUCE, 9, acks=acks, timeout_ms=5000, topic_data=topic_data)
        appended = answer.responses[0].partition_responses
        assert [(each.index, each.error_code) for each in appended] == [(index, 0) for index in range(1200)]
    else:
        client.send(ApiKey.PRODUCE, 9, acks=acks, timeout_ms=5000, topic_data=topic_data)
    partitions = [{"partition_index": index, "timestamp": -1} for index in range(1200)]

    def offsets() -> set[int]:
        found = client.ask(ApiKey.LIST_OFFSETS, 7, topics=[{"name": name, "partitions": partitions}])
        return {each.offset for each in found.topics[0].partitions}

    end = time.monotonic() + TIMEOUT_SECONDS
    while offsets() != {1}:
        assert time.monotonic() < end


def test_produce_refuses_each_of_many_partitions_that_are_not_there(
    broker: RunningBroker, topic: str
) -> None:
    data = [{"index": number, "records": batch([b"x"])} for number in range(2 * 1000)]
    topic_data = [{"name": topic, "partition_data": data}, {"name": "nowhere", "partition_data": data}]
    answer = Client(broker.port).ask(ApiKey.PRODUCE, 9, acks=1, timeout_ms=5000, topic_data=topic_data)
    codes = [[each.error_code for each in one.partition_responses] for one in answer.responses]
    assert codes == [[0, 0] + [3] * 1998, [3] * 2000]


def test_produce_to_many_topics_of_which_one_is_there(broker: RunningBroker, topic: str) -> None:
    client = Client(broker.port)
    described = client.ask(ApiKey.METADATA, 12, topics=[{"name": topic, "topic_id": None}])
    ids = [described.topics[0].topic_id, *(UUID(int=1000 + number) for number in range(MANY))]
    data = [{"index": 0, "records": batch([b"x"])}]
    topic_data = [{"topic_id": each, "partition_data": data} for each in ids]
    answer = client.ask(ApiKey.PRODUCE, 13, acks=1, timeout_ms=5000, topic_data=topic_data)
    codes = [(each.topic_id, each.partition_responses[0].error_code) for each in answer.responses]
    assert codes == [(ids[0], 0), *((each, ErrorCode.UNKNOWN_TOPIC_ID) for each in ids[1:])]


def test_a_thread_reads_and_answers_produce_to_many_topics(
    broker: RunningBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    run = Lane.run

    async def note(lane: Lane, owner: str, work: Callable[[], Any]) -> Any:
        def noting() -> Any:
            threads.append(threading.current_thread().name)
            return work()

        return await run(lane, owner, noting)

    monkeypatch.setattr(Lane, "run", note)
    client, data = Client(broker.port), [{"index": 0, "records": batch([b"x"])}]
    names = [topic, *(f"nowhere-{number}" for number in range(MANY))]
    topic_data = [{"name": name, "partition_data": data} for name in names]
    client.send(ApiKey.PRODUCE, 9, acks=1, timeout_ms=5000, topic_data=topic_data)
    client.send(ApiKey.PRODUCE, 9, acks=1, timeout_ms=5000, topic_data=topic_data[:1])
    answer, next_answer = (client.receive(ApiKey.PRODUCE, 9) for _ in range(2))
    assert [each.name for each in answer.responses] == names
    first, *others = (each.partition_responses[0] for each in answer.responses)
    assert {each.error_code for each in others} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    (second,) = next_answer.responses[0].partition_responses
    assert (first.error_code, second.base_offset) == (0, first.base_offset + 1)
    assert [name.startswith("sharecore-request") for name in threads] == [True, True]


_NAMES = [f"denied-{number}" for number in range(MANY)]
_PARTITION = [{"partition_index": 0}]
_DENIED: dict[ApiKey, tuple[int, int, dict[str, Any]]] = {
    ApiKey.OFFSET_COMMIT: (8, 2, {"topics": [{"name": name, "partitions": _PARTITION} for name in _NAMES]}),
    ApiKey.TXN_OFFSET_COMMIT: (
        3,
        2,
        {"topics": [{"name": name, "partitions": _PARTITION} for name in _NAMES]},
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        3,
        3,
        {"v3_and_below_topics": [{"name": name, "partitions": [0]} for name in _NAMES]},
    ),
    ApiKey.ELECT_LEADERS: (
        2,
        2,
        {
            "timeout_ms": 5000,
            "topic_partitions": [{"topic": name, "partitions": [0]} for name in _NAMES],
        },
    ),
    ApiKey.DELETE_TOPICS: (6, 4, {"timeout_ms": 5000, "topics": [{"name": name} for name in _NAMES]}),
}


def test_more_settings_than_a_resource_can_have_are_refused_before_any_is_judged(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[object] = []
    monkeypatch.setattr(config_change, "changed", lambda *asked, **_: judged.append(asked))
    configs = [{"name": f"no.such.{number}", "value": "1"} for number in range(MANY)]
    for api, version in ((ApiKey.ALTER_CONFIGS, 2), (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)):
        resources = [{"resource_type": 4, "resource_name": "1", "configs": configs}]
        answer = Client(broker.port).ask(api, version, resources=resources)
        assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST]
    assert judged == []


@pytest.fixture(scope="module")
def denying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Provide a broker that denies its clients everything."""
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"authorizer.class.name": authorizer, "super.users": "User:nobody"}
    running = RunningBroker(tmp_path_factory.mktemp("denying"), settings).start()
    yield running
    running.stop()


@pytest.mark.heavy
@pytest.mark.parametrize("api", _DENIED, ids=lambda api: api.name)
def test_others_are_served_while_many_entries_are_refused(
    denying: RunningBroker, api: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[None] = []
    take_turn = Turns._next_turn

    def note(running: Turns) -> None:
        turns.append(None)
        take_turn(running)

    monkeypatch.setattr(Turns, "_next_turn", note)
    version, steps_each, request = _DENIED[api]
    client = Client(denying.port)
    client.ask(api, version, **request)
    assert len(turns) >= steps_each * MANY // _STEPS_A_TURN


def test_a_malformed_produce_request_with_many_topics_ends_its_connection(
    broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    topic_data = [{"name": f"t{number}", "partition_data": [{"index": 0}]} for number in range(MANY)]
    frame = codec(ApiKey.PRODUCE, 9).write_request(1, "tester", {"acks": 1, "topic_data": topic_data})
    client = Client(broker.port)
    client.send_frame(frame[4:].replace(b"t5999", b"\xff5999"))
    with pytest.raises(EOFError):
        client.receive_frame()
    assert not [record for record in caplog.records if record.exc_info]


def test_a_fetch_of_many_partitions_finds_the_few_that_have_records(
    broker: RunningBroker, topic: str
) -> None:
    client = Client(broker.port)
    data = [{"index": 1, "records": batch([b"x"])}]
    client.ask(
        ApiKey.PRODUCE, 9, acks=1, timeout_ms=5000, topic_data=[{"name": topic, "partition_data": data}]
    )
    wanted = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1000} for index in range(MANY)]
    asked = {"max_wait_ms": 60_000, "min_bytes": 1_000_000, "max_bytes": 1000, "session_epoch": 0}
    # it does not wait: many partitions are missing
    answer = client.ask(ApiKey.FETCH, 11, **asked, topics=[{"topic": topic, "partitions": wanted}])
    found = answer.responses[0].partitions
    assert [(each.partition_index, each.error_code, bool(each.records)) for each in found] == [
        (0, 0, False),
        (1, 0, True),
        *((index, 3, False) for index in range(2, MANY)),
    ]
    assert answer.session_id == 0  # nor is a session opened


def test_a_fetch_of_more_partitions_than_one_turn_has_waits_for_records(broker: RunningBroker) -> None:
    client, producer = Client(broker.port), Client(broker.port)
    asked = {"name": "wide", "num_partitions": 300, "replication_factor": 1}
    client.ask(ApiKey.CREATE_TOPICS, 5, topics=[asked], timeout_ms=5000)
    wanted = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1000} for index in range(300)]
    fetch = {"max_wait_ms": 60_000, "min_bytes": 1, "max_bytes": 1000, "session_epoch": -1}
    client.send(ApiKey.FETCH, 11, **fetch, topics=[{"topic": "wide", "partitions": wanted}])
    data = [{"index": 299, "records": batch([b"x"])}]
    producer.ask(
        ApiKey.PRODUCE, 9, acks=1, timeout_ms=5000, topic_data=[{"name": "wide", "partition_data": data}]
    )
    found = client.receive(ApiKey.FETCH, 11).responses[0].partitions
    assert [each.partition_index for each in found if each.records] == [299]


def test_each_owner_has_its_turn() -> None:
    async def main() -> None:
        lane, order = Lane(10), []

        async def enter(owner: str) -> None:
            place = await lane.enter(owner, 10)
            order.append(owner)
            await asyncio.sleep(0)
            place.leave()

        first = await lane.enter("one", 10)
        waiting = [asyncio.ensure_future(enter(owner)) for owner in ("one", "one", "one", "two")]
        await asyncio.sleep(0)
        first.leave()
        await asyncio.gather(*waiting)
        assert order == ["one", "two", "one", "one"]

    asyncio.run(main())


def test_room_is_given_back_when_the_thread_is_done_though_nobody_waits() -> None:
    async def main() -> None:
        lane, begun, may_end = Lane(10), threading.Event(), threading.Event()

        def decode() -> None:
            begun.set()
            may_end.wait(10)

        async def work() -> None:
            place = await lane.enter("one", 10)
            try:
                await lane.run("one", decode)
            finally:
                place.leave()

        task = asyncio.ensure_future(work())
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        second = asyncio.ensure_future(lane.enter("two", 10))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not second.done()
        may_end.set()
        (await second).leave()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_who_gives_up_waiting_leaves_its_room_to_others() -> None:
    async def main() -> None:
        lane = Lane(10)
        first = await lane.enter("one", 10)
        gone = asyncio.ensure_future(lane.enter("two", 10))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        first.leave()
        (await lane.enter("three", 10)).leave()

    asyncio.run(main())


def test_a_large_answer_to_a_small_request_is_whole(broker: RunningBroker, topic: str) -> None:
    asked = [{"resource_type": 2, "resource_name": topic}] * 300
    answer = Client(broker.port).ask(ApiKey.DESCRIBE_CONFIGS, 4, resources=asked, include_synonyms=True)
    assert len(answer.results) == 300
    assert len({tuple(each.name for each in result.configs) for result in answer.results}) == 1
    assert len(answer.results[0].configs) > 20


def test_a_share_session_of_many_partitions_has_all_of_them_soon(broker: RunningBroker) -> None:
    """Leaders are created in turns; the waiting fetch is answered before its timeout."""
    client, count = Client(broker.port), 700
    asked = {"name": "many-shared", "num_partitions": count, "replication_factor": 1}
    client.ask(ApiKey.CREATE_TOPICS, 5, topics=[asked], timeout_ms=5000)
    described = client.ask(ApiKey.METADATA, 12, topics=[{"name": "many-shared", "topic_id": None}])
    topic_id = described.topics[0].topic_id
    broker.until(lambda each: each.topics.by_id(topic_id) is not None)
    member = {"group_id": "of-many", "member_id": "one"}
    client.ask(
        ApiKey.SHARE_GROUP_HEARTBEAT, 1, **member, member_epoch=0, subscribed_topic_names=["many-shared"]
    )

    def has_state(running: Broker) -> bool:
        group = running.share.groups.find("of-many")
        state = None if group is None else group.initialized.get(topic_id)
        return state is not None and len(state.partitions) == count

    broker.until(has_state)
    limits = {"max_wait_ms": 60_000, "min_bytes": 1, "max_bytes": 1000, "max_records": 10, "batch_size": 10}
    topics = [{"topic_id": topic_id, "partitions": [{"partition_index": each} for each in range(count)]}]
    client.ask(ApiKey.SHARE_FETCH, 1, **member, **limits, share_session_epoch=0, topics=topics)
    assert broker.look(lambda each: len(each.share.partitions.by_topic()["of-many", topic_id])) == count
    client.send(ApiKey.SHARE_FETCH, 1, **member, **limits, share_session_epoch=1, topics=[])
    data = [{"index": count - 1, "records": batch([b"x"])}]
    Client(broker.port).ask(
        ApiKey.PRODUCE,
        9,
        acks=1,
        timeout_ms=5000,
        topic_data=[{"name": "many-shared", "partition_data": data}],
    )
    answer = client.receive(ApiKey.SHARE_FETCH, 1)
    assert [each.partition_index for one in answer.responses for each in one.partitions] == [count - 1]
