"""Members of classic groups in every version: they join, sync, beat, commit, leave, well and badly."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.wire.families.common import (
    NAMES,
    UNKNOWN_ID,
    create_topics,
    some,
    weighted,
)
from tests.differential.wire.names import NO_ID
from tests.differential.wire.script import Answer, Ask, Fields, Restart, Scenario, Sleep, Stage

_GROUP = "~club"
_CONNECTIONS = ["m1", "m2", "m3", "m4", "m5"]
_INSTANCES = ["~desk-1", "~desk-2"]
_LONG_MS = 900_000
"""No timeout comes to pass by chance, on a busy machine either."""
_MEMBER_ID_REQUIRED = 79
_GONE = (25, 82)
"""UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
_ORDERS = {"subscription": ["~orders"]}
_METADATA = [
    {"subscription": ["~orders", "~bills"]},
    {"hex": ""},
    {"hex": "00"},
    {"hex": "000100000001000161"},
]
_NAMES = ["range", "sticky", "cooperative"]
_TOPICS = ["~orders", "~bills", "~orders", "~nowhere"]
_STEPS = {
    "join": 12,
    "sync": 12,
    "heartbeat": 6,
    "leave": 4,
    "remove": 2,
    "commit": 6,
    "fetch": 5,
    "delete offsets": 3,
    "describe": 5,
    "list": 2,
    "delete": 1,
    "bad join": 2,
    "other protocol": 1,
}


def scenario(random: Random, stage: Stage) -> Scenario:
    """Some members of one group, dynamic and static ones."""
    yield create_topics(orders=2, bills=1)
    life = _Life(random)
    for _ in range(random.randrange(30, 60)):
        yield from life.step()
    if random.random() < 0.03:
        yield from life.silence()
    if stage.restarts and random.random() < 0.03:
        yield from life.restart()
        for _ in range(20):
            yield from life.step()


class _Member:
    """A client on a connection, and what it was told."""

    def __init__(self, connection: str, instance: str | None) -> None:
        self.connection = connection
        self.instance = instance
        self.id = ""
        self.generation = -1
        self.is_expected = False
        self.waits_for = ""
        self.asked_as = ""
        """The id in its last JoinGroup."""


