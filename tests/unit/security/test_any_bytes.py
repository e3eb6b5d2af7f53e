"""Whatever bytes a client sends, a mechanism answers or refuses them; any access control entries apply."""

from __future__ import annotations

import asyncio
import base64
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecore.security.acl import (
    IMPLIED_BY,
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from sharecore.security.acls import Acls
from sharecore.security.authorizer import Authorizer
from sharecore.security.plain import Plain
from sharecore.security.principal import Principal
from sharecore.security.sasl import Mechanism, Refused
from sharecore.security.scram import Credential, Credentials, Scram
from sharecore.storage import Storage, StorageOptions


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    with tempfile.TemporaryDirectory() as home, asyncio.Runner() as runner:
        storage = Storage(Path(home), StorageOptions(durability="os"))
        runner.run(_attach(storage))
        yield storage
        storage.close()


async def _attach(storage: Storage) -> None:
    storage.attach(asyncio.get_running_loop())


@pytest.fixture(scope="module")
def mechanisms(storage: Storage) -> list[Mechanism]:
    credentials = Credentials(storage.catalog)
    credential = Credential.of_password("SCRAM-SHA-256", "secret", 4096)
    credentials._found["ann", "SCRAM-SHA-256"] = credential
    return [Plain({"ann": "secret"}), Scram("SCRAM-SHA-256", credentials)]


_PARTS = st.sampled_from(
    [
        b"n,,",
        b"y,,",
        b"p=tls-unique,,",
        b"n=ann",
        b"n=",
        b"r=abc",
        b"c=biws",
        b"p=",
        b",",
        b"=2C",
        b"=",
        b"\0",
        b"ann",
    ]
)
_MESSAGES = st.lists(
    st.one_of(
        st.binary(max_size=200),
        st.lists(_PARTS, max_size=9).map(b"".join),
        st.binary(max_size=40).map(lambda raw: b"c=biws,r=abc,p=" + base64.b64encode(raw)),
    ),
    min_size=1,
    max_size=4,
)


@given(messages=_MESSAGES)
def test_a_mechanism_refuses_and_never_fails(mechanisms: list[Mechanism], messages: list[bytes]) -> None:
    for mechanism in mechanisms:
        exchange = mechanism.start()
        for message in messages:
            if message == b"\0ann\0secret":
                continue
            try:
                exchange.step(message)
            except Refused:
                break
            assert not exchange.complete


_NAMES = st.text("ab*", min_size=1, max_size=3)
_ACLS = st.lists(
    st.builds(
        Acl,
        st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
        _NAMES,
        st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
        st.sampled_from(["User:a", "User:b", "User:*"]),
        st.sampled_from(["*", "1.1.1.1", "2.2.2.2"]),
        st.sampled_from(
            [Operation.ALL, Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.DELETE]
        ),
        st.sampled_from([Permission.ALLOW, Permission.ALLOW, Permission.DENY]),
    ),
    max_size=8,
)


def _counts(acl: Acl, name: str) -> bool:
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.name)
    return acl.name in (name, WILDCARD)


def _allowed(
    acls: list[Acl], user: str, host: str, operation: Operation, kind: ResourceType, name: str
) -> bool:
    """Return a second implementation of the rules, entry by entry."""
    mine = [
        acl
        for acl in acls
        if acl.resource_type == kind
        and _counts(acl, name)
        and acl.principal in (f"User:{user}", "User:*")
        and acl.host in (host, "*")
    ]
    denied = any(
        acl.permission == Permission.DENY and acl.operation in (operation, Operation.ALL) for acl in mine
    )
    implied = (*IMPLIED_BY.get(operation, ()), operation, Operation.ALL)
    return not denied and any(acl.permission == Permission.ALLOW and acl.operation in implied for acl in mine)


@pytest.mark.heavy
@given(
    entries=_ACLS,
    gone=st.sets(st.integers(0, 7)),
    user=st.sampled_from("ab"),
    host=st.sampled_from(["1.1.1.1", "2.2.2.2"]),
    operation=st.sampled_from([Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.DELETE]),
    kind=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    name=_NAMES,
)
def test_entries_count_as_the_rules_say(
    storage: Storage,
    entries: list[Acl],
    gone: set[int],
    user: str,
    host: str,
    operation: Operation,
    kind: ResourceType,
    name: str,
) -> None:
    acls = Acls(storage.catalog)
    for acl in entries:
        acls._add(acl)
    for acl in {acl for index, acl in enumerate(entries) if index in gone}:
        acls._remove(acl)
    left = acls.select(AclFilter())
    assert set(left) == set(entries) - {acl for index, acl in enumerate(entries) if index in gone}
    asked = (Principal("User", user), host, operation, kind)
    assert Authorizer(acls).allows(*asked, name) == _allowed(left, user, host, operation, kind, name)
