"""Every request of every principal on both brokers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.differential.access.brokers import CLOSED, Guarded
from tests.differential.access.case import CONSUMERS, GROUPS, SHARES, TOPICS, Case, Ids
from tests.differential.access.known import explain
from tests.differential.access.masks import masked
from tests.differential.access.principals import principals
from tests.differential.wire.compare import Difference, differences

from sharecore.broker.handlers import SERVED, TELEMETRY
from sharecore.protocol import ApiKey
from sharecore.security.acl import Acl
from sharecore.tier.apis import OFFERED as TIER_OWN
from sharecore.tier.forward.routes import routes

OFFERED: dict[str, Iterable[ApiKey]] = {
    "apache": list(ApiKey),
    "sharecore": [*SERVED, *TELEMETRY],
    # requests that name brokers are not forwarded
    "node": [*TIER_OWN, *routes(), *TELEMETRY],
}
"""By the kind of broker the APIs that are compared."""
_OF_BROKERS = (4, 8)
"""Types of resources that have the id of a broker for a name."""
_SECONDS_MAX = 20.0
_LONG_LIVED: dict[str, Any] = {
    "member_epoch": 0,
    "instance_id": None,
    "rack_id": None,
    "rebalance_timeout_ms": 3_600_000,
    "subscribed_topic_regex": None,
    "server_assignor": None,
    "topic_partitions": [],
}


@dataclass
class Seen:
    """What a run came to."""

    cases: int = 0
    apis: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)

    def add(self, other: Seen) -> None:
        """Count another run in."""
        self.cases += other.cases
        self.apis += other.apis
        self.known += other.known
        self.differing += other.differing


@contextmanager
def guarded(
    home: Path, users: Iterable[str], kinds: tuple[str, ...] = ("apache", "sharecore")
) -> Iterator[list[Guarded]]:
    """Brokers that are ready, with topics and groups; killed at the end."""
    brokers = [Guarded(home / f"{kind}-{number}", kind, users) for number, kind in enumerate(kinds)]
    try:
        with ThreadPoolExecutor() as at_once:
            list(at_once.map(prepare, brokers))
        yield brokers
    finally:
        for broker in brokers:
            broker.stop()


def prepare(broker: Guarded) -> None:
    """Start a broker, and make what the requests are about."""
    broker.start()
    make_topics(broker, TOPICS)
    for group in GROUPS:
        _until_answered(broker, group)
        for topic in TOPICS:
            part = {
                "partition_index": 0,
                "committed_offset": 0,
                "committed_leader_epoch": -1,
                "committed_metadata": None,
            }
            broker.super(
                ApiKey.OFFSET_COMMIT,
                9,
                group_id=group,
                generation_id_or_member_epoch=-1,
                member_id="",
                group_instance_id=None,
                topics=[{"name": topic, "partitions": [part]}],
            )
    for group in CONSUMERS:
        answer = broker.super(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            1,
            group_id=group,
            member_id="m",
            subscribed_topic_names=list(TOPICS),
            **_LONG_LIVED,
        )
        assert answer.error_code == 0, answer
    for group in SHARES:
        _until(partial(_assigned, broker, group, [0]))
    for name in ("open-x", "shut-x"):
        _until(partial(_begun, broker, name))


def _assigned(broker: Guarded, group: str, epoch: list[int]) -> bool:
    """Whether the member of a share group has its partitions; sends its next heartbeat."""
    answer = broker.super(
        ApiKey.SHARE_GROUP_HEARTBEAT,
        1,
        group_id=group,
        member_id="m",
        member_epoch=epoch[0],
        rack_id=None,
        subscribed_topic_names=list(TOPICS),
    )
    assert answer.error_code == 0, answer
    epoch[0] = answer.member_epoch
    return answer.assignment is not None and len(answer.assignment.topic_partitions) == len(TOPICS)


def _begun(broker: Guarded, name: str) -> bool:
    """Whether a transactional id has a producer; asks for one."""
    found = broker.super(ApiKey.FIND_COORDINATOR, 4, key_type=1, coordinator_keys=[name])
    answer = broker.super(
        ApiKey.INIT_PRODUCER_ID,
        5,
        transactional_id=name,
        transaction_timeout_ms=60000,
        producer_id=-1,
        producer_epoch=-1,
    )
    codes: list[int] = [found.coordinators[0].error_code, answer.error_code]
    return codes == [0, 0]


def allow(broker: Guarded, entries: Mapping[str, list[Acl]]) -> None:
    """Give every principal its rights."""
    creations = [
        {
            "resource_type": acl.resource_type,
            "resource_name": acl.name,
            "resource_pattern_type": acl.pattern_type,
            "principal": acl.principal,
            "host": acl.host,
            "operation": acl.operation,
            "permission_type": acl.permission,
        }
        for some in entries.values()
        for acl in some
    ]
    answer = broker.super(ApiKey.CREATE_ACLS, 3, creations=creations)
    assert {each.error_code for each in answer.results} == {0}, answer
    _until(lambda: len(_bindings(broker)) >= len({tuple(each.values()) for each in creations}))


def play(
    brokers: list[Guarded], cases: list[Case], entries: Mapping[str, list[Acl]], say: Callable[[str], None]
) -> Seen:
    """Sends every case as every principal to both brokers."""
    seen = Seen()
    kinds = {broker.kind for broker in brokers}
    offered = set.intersection(*(set(OFFERED[kind]) for kind in kinds))
    served = [case for case in cases if case.key in offered]
    for user in entries:
        for case in served:
            pair = [_answer(broker, case, user) for broker in brokers]
            found = differences(*pair)
            seen.cases += 1
            seen.apis[case.key.name] += 1
            left = []
            for difference in found:
                name = explain(case, difference, kinds)
                if name is None:
                    left.append(difference)
                else:
                    seen.known[name] += 1
            if left:
                text = _report(case, user, left)
                seen.differing.append(text)
                say(text)
        for broker in brokers:
            broker.close(user)
    return seen


def _report(case: Case, user: str, found: list[Difference]) -> str:
    return "\n".join(
        [f"{case.name} ({case.key.name} v{case.version}) as {user}", *(f"  {each}" for each in found[:12])]
    )


def _answer(broker: Guarded, case: Case, user: str) -> Any:
    names = [name.replace("~", user) for name in case.before]
    if names:
        make_topics(broker, names)
    ids = topic_ids(broker)
    answer = broker.ask(user, case.key, case.version, _addressed(case.fields(ids, user), broker))
    if case.may_create and broker.kind == "apache":
        time.sleep(0.2)  # it creates topics after it has answered
    if case.key in (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.METADATA):
        _remove_topics(broker)
    if case.key in (ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS) and broker.kind == "apache":
        time.sleep(0.05)  # its broker learns of it from its controller
    return CLOSED if answer is CLOSED else masked(case.key, answer, _known_ids(ids, broker), broker)


def _addressed(fields: Any, broker: Guarded) -> Any:
    """Return a request that names the broker it goes to by the broker's own id, where it names one."""
    if isinstance(fields, list):
        return [_addressed(each, broker) for each in fields]
    if not isinstance(fields, dict):
        return fields
    found = {name: _addressed(each, broker) for name, each in fields.items()}
    if found.get("resource_type") in _OF_BROKERS and found.get("resource_name") == "0":
        found["resource_name"] = str(broker.node_id)
    return found


