from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.unit.deadletters.post import NAME, Post

from sharecore.deadletters.letter import DeadLetter, spans
from sharecore.errors import ErrorCode, KafkaError

STORAGE = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space")
TOO_LARGE = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
NO_KEY = KafkaError(ErrorCode.INVALID_RECORD)
THROTTLED = KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)


def test_what_is_due_together_is_one_batch_and_archived_in_one_span() -> None:
    post = Post()
    post.send((0, 2), (5, 5), (7, 9))
    assert post.queue.batches == [[0, 1, 2, 5, 7, 8, 9]]
    assert post.archived == [(0, 9)]
    assert post.counts == (7, 3, 0, 0)
    assert not post.outbox.busy


@pytest.mark.parametrize("copy", [False, True])
def test_a_letter_carries_the_record_where_the_group_wants_it(*, copy: bool) -> None:
    post = Post(errors_deadletterqueue_copy_record_enable=copy)
    post.send((3, 4))
    assert post.queue.keys == ([b"k3", b"k4"] if copy else [None, None])


def test_letters_that_come_meanwhile_wait_for_their_turn() -> None:
    post = Post()
    post.queue.hold = True
    post.send((5, 5))
    post.send((0, 0), (6, 6))
    assert post.outbox.busy
    assert post.archived == []
    post.queue.settle()
    post.queue.settle()
    assert post.queue.batches == [[5], [0, 6]]
    assert post.archived == [(5, 5), (0, 6)]


def test_what_still_waits_is_not_in_the_span_of_what_is_written() -> None:
    letters = [DeadLetter(first, last, 1, False) for first, last in ((7, 8), (0, 1), (4, 4))]
    assert spans(letters[:2], letters[2:]) == [(0, 1), (7, 8)]
    assert spans(letters[:1], letters[1:]) == [(7, 8)]


def test_a_range_that_fills_a_batch_goes_on_in_the_next() -> None:
    post = Post()
    post.topic = replace(post.topic, max_message_bytes=700)
    post.send((0, 9), (15, 16))
    assert [offset for batch in post.queue.batches for offset in batch] == [*range(10), 15, 16]
    assert len(post.queue.batches) > 2
    archived = {offset for first, last in post.archived for offset in range(first, last + 1)}
    assert archived >= {*range(10), 15, 16}


def test_what_lies_on_the_disk_is_waited_for() -> None:
    post = Post()
    post.source.cold = True
    post.send((3, 4))
    assert post.outbox.busy
    assert post.queue.batches == []
    post.source.warmed()
    assert post.queue.batches == [[3, 4]]


def test_records_that_are_gone_or_cannot_be_read_still_get_letters() -> None:
    post = Post()
    post.source.start_offset = 5
    post.source.reads_until_failure = 1
    post.send((3, 6), (9, 9), (12, 12))
    assert post.queue.batches == [[3, 4, 5, 6]]
    post.world.run(10_000)
    assert post.queue.batches == [[3, 4, 5, 6], [9, 12]]
    assert post.queue.keys == [None, None]
    assert post.archived == [(3, 6), (9, 12)]


def test_a_disk_that_recovers_is_waited_for() -> None:
    post = Post(errors_deadletterqueue_copy_record_enable=True)
    post.source.reads_until_failure = 0
    post.send((3, 3))
    post.world.run(1_500)
    assert post.queue.batches == []
    post.source.reads_until_failure = None
    post.world.run(3_000)
    assert (post.queue.batches, post.queue.keys) == ([[3]], [b"k3"])


@pytest.mark.parametrize("late", [False, True])
def test_a_write_that_fails_is_tried_again_ever_later(*, late: bool) -> None:
    post = Post()
    if late:
        post.queue.hold = True
        post.send((0, 1))
        post.queue.settle(STORAGE)
        post.queue.hold = False
        post.queue.refuse = [STORAGE]
    else:
        post.queue.refuse = [STORAGE] * 2
        post.send((0, 1))
    post.world.run(1500)
    assert post.queue.batches == []
    post.world.run(1000)
    assert len(post.queue.refuse) == 0
    assert post.queue.batches == []
    post.world.run(5000)
    assert post.queue.batches == [[0, 1]]
    assert post.archived == [(0, 1)]


def test_after_five_attempts_records_are_archived_without(caplog: pytest.LogCaptureFixture) -> None:
    post = Post()
    post.queue.refuse = [THROTTLED] * 5
    post.send((0, 1), rejected=False)
    post.send((4, 4))
    post.world.run(40_000)
    assert post.archived == [(0, 1), (4, 4)]
    assert post.queue.batches == [[4]]
    assert post.counts == (1, 6, 1, 2)
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [line.partition(":")[0] for line in lines] == ["group g, t-0, offsets 0 to 1 (delivered 1 times)"]


