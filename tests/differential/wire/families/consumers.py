"""Consumer groups (KIP-848): members join, own, let go, commit and leave, well and badly."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import (
    NAMES,
    UNKNOWN_ID,
    change_topics,
    consumer_heartbeat,
    create_topics,
    delete_topics,
    epoch,
    grow_topic,
    heartbeat,
    set_group,
    some,
    weighted,
)
from tests.differential.wire.families.producing import end, epoch_of, id_of, initialize
from tests.differential.wire.names import NO_ID
from tests.differential.wire.script import Ask, Fields, Restart, Scenario, Sleep, Stage

_GROUP = "~readers"
_PRODUCER = "~writer"
_MEMBERS = ["~ann", "~bob", "~cid", "~dan", "~eve"]
_INSTANCES = ["~desk-1", "~desk-2"]
_TOPICS = ["~orders", "~bills", "~mail", "~nowhere"]
_EXPRESSIONS = ["~o.*", "~.*s", r"\Q~mail\E|~(?i)BILLS", "~nothing"]
_LOOKED_UP_MS = 10_100
"""Apache Kafka looks up what expressions match every ten seconds, where one is left that it has looked up;
ours does at once.
"""
_WAITS = 4
_LONG_MS = 900_000
"""Nobody is thrown out by chance, on a busy machine either."""
_GONE = (25, 110, 82)
"""UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID."""
_STEPS = {
    "join": 8,
    "no id": 1,
    "beat": 14,
    "own": 14,
    "whole": 4,
    "want": 5,
    "leave": 4,
    "wrong": 4,
    "bad": 4,
    "strange": 2,
    "topic": 3,
    "commit": 6,
    "fetch": 5,
    "delete offsets": 2,
    "describe": 8,
    "list": 2,
    "delete": 1,
}


def scenario(random: Random, stage: Stage) -> Scenario:
    """A random life of one group."""
    yield create_topics(orders=random.choice([1, 2, 4]), bills=1)
    life = _Life(random, stage)
    if life.expressions:
        # 4.4.0 also raises the epoch for a new assignor; with the first member, the topics raise it on both
        first: Fields = {"rebalance_timeout_ms": _LONG_MS, "topic_partitions": [], "server_assignor": "range"}
        yield consumer_heartbeat(_GROUP, "~first", 0, subscribed_topic_names=["~nowhere"], **first)
    expiry = random.random() < 0.04
    if expiry:
        settings = {"consumer_session_timeout_ms": "45000", "consumer_heartbeat_interval_ms": "5000"}
        yield set_group(_GROUP, **settings)
    for _ in range(random.randrange(35, 70)):
        yield from life.step()
        if len(life.expressions) > 1 and not life.waits:
            return
    if stage.restarts and random.random() < 0.03:
        yield Restart()
        if life.expressions:
            yield Sleep(_LOOKED_UP_MS)
        for _ in range(20):
            yield from life.step()


class _Member:
    """A client, and what it was told."""

    def __init__(self, name: str, instance: str | None) -> None:
        self.name = name
        self.instance = instance
        self.topics: list[str] = ["~orders"]
        self.expression: str | None = None
        self.owned: list[Fields] = []
        self.is_in = False


class _Life:
    def __init__(self, random: Random, stage: Stage) -> None:
        self.random = random
        count = random.choice([1, 1, 2, 3, 5])
        # two members of an instance: the second one comes while the first is temporarily away; 4.3.1 has no
        # room for the second one if the group is full
        instances = [None, None, *(_INSTANCES if count < len(_MEMBERS) or stage.newest else ())]
        self.members = [_Member(name, random.choice(instances)) for name in _MEMBERS[:count]]
        self.expressions = self._some_expressions(stage)
        self.has_producer = False
        # which of several members gets a partition from the uniform assignor depends on a hash table there;
        # with another assignor, Kafka 4.4.0 reassigns at once
        alone = count == 1 and not self.expressions
        self.assignors = [None, "uniform", "range"] if alone and not stage.newest else ["range"]
        self.newest = stage.newest

    def _some_expressions(self, stage: Stage) -> list[str]:
        """What members may want topics by: more than one, or topics that come, take ten seconds."""
        random = self.random
        count = weighted(random, {0: 6, 1: 3, 2: 0.2, 3: 0.2})
        slow = stage.patient and (count > 1 or (count == 1 and random.random() < 0.1))
        self.waits = _WAITS if slow else 0
        return random.sample(_EXPRESSIONS, count if slow else min(count, 1))

    def step(self) -> Scenario:
        random = self.random
        member = random.choice(self.members)
        if not member.is_in and random.random() < 0.5:
            yield from self._join(member)
            return
        match weighted(random, _STEPS):
            case "join":
                yield from self._join(member)
            case "no id":
                # with several members the random order of ids decides, so there may be no other member
                if len(self.members) == 1 and self.assignors != ["range"]:
                    yield from self._leave(member, -1)
                    yield from self._without_id(member)
            case "beat":
                yield from self._beat(member)
            case "own":
                yield from self._beat(member, owned=member.owned)
            case "whole":
                yield from self._beat(member, **self._everything(member), owned=member.owned)
            case "want":
                member.topics = some(random, _TOPICS)
                yield from self._choose(member)
                yield from self._beat(
                    member, **self._changed(member), owned=random.choice([None, member.owned])
                )
            case "leave":
                yield from self._leave(member)
            case "wrong":
                wrong = epoch(_GROUP, member.name, random.choice([1, 1, -1, -1, -2, 100]))
                yield from self._beat(member, wrong, owned=random.choice([None, [], member.owned]))
            case "bad":
                if len(self.expressions) <= 1:  # it may have an expression, and no request waits
                    yield from self._bad(member)
            case "strange":
                yield self._strange(member)
            case "topic":
                yield from self._change_topics()
            case "commit":
                yield from self._commit(member)
            case "fetch":
                yield self._fetch(member)
            case "delete offsets":
                yield _delete_offsets(random)
            case "describe":
                yield _describe(random)
            case "list":
                yield _list(random)
            case "delete":
                yield Ask("DELETE_GROUPS", random.randrange(3), {"groups_names": [_GROUP]})

    # heartbeats

    def _join(self, member: _Member) -> Scenario:
        member.topics = some(self.random, _TOPICS) or ["~orders"]
        yield from self._choose(member)
        yield from self._beat(member, 0, **self._everything(member), owned=[])

    def _choose(self, member: _Member) -> Scenario:
        """A member chooses an expression, or none."""
        random = self.random
        if not self.expressions:
            return
        if random.random() < 0.5:
            member.topics = []
        if len(self.expressions) == 1:
            member.expression = random.choice([*self.expressions * 2, "", None])
        elif self.waits:
            self.waits -= 1
            yield Sleep(_LOOKED_UP_MS)
            member.expression = random.choice([*self.expressions, ""])

    def _change_topics(self) -> Scenario:
        random = self.random
        if not self.expressions:
            yield change_topics(random)
        elif self.waits:
            self.waits -= 1
            yield change_topics(random)
            yield Sleep(_LOOKED_UP_MS)
        else:
            name = random.choice(_TOPICS[:2])
            yield random.choice([delete_topics(name), grow_topic(name, random.randrange(1, 6))])

    def _everything(self, member: _Member) -> Fields:
        """What a member says of itself when it joins, or has lost track."""
        random = self.random
        return {
            "rebalance_timeout_ms": _LONG_MS,
            "subscribed_topic_names": member.topics,
            "subscribed_topic_regex": member.expression,
            "server_assignor": random.choice(self.assignors),
            "rack_id": random.choice([None, None, "r1", "r2"]),
        }

    def _changed(self, member: _Member) -> Fields:
        everything = self._everything(member) | {"subscribed_topic_names": member.topics}
        names = ["subscribed_topic_names", *some(self.random, list(everything))]
        return {name: everything[name] for name in names}

    def _beat(
        self, member: _Member, at: Any = None, owned: list[Fields] | None = None, **fields: Any
    ) -> Scenario:
        """A heartbeat, and what comes of it."""
        ask = consumer_heartbeat(
            _GROUP,
            member.name,
            epoch(_GROUP, member.name) if at is None else at,
            version=self.random.choice([0, 1, 1]),
            instance_id=member.instance,
            topic_partitions=owned,
            **fields,
        )
        answer = yield ask
        self._told(member, answer)

    def _without_id(self, member: _Member) -> Scenario:
        """A client of before 4.0, which is given its id."""
        everything = self._everything(member) | {"topic_partitions": [], "instance_id": member.instance}
        answer = yield consumer_heartbeat(_GROUP, "", 0, version=0, **everything)
        if isinstance(answer, dict) and answer["error_code"] == 0:
            member.name = answer["member_id"]
        self._told(member, answer)

    def _told(self, member: _Member, answer: Any) -> None:
        if not isinstance(answer, dict):
            return
        if answer["error_code"] in _GONE:
            member.owned, member.is_in = [], False
        elif answer["error_code"] == 0:
            member.is_in = answer["member_epoch"] > 0
        if answer["error_code"] == 0 and answer["assignment"] is not None:
            member.owned = answer["assignment"]["topic_partitions"]

    def _leave(self, member: _Member, at: int | None = None) -> Scenario:
        random = self.random
        if at is None:
            at = -1 if member.instance is None or random.random() < 0.4 else -2
        yield from self._beat(member, at, owned=random.choice([None, []]))
        member.owned = []

    def _bad(self, member: _Member) -> Scenario:
        """What no client would send."""
        random = self.random
        at = random.choice([0, 0, epoch(_GROUP, member.name), -1, -2])
        strange = [
            {"topic_id": random.choice([UNKNOWN_ID, NO_ID, "#bills", "#orders"]), "partitions": [0, 9, -1]}
        ]
        fields: Fields = {
            "member_id": member.name,
            "instance_id": member.instance,
            **self._everything(member),
            "topic_partitions": [],
        }
        choices: dict[str, list[Any]] = {
            "group_id": ["", " ", "~shop", "~nobody"],
            "member_id": ["", " ", "~" + "m" * 300, "~nobody"][: 4 if self.assignors == ["range"] else 2],
            "member_epoch": [-3, -100, 2**31 - 1, -1, -2],
            "instance_id": ["", " "] if at == 0 else ["", " ", "~desk-1", "~desk-9", None],
            "rack_id": ["", " ", "r" * 300],
            "rebalance_timeout_ms": [-1, 0, -2, 2**31 - 1],
            "subscribed_topic_names": [[], None, [""], [" "], ["~orders", "~orders"], ["~a b"], [".."]],
            "subscribed_topic_regex": ["(", "~o++", "", None],
            "server_assignor": ["", " ", "nonsense", "Range", "uniform " * 40],
            "topic_partitions": [None, strange, [{"topic_id": "#orders", "partitions": []}], strange * 2],
        }
        if at == 0 and self.newest:
            choices["subscribed_topic_regex"] = ["(", "~o++"]
            choices["subscribed_topic_names"].remove([])
        for name in random.sample(list(choices), random.choice([1, 1, 1, 2])):
            fields[name] = random.choice(choices[name])
        if at in (0, -1, -2) and fields.get("group_id") in ("~shop", "~nobody"):
            fields["server_assignor"] = "range"
        fields.setdefault("member_epoch", at)
        # a member without an id would be given a new one, which would make two members
        version = 1 if fields["member_id"] == "" else random.randrange(2)
        name, group = fields.pop("member_id"), fields.pop("group_id", _GROUP)
        at = fields.pop("member_epoch")
        answer = yield consumer_heartbeat(group, name, at, version=version, **fields)
        if (name, group) == (member.name, _GROUP):
            self._told(member, answer)

    def _strange(self, member: _Member) -> Ask:
        """What members of groups of other kinds send."""
        random = self.random
        match random.randrange(5):
            case 0:
                return heartbeat(_GROUP, member.name, random.choice([0, 1, -1]), ["~orders"])
            case 1:
                fields: Fields = {
                    "group_id": _GROUP,
                    "session_timeout_ms": 30_000,
                    "rebalance_timeout_ms": 30_000,
                    "member_id": "",  # with another one, Apache Kafka drops an empty group
                    "group_instance_id": None,
                    "protocol_type": "consumer",
                    "protocols": [{"name": "range", "metadata": {"subscription": ["~orders"]}}],
                }
                return Ask("JOIN_GROUP", 9, fields)
            case 2:
                fields = {
                    "group_id": _GROUP,
                    "generation_id": epoch(_GROUP, member.name),
                    "member_id": member.name,
                    "group_instance_id": member.instance,
                }
                return Ask("HEARTBEAT", 4, fields)
            case 3:
                fields = {
                    "group_id": _GROUP,
                    "generation_id": epoch(_GROUP, member.name),
                    "member_id": member.name,
                    "group_instance_id": member.instance,
                    "protocol_type": "consumer",
                    "protocol_name": "range",
                    "assignments": [],
                }
                return Ask("SYNC_GROUP", 5, fields)
            case _:
                one = {"member_id": random.choice([member.name, "~nobody"]), "group_instance_id": None}
                by_instance = {"member_id": "", "group_instance_id": random.choice(_INSTANCES)}
                both = one | {"group_instance_id": random.choice(_INSTANCES)}
                choices = [[one], [by_instance], [one, by_instance], [both], [by_instance, by_instance], []]
                members = random.choice(choices)
                return Ask("LEAVE_GROUP", random.randrange(3, 6), {"group_id": _GROUP, "members": members})

    # offsets

    def _commit(self, member: _Member) -> Scenario:
        random = self.random
        topics = [
            {
                "name": topic,
                "topic_id": random.choice(["#" + topic[1:]] * 8 + [UNKNOWN_ID, NO_ID]),
                "partitions": [
                    {
                        "partition_index": index,
                        "committed_offset": random.choice([0, 1, 5]),
                        "committed_leader_epoch": random.choice([-1, 0]),
                        "committed_metadata": random.choice([None, "", "note"]),
                    }
                    for index in random.choices([0, 0, 1, 9], k=random.choice([1, 1, 2]))
                ],
            }
            for topic in some(random, _TOPICS[:2]) or ["~orders"]
        ]
        who, at = random.choice(
            [(member.name, epoch(_GROUP, member.name))] * 8
            + [
                (member.name, epoch(_GROUP, member.name, -1)),
                (member.name, epoch(_GROUP, member.name, 1)),
                (member.name, -1),
                ("~nobody", 1),
                ("", -1),
                ("", 3),
            ]
        )
        if random.random() < 0.3:
            yield from self._commit_in_transaction(member, who, at, topics)
            return
        fields = {
            "group_id": _GROUP,
            "generation_id_or_member_epoch": at,
            "member_id": who,
            "group_instance_id": random.choice([None, member.instance]),
            "topics": topics,
        }
        yield Ask("OFFSET_COMMIT", random.choice([7, 8, 9, 9, 10, 10]), fields)

    def _commit_in_transaction(self, member: _Member, who: str, at: Any, topics: list[Fields]) -> Scenario:
        random = self.random
        if not self.has_producer or random.random() < 0.2:
            self.has_producer = True
            yield initialize(_PRODUCER, version=4)
        own = {
            "transactional_id": _PRODUCER,
            "producer_id": id_of(_PRODUCER),
            "producer_epoch": epoch_of(_PRODUCER),
        }
        yield Ask("ADD_OFFSETS_TO_TXN", 3, own | {"group_id": _GROUP})
        fields = own | {
            "group_id": _GROUP,
            "generation_id": at,
            "member_id": who,
            "group_instance_id": random.choice([None, member.instance]),
            "topics": topics,
        }
        yield Ask("TXN_OFFSET_COMMIT", random.choice([3, 4, 6] if self.newest else [3, 4]), fields)
        if random.random() < 0.7:
            yield end(_PRODUCER, commit=random.random() < 0.6, version=4)

    def _fetch(self, member: _Member) -> Ask:
        random = self.random
        named = [
            {
                "name": topic,
                "topic_id": "#" + topic[1:],
                "partition_indexes": random.choice([[0], [0, 1], [9], []]),
            }
            for topic in some(random, _TOPICS[:3])
        ]
        who, at = random.choice(
            [(member.name, epoch(_GROUP, member.name))] * 6
            + [
                (member.name, epoch(_GROUP, member.name, -1)),
                (member.name, epoch(_GROUP, member.name, 1)),
                ("~nobody", 1),
                (None, -1),
                ("", -1),
                (None, 3),
            ]
        )
        asked = {
            "group_id": _GROUP,
            "member_id": who,
            "member_epoch": at,
            "topics": None if random.random() < 0.3 else named,
        }
        fields = {
            "group_id": _GROUP,
            "topics": [
                {"name": topic["name"], "partition_indexes": topic["partition_indexes"]} for topic in named
            ],
            "groups": [asked],
            "require_stable": random.random() < 0.5,
        }
        return Ask("OFFSET_FETCH", random.choice([7, 8, 9, 9, 10, 10]), fields)


def _delete_offsets(random: Random) -> Ask:
    topics = [
        {
            "name": topic,
            "partitions": [{"partition_index": index} for index in random.choice([[0], [0, 1], [9]])],
        }
        for topic in some(random, _TOPICS)
    ]
    return Ask("OFFSET_DELETE", 0, {"group_id": _GROUP, "topics": topics})


def _groups(random: Random) -> list[str]:
    return random.choice([[_GROUP]] * 5 + [[_GROUP, _GROUP], [_GROUP, "~shop"], [random.choice(NAMES)], []])


def _describe(random: Random) -> Ask:
    operations = {"include_authorized_operations": random.random() < 0.3}
    if random.random() < 0.15:
        return Ask("DESCRIBE_GROUPS", random.randrange(3, 7), {"groups": _groups(random), **operations})
    if random.random() < 0.1:
        return Ask("SHARE_GROUP_DESCRIBE", 1, {"group_ids": _groups(random), **operations})
    return Ask("CONSUMER_GROUP_DESCRIBE", random.randrange(2), {"group_ids": _groups(random), **operations})


def _list(random: Random) -> Ask:
    states = random.choice([[], ["Stable"], ["Reconciling", "assigning"], ["Empty", "Dead"]])
    return Ask("LIST_GROUPS", random.randrange(4, 6), {"states_filter": states, "types_filter": []})