class _Life:
    def __init__(self, random: Random) -> None:
        self.random = random
        count = random.choice([1, 2, 2, 3, 5])
        self.members = [
            _Member(connection, random.choice([None, None, *_INSTANCES]))
            for connection in _CONNECTIONS[:count]
        ]
        self.leader = ""
        self.joined: set[str] = set()
        """Ids of who may be in the group: a client has several where it joined anew."""
        self.assigned: list[str] = []
        self.protocol = "range"
        self.metadata = random.choice([_ORDERS, _ORDERS, *_METADATA])
        self.kind = weighted(random, {"consumer": 6, "connect": 1, "~kind": 1})

    def step(self) -> Scenario:
        random = self.random
        member = random.choice(self.members)
        match weighted(random, _STEPS):
            case "join":
                if not member.waits_for:
                    yield from self._join(member)
            case "sync":
                waiting = [each for each in self.members if not each.waits_for and each.generation >= 0]
                for each in random.sample(waiting, len(waiting)):
                    yield from self._sync(each)
            case "heartbeat":
                yield self._heartbeat(member)
            case "leave":
                if not self._must_stay(member.id, member.instance):
                    yield from self._leave(member)
            case "remove":
                yield self._remove()
                yield from self._answers()
            case "commit":
                yield self._commit(member)
            case "fetch":
                yield self._fetch(member)
            case "delete offsets":
                yield self._delete_offsets()
            case "describe":
                yield self._describe()
            case "list":
                yield self._list()
            case "delete":
                yield Ask("DELETE_GROUPS", random.randrange(3), {"groups_names": [_GROUP]})
            case "bad join":
                if not member.waits_for:
                    yield from self._join(member, **self._wrong())
            case "other protocol":
                others_are_in = any(each.generation >= 0 and not each.waits_for for each in self.members)
                yield _new_protocol(random, others_are_in=others_are_in)

    def _must_stay(self, member_id: str, instance: str | None) -> bool:
        """Whether the brokers would go on differently without a member: it may be the leader of several, and
        a hash table has the next one.
        """
        # Apache Kafka never answers a request that waits for an assignment if its member leaves
        if any(each.waits_for == "sync" for each in self.members):
            return True
        joining = sum(each.waits_for == "join" and each.asked_as not in self.joined for each in self.members)
        return len(self.joined) + joining > 2 and (
            member_id == self.leader or (instance is not None and self.leader.startswith(f"{instance}-"))
        )

    def silence(self) -> Scenario:
        """Members whose time runs out."""
        joining = self._joining("") | {"session_timeout_ms": 2000, "rebalance_timeout_ms": 2000}
        joining |= {"group_id": "~silent", "group_instance_id": self.random.choice([None, *_INSTANCES])}
        answer = yield Ask("JOIN_GROUP", 3 if joining["group_instance_id"] is None else 5, joining, "silent")
        yield _describe("~silent", 6)
        if isinstance(answer, dict) and answer["error_code"] == 0 and self.random.random() < 0.6:
            syncing = {
                "group_id": "~silent",
                "generation_id": answer["generation_id"],
                "member_id": answer["member_id"],
                "assignments": [{"member_id": answer["member_id"], "assignment": {"hex": "07"}}],
            }
            yield Ask("SYNC_GROUP", 3, syncing, "silent")
        yield Sleep(5000)
        yield _describe("~silent", 6)
        yield _describe("~silent", 5)

    def restart(self) -> Scenario:
        yield Restart()
        for member in self.members:
            member.waits_for = ""
        yield _describe(_GROUP, 6)

    # joining

    def _joining(self, member_id: str) -> Fields:
        random = self.random
        names = (
            random.sample(_NAMES, random.choice([1, 2, 3])) if random.random() < 0.3 else ["range", "sticky"]
        )
        return {
            "group_id": _GROUP,
            "session_timeout_ms": _LONG_MS,
            "rebalance_timeout_ms": _LONG_MS,
            "member_id": member_id,
            "group_instance_id": None,
            "protocol_type": self.kind,
            "protocols": [{"name": name, "metadata": self.metadata} for name in names],
            "reason": random.choice([None, "", "because"]),
        }

    def _wrong(self) -> Fields:
        random = self.random
        choices: dict[str, list[Any]] = {
            "group_id": ["", "~other", *NAMES],
            "session_timeout_ms": [0, -1, 999, 1000, 1_800_000, 1_800_001],
            "member_id": ["~nobody", "x", ""],
            "group_instance_id": ["~desk-1", "~desk-9", "~" + "x" * 250, "a b", ".."],
            "protocol_type": ["", "other", "consumer", "connect"],
            "protocols": [
                [],
                [{"name": "", "metadata": {"hex": ""}}],
                [{"name": "only", "metadata": {"hex": "00"}}],
            ],
        }
        return {
            name: random.choice(choices[name])
            for name in random.sample(list(choices), random.choice([1, 1, 2]))
        }

    def _join(self, member: _Member, **wrong: Any) -> Scenario:
        random = self.random
        version = (
            random.choice([random.randrange(10), 9, 9])
            if member.instance is None
            else random.randrange(5, 10)
        )
        if "group_instance_id" in wrong:
            version = max(version, 5)
        fields = self._joining(member.id if random.random() < 0.93 else "")
        fields |= {"group_instance_id": member.instance if version >= 5 else None} | wrong
        yield Ask("JOIN_GROUP", version, fields, member.connection, later=True)
        member.waits_for, member.asked_as = "join", fields["member_id"]
        yield from self._answers()
        if member.is_expected and not member.waits_for:
            member.is_expected = False
            if random.random() < 0.25:
                return
            if random.random() < 0.05:
                yield from self._leave(member)
                return
            fields = self._joining(member.id) | {"group_instance_id": None}
            yield Ask("JOIN_GROUP", version, fields, member.connection, later=True)
            member.waits_for, member.asked_as = "join", fields["member_id"]
            yield from self._answers()

    def _answers(self) -> Scenario:
        """Whoever is answered by now; the leader, who is told of all others, at last."""
        while True:
            waiting = [each for each in self.members if each.waits_for]
            waiting.sort(key=lambda each: each.id == self.leader)
            before = len(waiting)
            for member in waiting:
                answer = yield Answer(member.connection)
                if answer is not None:
                    self._told(member, answer)
            if len([each for each in self.members if each.waits_for]) == before:
                return

    def _told(self, member: _Member, answer: Any) -> None:
        joined, member.waits_for = member.waits_for == "join", ""
        if not isinstance(answer, dict):
            return
        code = answer["error_code"]
        if code in _GONE:
            member.id, member.generation = "", -1
        elif joined and code == _MEMBER_ID_REQUIRED:
            member.id, member.generation = answer["member_id"], -1
            member.is_expected = True
        elif joined and code == 0:
            member.id, member.generation = answer["member_id"], answer["generation_id"]
            self.joined.add(member.id)
            self.protocol = answer["protocol_name"]
            self.leader = answer["leader"]
            if answer["members"]:
                self.assigned = [each["member_id"] for each in answer["members"]]
                self.joined = set(self.assigned)

    def _sync(self, member: _Member) -> Scenario:
        random = self.random
        leads = member.id == self.leader
        given = [
            {"member_id": each, "assignment": {"hex": random.choice(["", "00", "0001", "0a0b"])}}
            for each in (self.assigned if leads or random.random() < 0.05 else [])
        ]
        if random.random() < 0.1:
            given = random.choice(
                [given[1:], [*given, {"member_id": "~nobody", "assignment": {"hex": "01"}}], given * 2]
            )
        fields = {
            "group_id": _GROUP,
            "generation_id": member.generation,
            "member_id": member.id,
            "group_instance_id": member.instance,
            "protocol_type": self.kind,
            "protocol_name": self.protocol,
            "assignments": given,
        }
        if random.random() < 0.1:
            fields |= self._wrong_member(member)
        if random.random() < 0.05:
            fields |= random.choice(
                [
                    {"protocol_type": None},
                    {"protocol_name": None},
                    {"protocol_type": "x"},
                    {"protocol_name": "x"},
                ]
            )
        version = random.choice([random.randrange(6), 5])
        if member.instance is not None and version < 3:
            version = 3
        yield Ask("SYNC_GROUP", version, fields, member.connection, later=True)
        member.waits_for = "sync"
        yield from self._answers()

    # membership

    def _wrong_member(self, member: _Member) -> Fields:
        random = self.random
        choices: dict[str, list[Any]] = {
            "group_id": ["", "~nobody"],
            "generation_id": [member.generation + 1, member.generation - 1, -1, 0, 2**31 - 1],
            "member_id": ["", "~nobody", random.choice(self.members).id],
            "group_instance_id": [None, "~desk-1", "~desk-2", "~desk-9"],
        }
        name = random.choice(list(choices))
        return {name: random.choice(choices[name])}

    def _heartbeat(self, member: _Member) -> Ask:
        random = self.random
        fields = {
            "group_id": _GROUP,
            "generation_id": member.generation,
            "member_id": member.id,
            "group_instance_id": member.instance,
        }
        if random.random() < 0.25:
            fields |= self._wrong_member(member)
        return Ask("HEARTBEAT", random.randrange(3, 5) if member.instance else random.randrange(5), fields)

    def _leave(self, member: _Member) -> Scenario:
        random = self.random
        version = random.randrange(3, 6) if member.instance else random.randrange(6)
        by_instance = member.instance is not None and random.random() < 0.5
        one = {
            "member_id": "" if by_instance else member.id,
            "group_instance_id": member.instance,
            "reason": random.choice([None, "", "done"]),
        }
        yield Ask("LEAVE_GROUP", version, {"group_id": _GROUP, "member_id": member.id, "members": [one]})
        yield from self._answers()
        if random.random() < 0.8 and not member.waits_for:
            member.id, member.generation = "", -1

    def _remove(self) -> Ask:
        """An operator removes members."""
        random = self.random
        everybody: list[Fields] = [
            {"member_id": each.id, "group_instance_id": each.instance} for each in self.members
        ]
        strange: list[Fields] = [
            {"member_id": "", "group_instance_id": None},
            {"member_id": "~nobody", "group_instance_id": None},
            {"member_id": "", "group_instance_id": "~desk-9"},
            {"member_id": "", "group_instance_id": "~desk-1"},
            {"member_id": "~nobody", "group_instance_id": "~desk-1"},
        ]
        may_go = [
            each
            for each in [*everybody, *strange]
            if not self._must_stay(each["member_id"], each["group_instance_id"])
        ]
        members = random.choices(may_go, k=random.choice([0, 1, 1, 2, 3])) if may_go else []
        group = random.choice([_GROUP] * 8 + ["", "~nobody"])
        return Ask("LEAVE_GROUP", random.randrange(3, 6), {"group_id": group, "members": members})

    # offsets

    def _commit(self, member: _Member) -> Ask:
        random = self.random
        version = random.randrange(2, 11)
        notes = [None, "", "note", "x" * 4096, "x" * 4097]
        topics = [
            {
                "name": topic,
                "topic_id": random.choice([UNKNOWN_ID, NO_ID, "#" + topic[1:]])
                if random.random() < 0.2
                else "#" + topic[1:],
                "partitions": [
                    {
                        "partition_index": random.choice([0, 0, 1, 9, -1]),
                        "committed_offset": random.choice([0, 1, 5, 100, -1]),
                        "committed_leader_epoch": random.choice([-1, -1, 0, 3]),
                        "committed_metadata": random.choice(notes),
                    }
                    for _ in range(random.choice([1, 1, 1, 2, 0]))
                ],
            }
            for topic in some(random, _TOPICS[1:])
        ]
        fields: Fields = {
            "group_id": _GROUP,
            "generation_id_or_member_epoch": member.generation,
            "member_id": member.id,
            "group_instance_id": member.instance if version >= 7 else None,
            "retention_time_ms": random.choice([-1, 100_000]),
            "topics": topics,
        }
        if random.random() < 0.3:
            wrong = self._wrong_member(member)
            if "generation_id" in wrong:
                wrong = {"generation_id_or_member_epoch": wrong["generation_id"]}
            if version < 7:
                wrong.pop("group_instance_id", None)
            if wrong.get("group_id") == "":
                wrong = {}  # the group with the empty name would outlive its script
            fields |= wrong
        if random.random() < 0.2:
            fields |= {"generation_id_or_member_epoch": -1, "member_id": ""}
        if fields["generation_id_or_member_epoch"] < 0:
            for each in (each for topic in topics for each in topic["partitions"]):
                # a group with only refused commits appears once something is written
                each["committed_metadata"] = (each["committed_metadata"] or "")[:4096]
        return Ask("OFFSET_COMMIT", version, fields)

    def _fetch(self, member: _Member) -> Ask:
        random = self.random
        version = random.randrange(1, 11)

        def topics() -> list[Fields] | None:
            if version >= 2 and random.random() < 0.3:
                return None
            indexes = random.choices([0, 0, 1, 9, -1], k=random.choice([1, 1, 2, 0]))
            return [{"name": topic, "partition_indexes": indexes} for topic in some(random, _TOPICS[1:])]

        def with_ids(asked: list[Fields] | None) -> list[Fields] | None:
            return asked and [
                each | {"topic_id": random.choice(["#" + each["name"][1:]] * 8 + [UNKNOWN_ID, NO_ID])}
                for each in asked
            ]

        groups = [
            {
                "group_id": random.choice([_GROUP] * 6 + ["~nobody", ""]),
                "member_id": random.choice([None, None, None, "", member.id, "~nobody"]),
                "member_epoch": random.choice([-1, -1, 0, 9]),
                "topics": with_ids(topics()),
            }
            for _ in range(random.choice([1, 1, 1, 2, 0]))
        ]
        fields = {
            "group_id": random.choice([_GROUP] * 6 + ["~nobody", ""]),
            "topics": topics(),
            "groups": list({each["group_id"]: each for each in groups}.values()),
            "require_stable": random.random() < 0.5,
        }
        if version < 7:
            del fields["require_stable"]
        return Ask("OFFSET_FETCH", version, fields)

    def _delete_offsets(self) -> Ask:
        random = self.random
        topics = [
            {
                "name": topic,
                "partitions": [
                    {"partition_index": index}
                    for index in random.choices([0, 0, 1, 9, -1], k=random.choice([1, 1, 2, 0]))
                ],
            }
            for topic in some(random, _TOPICS[1:])
        ]
        group = random.choice([_GROUP] * 8 + ["~nobody", ""])
        return Ask("OFFSET_DELETE", 0, {"group_id": group, "topics": topics})

    # descriptions

    def _describe(self) -> Ask:
        return _describe(self.random.choice([_GROUP, _GROUP, _GROUP, "~other"]), self.random.randrange(7))

    def _list(self) -> Ask:
        filters: Fields = {"states_filter": [], "types_filter": []}
        return Ask("LIST_GROUPS", self.random.randrange(6), filters)


def _describe(group: str, version: int) -> Ask:
    return Ask("DESCRIBE_GROUPS", version, {"groups": [group], "include_authorized_operations": False})


def _new_protocol(random: Random, *, others_are_in: bool) -> Ask:
    """Return a member of the consumer protocol in the same group; it would take an empty one over."""
    return Ask(
        "CONSUMER_GROUP_HEARTBEAT",
        1,
        {
            "group_id": _GROUP,
            "member_id": "~new",
            "member_epoch": random.choice([-1, 1, 3, 0] if others_are_in else [-1, 1, 3]),
            "instance_id": None,
            "rack_id": None,
            "rebalance_timeout_ms": 5000,
            "subscribed_topic_names": ["~orders"],
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": [],
        },
    )