_ids: dict[int, Ids] = {}


def topic_ids(broker: Guarded) -> Ids:
    """Return the ids of all topics."""
    return _ids.setdefault(id(broker), {})


def _known_ids(ids: Ids, broker: Guarded) -> dict[UUID, str]:
    return {topic_id: name for name, topic_id in ids.items()}


def make_topics(broker: Guarded, names: Iterable[str]) -> None:
    """Make topics, and wait until they are known."""
    names = list(names)
    topics = [
        {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        for name in names
    ]
    made = broker.super(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=5000, validate_only=False)
    for each in made.topics:
        assert each.error_code in (0, 36), made
        if not each.error_code:
            topic_ids(broker)[each.name] = each.topic_id
    wanted = [{"topic_id": None, "name": name} for name in names]
    _until(
        lambda: all(
            not each.error_code and all(not part.error_code for part in each.partitions)
            for each in _metadata(broker, wanted)
        )
    )


def _metadata(broker: Guarded, wanted: Any) -> Any:
    return broker.super(
        ApiKey.METADATA,
        12,
        topics=wanted,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    ).topics


def _remove_topics(broker: Guarded) -> None:
    """Delete what a request has left behind."""
    left = [
        each.name
        for each in _metadata(broker, None)
        if each.name not in TOPICS and not each.name.startswith("__")
    ]
    if left:
        topics = [{"name": name, "topic_id": None} for name in left]
        broker.super(ApiKey.DELETE_TOPICS, 6, topics=topics, timeout_ms=5000)
        wanted = [{"topic_id": None, "name": name} for name in left]
        _until(lambda: all(each.error_code for each in _metadata(broker, wanted)))


def _bindings(broker: Guarded) -> list[Any]:
    answer = broker.super(
        ApiKey.DESCRIBE_ACLS,
        3,
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return [acl for resource in answer.resources for acl in resource.acls]


def _until_answered(broker: Guarded, group: str) -> None:
    _until(
        lambda: broker.super(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[group])
        .coordinators[0]
        .error_code
        == 0
        and broker.super(ApiKey.DESCRIBE_GROUPS, 5, groups=[group], include_authorized_operations=False)
        .groups[0]
        .error_code
        == 0
    )


def _until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + _SECONDS_MAX
    while not done():
        assert time.monotonic() < until, "it does not come about"
        time.sleep(0.02)


__all__ = ["Seen", "allow", "guarded", "play", "prepare", "principals"]
