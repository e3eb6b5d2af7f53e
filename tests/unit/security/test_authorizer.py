from __future__ import annotations

import logging
import sys
from collections import deque
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import pytest

from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.security.acl import (
    CLUSTER_NAME,
    SUPPORTED,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from sharecore.security.acl_selection import AclSelection
from sharecore.security.acls import Acls
from sharecore.security.authorizer import Authorizer, super_users_of
from sharecore.security.principal import Principal
from sharecore.storage import Storage

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
HERE = "10.0.0.1"


def entry(
    operation: Operation = Operation.READ,
    name: str = "t",
    *,
    pattern: PatternType = LITERAL,
    principal: str = "User:alice",
    host: str = "*",
    permission: Permission = Permission.ALLOW,
    kind: ResourceType = ResourceType.TOPIC,
) -> Acl:
    return Acl(kind, name, pattern, principal, host, operation, permission)


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    storage = Storage(tmp_path)
    yield storage
    storage.close()


class Guard:
    def __init__(self, storage: Storage, **options: Any) -> None:
        self.storage, self.acls = storage, Acls(storage.catalog)
        self.authorizer = Authorizer(self.acls, {Principal("User", "root")}, **options)

    def add(self, *acls: Acl) -> None:
        self.acls.change(acls)
        self.storage.sync()

    def remove(self, *acls: Acl) -> None:
        self.acls.change(deletes=acls)
        self.storage.sync()

    def may(
        self, operation: Operation = Operation.READ, name: str = "t", who: Principal = ALICE, host: str = HERE
    ) -> bool:
        return self.authorizer.allows(who, host, operation, ResourceType.TOPIC, name)


@pytest.fixture
def guard(storage: Storage) -> Guard:
    return Guard(storage)


def test_what_nothing_allows_is_denied(guard: Guard) -> None:
    assert not guard.may()
    assert guard.may(who=Principal("User", "root"))
    guard.add(entry())
    assert guard.may()
    assert not guard.may(who=BOB)
    assert not guard.may(name="tt")
    assert not guard.may(Operation.WRITE)
    guard.remove(entry())
    assert not guard.may()


def test_patterns(guard: Guard) -> None:
    guard.add(entry(name="op", pattern=PREFIXED), entry(name="*", principal="User:bob"))
    assert guard.may(name="op")
    assert guard.may(name="open")
    assert not guard.may(name="o")
    assert guard.may(name="anything", who=BOB)
    guard.add(entry(name="open-not", pattern=PREFIXED, permission=Permission.DENY))
    assert guard.may(name="open")
    assert not guard.may(name="open-not-this")
    guard.remove(entry(name="open-not", pattern=PREFIXED, permission=Permission.DENY))
    assert guard.may(name="open-not-this")


def test_who_denies_wins(guard: Guard) -> None:
    guard.add(entry(Operation.ALL), entry(permission=Permission.DENY, principal="User:*"))
    assert not guard.may()
    assert guard.may(Operation.WRITE)
    # denying reading does not deny what reading implies
    assert guard.may(Operation.DESCRIBE)


@pytest.mark.parametrize(
    ("given", "implied"),
    [
        (Operation.READ, {Operation.READ, Operation.DESCRIBE}),
        (Operation.WRITE, {Operation.WRITE, Operation.DESCRIBE}),
        (Operation.DELETE, {Operation.DELETE, Operation.DESCRIBE}),
        (Operation.ALTER, {Operation.ALTER, Operation.DESCRIBE}),
        (Operation.CREATE, {Operation.CREATE}),
        (Operation.ALTER_CONFIGS, {Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS}),
        (Operation.ALL, set(SUPPORTED[ResourceType.TOPIC])),
    ],
)
def test_what_a_right_implies(guard: Guard, given: Operation, implied: set[Operation]) -> None:
    guard.add(entry(given))
    bits = guard.authorizer.operations(ALICE, HERE, ResourceType.TOPIC, "t")
    assert bits == sum(1 << operation for operation in implied)


def test_hosts(guard: Guard) -> None:
    guard.add(entry(host=HERE))
    assert guard.may()
    assert not guard.may(host="10.0.0.2")


def test_resources_without_entries_may_be_open(storage: Storage) -> None:
    """allow.everyone.if.no.acl.found"""
    guard = Guard(storage, open_without_acls=True)
    assert guard.may()
    guard.add(entry(principal="User:bob"))
    assert not guard.may()
    assert guard.may(name="other")


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([entry(Operation.WRITE)], True),
        ([entry(Operation.READ)], False),
        ([entry(Operation.WRITE), entry(Operation.ALL, permission=Permission.DENY)], False),
        ([entry(Operation.WRITE), entry(Operation.WRITE, "*", permission=Permission.DENY)], False),
        (
            [
                entry(Operation.WRITE, "ab", pattern=PREFIXED),
                entry(Operation.WRITE, "a", pattern=PREFIXED, permission=Permission.DENY),
            ],
            False,
        ),
        (
            [
                entry(Operation.WRITE, "a", pattern=PREFIXED),
                entry(Operation.WRITE, "ab", pattern=PREFIXED, permission=Permission.DENY),
            ],
            True,
        ),
        (
            [entry(Operation.WRITE, "*"), entry(Operation.WRITE, "a", permission=Permission.DENY)],
            True,
        ),
    ],
)
def test_whether_some_topic_may_be_written_to(guard: Guard, acls: list[Acl], allowed: bool) -> None:
    guard.add(*acls)
    found = guard.authorizer.allows_some(ALICE, HERE, Operation.WRITE, ResourceType.TOPIC)
    assert found is allowed