def test_letters_that_a_topic_does_not_mind_go_alone() -> None:
    post = Post()
    post.queue.refuse = [NO_KEY, NO_KEY]
    post.send((0, 2), (5, 5))
    assert post.queue.batches == [[1], [2], [5]]
    assert post.counts[3] == 1
    assert sorted(post.archived) == [(0, 0), (1, 1), (2, 2), (5, 5)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": ""}, "topic.name is not set"),
        ({"name": "__x"}, "the broker's own"),
        ({"topic": False}, "group.enable=true"),
        ({"gone": True}, "there is no topic dlq.t"),
        ({"prefix": "q."}, "does not begin with"),
    ],
)
def test_without_a_topic_records_are_archived_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture, change: dict[str, object], reason: str
) -> None:
    post = Post()
    if "name" in change:
        post.group = replace(post.group, errors_deadletterqueue_topic_name=str(change["name"]))
    if "topic" in change:
        post.topic = replace(post.topic, errors_deadletterqueue_group_enable=False)
    if "gone" in change:
        post.topics.clear()
    if "prefix" in change:
        post.broker = replace(post.broker, errors_deadletterqueue_topic_name_prefix="q.")
    post.send((0, 1), (7, 7))
    assert post.archived == [(0, 7)]
    assert post.counts == (0, 0, 0, 3)
    assert post.dead_letter_service.trouble("g") in (
        "",
        *(record.getMessage().split(": ")[-1] for record in caplog.records),
    )
    post.world.run(59_000)
    post.send((8, 8))
    (line,) = [record.getMessage() for record in caplog.records]
    assert "offsets 0 to 1 (rejected)" in line
    assert "(3 in the group)" in line
    assert reason in line
    post.world.run(1_000)
    post.send((9, 9))
    (_, line) = [record.getMessage() for record in caplog.records]
    assert "(5 in the group)" in line, "once a minute"
    assert post.dead_letter_service.counts["g"].undeliverable == 5


def test_records_wait_for_a_required_topic(caplog: pytest.LogCaptureFixture) -> None:
    post = Post(errors_deadletterqueue_required=True)
    post.topic = replace(post.topic, errors_deadletterqueue_group_enable=False)
    post.send((0, 1))
    post.send((5, 6))
    post.world.run(60_000)
    assert post.archived == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "2 records wait" in caplog.records[0].getMessage()
    post.topic = replace(post.topic, errors_deadletterqueue_group_enable=True)
    post.dead_letter_service.changed()
    assert post.queue.batches == [[0, 1, 5, 6]]
    assert post.archived == [(0, 6)]


def test_records_that_a_required_topic_refuses_wait_too() -> None:
    post = Post(errors_deadletterqueue_required=True)
    post.queue.refuse = [TOO_LARGE]
    post.send((0, 0))
    assert post.archived == []
    post.world.run(6000)
    assert post.queue.batches == [[0]]


def test_who_waits_for_a_topic_stops_when_the_partition_is_led_no_more() -> None:
    post = Post(errors_deadletterqueue_required=True)
    post.topics.clear()
    post.send((0, 1))
    post.outbox.close()
    post.dead_letter_service.changed()
    post.world.run(60_000)
    assert not post.outbox.busy
    assert post.archived == []


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_broker_that_may_not_act_as_the_leader_writes_no_letter(comes_back: bool) -> None:
    """Whether the due dead letters are in the state is unknown; the next leader finds them there, if they
    are.
    """
    post = Post()
    post.leads = False
    post.send((0, 1))
    post.world.run(60_000)
    assert (post.queue.batches, post.archived) == ([], [])
    if not comes_back:
        post.outbox.close()
        assert not post.outbox.busy
    post.leads = True
    post.world.run(60_000)
    assert post.queue.batches == ([[0, 1]] if comes_back else [])
    assert post.archived == ([(0, 1)] if comes_back else [])


def test_a_letter_under_way_is_written_though_the_partition_is_led_no_more() -> None:
    post = Post()
    post.queue.refuse = [STORAGE]
    post.send((0, 1))
    post.outbox.close()
    post.world.run(3000)
    assert post.queue.batches == [[0, 1]]


def creating(post: Post) -> None:
    post.topics.clear()
    post.broker = replace(post.broker, errors_deadletterqueue_auto_create_topics_enable=True)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_topic_is_made_once_for_all_who_need_it() -> None:
    post = Post()
    creating(post)
    other = post.another_outbox()

    async def life() -> None:
        post.send((0, 1))
        other.send([DeadLetter(3, 3, 1, True)])
        await turns()

    asyncio.run(life())
    assert list(post.topics) == [NAME]
    assert post.queue.batches == [[0, 1], [3]]


@pytest.mark.parametrize(
    ("error", "lost"), [(THROTTLED, 0), (KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION), 2)]
)
def test_a_topic_that_cannot_be_made_is_tried_again_where_that_may_help(error: KafkaError, lost: int) -> None:
    post = Post()
    creating(post)
    post.create_errors = [error]

    async def life() -> None:
        post.send((0, 1))
        await turns()
        post.world.run(3000)
        await turns()

    asyncio.run(life())
    assert post.counts[3] == lost
    assert post.queue.batches == ([] if lost else [[0, 1]])
    assert post.archived == [(0, 1)]
