"""What is done to both brokers: causes of dead letters, what they hold, states and sizes of their topic.

Each scenario gives what was seen, which has to be equal.
"""

from __future__ import annotations

import time

from tests.differential.dlq.member import ACCEPT, REJECT, RELEASE
from tests.differential.dlq.registry import scenario
from tests.differential.dlq.side import ALLOWED, GROUP, TOPIC
from tests.differential.dlq.world import Seen, World

GAP = 0

# causes


@scenario
def rejected(world: World) -> Seen:
    member = world.begin()
    leased = member.take(10)
    answers = [member.acknowledge((0, 9, REJECT))]
    return {"leased": leased, "answers": answers} | world.outcome(range(10), 10, lag=0)


@scenario
def rejected_twice(world: World) -> Seen:
    member = world.begin()
    member.take(10)
    # the first record holds the start offset
    answers = [member.acknowledge((1, 9, REJECT)) for _ in range(2)]
    return {"answers": answers} | world.outcome(range(1, 10), 9, lag=1)


@scenario
def rejected_in_ranges(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    code = member.acknowledge((0, 1, REJECT), (2, 2, ACCEPT), (3, 4, REJECT), (5, 8, ACCEPT), (9, 9, REJECT))
    return {"answer": code} | world.outcome([0, 1, 3, 4, 9], 5, lag=0)


@scenario
def rejected_one_by_one(world: World) -> Seen:
    member = world.begin()
    member.take(10)
    codes = [member.acknowledge((offset, offset, REJECT)) for offset in (0, 1, 2, 7, 5)]
    return {"answers": codes} | world.outcome([0, 1, 2, 5, 7], 5)


@scenario
def rejected_before_a_topic_is_set(world: World) -> Seen:
    member = world.begin()
    world.side.configure(GROUP, world.group, {"errors.deadletterqueue.topic.name": None})
    member.take(10)
    codes = [member.acknowledge((0, 4, REJECT))]
    world.side.group(world.group, world.dlq)
    codes.append(member.acknowledge((5, 9, REJECT)))
    return {"answers": codes} | world.outcome(range(10), 5, lag=0)


@scenario
def gaps_get_no_letter(world: World) -> Seen:
    member = world.begin()
    member.take(10)
    code = member.acknowledge((0, 4, GAP), (5, 9, REJECT))
    return {"answer": code} | world.outcome(range(10), 5, lag=0)


@scenario
def given_back_at_the_limit(world: World) -> Seen:
    member = world.begin(share_delivery_count_limit="2", copy=True)
    leased, codes = [], []
    for _ in range(2):
        leased.append(member.take(10))
        codes.append(member.acknowledge((0, 9, RELEASE)))
    return {"leased": leased, "answers": codes} | world.outcome(range(10), 10, lag=0)


@scenario
def session_closed_at_the_limit(world: World) -> Seen:
    member = world.begin(share_delivery_count_limit="2")
    leased = []
    for _ in range(2):
        leased.append(member.take(10))
        member.close_session()
    return {"leased": leased} | world.outcome(range(10), 10, lag=0)


@scenario
def limit_lowered(world: World) -> Seen:
    member = world.begin(share_delivery_count_limit="5")
    leased = []
    for _ in range(3):
        leased.append(member.take(10))
        member.acknowledge((0, 9, RELEASE))
    leased.append(member.take(10))
    world.side.configure(GROUP, world.group, {"share.delivery.count.limit": "2"})
    code = member.acknowledge((0, 9, RELEASE))
    return {"leased": leased, "answer": code} | world.outcome(range(10), 10, lag=0)


@scenario
def causes_side_by_side(world: World) -> Seen:
    member = world.begin(share_delivery_count_limit="2")
    member.take(10)
    codes = [member.acknowledge((0, 9, RELEASE))]
    member.take(10)
    codes.append(member.acknowledge((0, 4, REJECT), (5, 9, RELEASE)))
    return {"answers": codes} | world.outcome(range(10), 10, lag=0)


# content of dead-letter records


@scenario
def copies(world: World) -> Seen:
    entries = [(b"k", b"v"), (None, b"v"), (b"k", None), (None, None), (b"", b"")]
    member = world.begin(entries, copy=True, headers=[("own", b"x")])
    member.take(5)
    code = member.acknowledge((0, 4, REJECT))
    return {"answer": code} | world.outcome(range(5), 5, lag=0)


@scenario
def bare_letters(world: World) -> Seen:
    member = world.begin([(b"k", b"v"), (None, None)], headers=[("own", b"x")])
    member.take(2)
    code = member.acknowledge((0, 1, REJECT))
    return {"answer": code} | world.outcome(range(2), 2, lag=0)


@scenario
def copies_of_compressed_records(world: World) -> Seen:
    member = world.begin(40, copy=True, gzipped=True)
    member.take(40)
    code = member.acknowledge((0, 9, REJECT), (10, 19, ACCEPT), (20, 20, REJECT), (21, 39, ACCEPT))
    return {"answer": code} | world.outcome([*range(10), 20], 11, lag=0)


@scenario
def letters_of_a_letter(world: World) -> Seen:
    headers = [("__dlq.errors.topic", b"older"), ("__dlq.errors.offset", b"7"), ("own", b"x")]
    member = world.begin(2, copy=True, headers=headers)
    member.take(2)
    member.acknowledge((0, 1, REJECT))
    return world.outcome(range(2), 2, lag=0)


# the topic


@scenario
def topic_is_missing(world: World) -> Seen:
    member = world.begin(queue=None)
    member.take(10)
    code = member.acknowledge((0, 9, REJECT))
    return {"answer": code} | world.outcome(range(10), lag=0)


@scenario
def topic_is_not_allowed(world: World) -> Seen:
    member = world.begin(queue={})
    member.take(10)
    code = member.acknowledge((0, 9, REJECT))
    return {"answer": code} | world.outcome(range(10), lag=0)


@scenario
def topic_is_allowed_later(world: World) -> Seen:
    member = world.begin(queue={})
    member.take(10)
    codes = [member.acknowledge((0, 4, REJECT))]
    world.outcome(range(5))
    world.side.configure(TOPIC, world.dlq, ALLOWED)
    codes.append(member.acknowledge((5, 9, REJECT)))
    return {"answers": codes} | world.outcome(range(10), 5, lag=0)


@scenario
def topic_has_another_prefix(world: World) -> Seen:
    world.dlq = world.dlq.replace("dlq.", "dead.")
    member = world.begin()
    member.take(10)
    code = member.acknowledge((0, 9, REJECT))
    return {"answer": code} | world.outcome(range(10), lag=0)


@scenario
def fewer_partitions(world: World) -> Seen:
    member = world.begin(4, partitions=3, queue_partitions=2)
    seen: dict[int, list[tuple[int, int, int]]] = {}
    while len(seen) < 3:
        seen |= member.fetch()
    codes = [member.acknowledge((0, 3, REJECT), partition=index) for index in range(3)]
    found = world.outcome({index: range(4) for index in range(3)}, 12)
    found["letters"] = {
        index: sorted(some, key=lambda letter: letter["headers"][1:3])
        for index, some in found["letters"].items()
    }
    return {"answers": codes} | found


@scenario
def more_partitions(world: World) -> Seen:
    member = world.begin(queue_partitions=4)
    member.take(10)
    member.acknowledge((0, 9, REJECT))
    return world.outcome(range(10), 10, lag=0)


@scenario
def two_groups_one_topic(world: World) -> Seen:
    member = world.begin(4)
    member.take(4)
    member.acknowledge((0, 3, REJECT))
    found = world.outcome(range(4), 4, lag=0)
    world.group += "-2"
    world.side.group(world.group, world.dlq)
    other = world.join()
    other.take(4)
    other.acknowledge((0, 3, REJECT))
    return {"first": found, "second": world.outcome(range(4), 8, lag=0)}


@scenario
def topic_stamps_its_own_time(world: World) -> Seen:
    member = world.begin(queue=ALLOWED | {"message.timestamp.type": "LogAppendTime"})
    member.take(10)
    member.acknowledge((0, 9, REJECT))
    return world.outcome(range(10), 10, lag=0)


@scenario
def compacted_topic_and_no_copies(world: World) -> Seen:
    member = world.begin(queue=ALLOWED | {"cleanup.policy": "compact"})
    member.take(10)
    member.acknowledge((0, 9, REJECT))
    return world.outcome(range(10), lag=0)


@scenario
def compacted_topic_and_copies(world: World) -> Seen:
    member = world.begin(queue=ALLOWED | {"cleanup.policy": "compact"}, copy=True)
    member.take(10)
    member.acknowledge((0, 9, REJECT))
    return world.outcome(range(10), 10, lag=0)


@scenario
def compacted_topic_and_some_keys(world: World) -> Seen:
    entries = [(b"k0", b"v"), (None, b"v"), (b"k2", b"v")]
    member = world.begin(entries, queue=ALLOWED | {"cleanup.policy": "compact"}, copy=True)
    member.take(3)
    member.acknowledge((0, 2, REJECT))
    return world.outcome(range(3), lag=0)


# sizes


@scenario
def value_is_too_large(world: World) -> Seen:
    entries = [(b"k0", b"small"), (b"k1", b"x" * 3000), (b"k2", b"small")]
    member = world.begin(entries, queue=ALLOWED | {"max.message.bytes": "1500"}, copy=True)
    member.take(3)
    member.acknowledge((0, 2, REJECT))
    return world.outcome(range(3), 3, lag=0)


@scenario
def too_large_with_the_headers_of_the_letter(world: World) -> Seen:
    entries = [(b"k0", b"small"), (b"k1", b"x" * 1400), (b"k2", b"small")]
    member = world.begin(entries, queue=ALLOWED | {"max.message.bytes": "1500"}, copy=True)
    member.take(3)
    member.acknowledge((0, 2, REJECT))
    return world.outcome(range(3), lag=0)


@scenario
def too_large_with_its_own_headers(world: World) -> Seen:
    entries = [(b"k0", b"small"), (b"k1", b"small")]
    member = world.begin(
        entries, queue=ALLOWED | {"max.message.bytes": "1500"}, copy=True, headers=[("own", b"x" * 1200)]
    )
    member.take(2)
    member.acknowledge((0, 1, REJECT))
    return world.outcome(range(2), 2, lag=0)


@scenario
def not_even_a_bare_letter_fits(world: World) -> Seen:
    member = world.begin(queue=ALLOWED | {"max.message.bytes": "120"}, copy=True)
    member.take(10)
    code = member.acknowledge((0, 9, REJECT))
    return {"answer": code} | world.outcome(range(10), lag=0)


@scenario
def a_range_is_split(world: World) -> Seen:
    member = world.begin(50, queue=ALLOWED | {"max.message.bytes": "1500"}, copy=True)
    member.take(50)
    member.acknowledge((0, 49, REJECT))
    return world.outcome(range(50), 50, lag=0)


@scenario
def a_compressed_batch_is_too_large_when_expanded(world: World) -> Seen:
    entries = [(b"k0", b"x" * 2000), (b"k1", b"x" * 2000), (b"k2", b"small")]
    member = world.begin(entries, queue=ALLOWED | {"max.message.bytes": "3000"}, copy=True, gzipped=True)
    member.take(3)
    member.acknowledge((0, 2, REJECT))
    return world.outcome(range(3), 3, lag=0)


@scenario
def a_range_of_two_thousand(world: World) -> Seen:
    member = world.begin(2000)
    member.take(2000)
    code = member.acknowledge((0, 1999, REJECT))
    return {"answer": code} | world.outcome(range(2000), 2000, lag=0)


# the source


@scenario
def source_is_deleted(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    member.acknowledge((0, 9, REJECT))
    found = world.outcome(range(10), 10)
    world.side.delete(world.source)
    return {"letters": world.outcome((), 10)["letters"], "before": found["states"]}


@scenario
def records_are_deleted_while_leased(world: World) -> Seen:
    member = world.begin(copy=True)
    member.take(10)
    world.side.delete_records(world.source, 5)
    time.sleep(0.3)
    code = member.acknowledge((5, 9, REJECT))
    return {"answer": code} | world.outcome(range(5, 10), 5, lag=0)


@scenario
def transactions(world: World) -> Seen:
    return _transactions(world, "read_uncommitted")


@scenario
def transactions_of_committed_records(world: World) -> Seen:
    return _transactions(world, "read_committed")


def _transactions(world: World, level: str) -> Seen:
    member = world.begin([], copy=True, share_isolation_level=level)
    world.side.produce_in_transactions(world.source)
    leased = member.take(4)
    code = member.acknowledge(*((first, last, REJECT) for first, last, _ in leased))
    rejected = [offset for first, last, _ in leased for offset in range(first, last + 1)]
    return {"answer": code} | world.outcome(rejected, 4, lag=0)