def test_filters(guard: Guard) -> None:
    literal, prefixed, everything = entry(name="abc"), entry(name="ab", pattern=PREFIXED), entry(name="*")
    cluster = entry(Operation.ALTER, CLUSTER_NAME, kind=ResourceType.CLUSTER)
    guard.add(literal, prefixed, everything, cluster)
    select = guard.acls.select
    assert select(AclFilter()) == [literal, prefixed, everything, cluster]
    assert select(AclFilter(ResourceType.CLUSTER)) == [cluster]
    assert select(AclFilter(name="abc", pattern_type=LITERAL)) == [literal]
    assert select(AclFilter(name="abc", pattern_type=PatternType.MATCH)) == [literal, prefixed, everything]
    assert select(AclFilter(name="ab")) == [prefixed]
    assert select(AclFilter(operation=Operation.ALTER)) == [cluster]
    assert select(AclFilter(principal="User:bob")) == []


def test_entries_outlive_the_store_being_closed(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    Guard(storage).add(entry(name='a "quoted", ünusual name'), entry(name="x", pattern=PREFIXED))
    storage.close()
    again = Storage(tmp_path)
    guard = Guard(again)
    assert len(guard.acls) == 2
    assert guard.may(name="xyz")
    again.close()


def test_super_users() -> None:
    config = BrokerConfig.from_properties({"super.users": "User:CN=a,O=b; User:bob"})
    assert super_users_of(config) == {Principal("User", "CN=a,O=b"), BOB}
    with pytest.raises(ConfigError, match=r"super\.users=bob"):
        super_users_of(BrokerConfig.from_properties({"super.users": "bob"}))
    with pytest.raises(ConfigError, match=r"authorizer\.class\.name"):
        BrokerConfig.from_properties({"authorizer.class.name": "org.example.Mine"})


def each(guard: Guard, *names: str, quiet: bool = False) -> list[str]:
    """The topics that alice may read, as in a request."""
    allowed: list[Container[str]] = []

    def ask() -> Iterator[None]:
        about = ALICE, HERE, Operation.READ, ResourceType.TOPIC
        allowed.append((yield from guard.authorizer.allows_each(*about, names, quiet=quiet)))

    deque(ask(), 0)
    return [name for name in dict.fromkeys(names) if name in allowed[0]]


def test_many_resources_are_decided_as_each_is(guard: Guard) -> None:
    guard.add(entry(), entry(name="p-", pattern=PREFIXED), entry(name="p-no", permission=Permission.DENY))
    names = ["t", "p-1", "p-no", "other", "t"]
    assert each(guard, *names) == [name for name in dict.fromkeys(names) if guard.may(name=name)]
    guard.remove(entry())
    assert each(guard, *names) == ["p-1"]


def test_a_name_that_repeats_has_one_line(guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sharecore.audit"):
        assert each(guard, *["t"] * 300_000) == []
        assert each(guard, "quiet", quiet=True) == []
    assert [record.getMessage().split()[3:] for record in caplog.records] == [
        ["resource=TOPIC:t", "decision=denied"]
    ]


def test_a_request_with_many_names_has_a_hundred_lines(
    guard: Guard, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "sharecore.audit"):
        each(guard, *map(str, range(20_000)))
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 100
    assert lines[0].endswith("resource=TOPIC:0 decision=denied")
    assert lines[-1].endswith("resource=TOPIC:99 decision=denied more=19900")


def test_what_is_cached_is_bounded_in_bytes(storage: Storage) -> None:
    """sharecore.authorizer.cache.bytes.max"""
    guard = Guard(storage)
    guard.authorizer = Authorizer(guard.acls, cache_bytes_max=1_000_000)
    guard.add(entry())
    for number in range(100):
        each(guard, "t", *(f"{number}-{each}".ljust(32_000, "x") for each in range(10)), quiet=True)
        assert cached_bytes(guard.authorizer) <= 1_000_000
    assert guard.may()


def cached_bytes(authorizer: Authorizer) -> int:
    return sum(sys.getsizeof(name) for *_, name in authorizer._decisions)


def test_many_filters_select_what_each_selects_alone(guard: Guard) -> None:
    principals, hosts = ("User:ann", "User:bob"), ("*", "10.0.0.1")
    some = [
        Acl(kind, name, pattern, principal, host, operation, permission)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        for name in ("t", "tt", "*")
        for pattern in (LITERAL, PREFIXED)
        for principal in principals
        for host in hosts
        for operation in (Operation.READ, Operation.ALL)
        for permission in Permission
        if permission > Permission.ANY
    ]
    guard.add(*some)
    filters = [
        AclFilter(kind, name, pattern, principal, host, operation, permission)
        for kind in (ResourceType.ANY, ResourceType.TOPIC, ResourceType.CLUSTER)
        for name in (None, "t", "ttt", "*", "x")
        for pattern in (PatternType.ANY, PatternType.MATCH, LITERAL, PREFIXED)
        for principal in (None, "User:bob")
        for host in (None, "*")
        for operation in (Operation.ANY, Operation.READ)
        for permission in (Permission.ANY, Permission.DENY)
    ]
    selection = AclSelection(some, guard.acls._lengths)
    looked_at = sum(1 for wanted in filters for _ in selection.prepare(wanted))
    for wanted in filters:
        found = selection.select(wanted)
        assert sorted(found) == sorted(guard.acls.select(wanted)), wanted
        assert len(set(found)) == len(found)
    assert looked_at <= 128 * len(some), "each combination of fields looks at each entry once"
    again = sum(1 for wanted in filters * 10 for _ in selection.prepare(wanted))
    assert again == 0


def test_a_filter_with_a_name_selects_as_one_without_an_index(guard: Guard) -> None:
    entries = [
        entry(name=name, pattern=pattern, kind=kind)
        for name in ("t", "tt", "*", "other")
        for pattern in (LITERAL, PREFIXED)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
    ]
    guard.add(*entries)
    for kind in (ResourceType.ANY, ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER):
        for name in (None, "t", "tt", "ttt", "*", "nothing"):
            for pattern in (PatternType.ANY, PatternType.MATCH, LITERAL, PREFIXED):
                wanted = AclFilter(kind, name, pattern)
                expected = [each for each in entries if wanted.matches(each)]
                found = guard.acls.select(wanted)
                assert sorted(found) == sorted(expected), wanted
                assert len(set(found)) == len(found)
