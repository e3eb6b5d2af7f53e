"""A client without permissions: only its request is read, and it does not learn what exists."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest
from tests.harness import blocking
from tests.harness.batches import batch
from tests.harness.plausible import SETTINGS, Names, fields, message, url_safe, variants
from tests.harness.running import Client, RunningBroker

import sharecore
from sharecore.broker.handlers import SERVED, TELEMETRY
from sharecore.errors import ErrorCode
from sharecore.protocol import ApiKey

APIS = {**SERVED, **TELEMETRY}
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_LISTED = (ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER, ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS)
_STORAGE = f"{Path(sharecore.__file__).parent}/storage/"
_LOOK_UPS = {"get", "by_id", "names", "log", "_written", "__iter__", "__len__", "__contains__", "<genexpr>"}
"""Functions of the storage that list existing objects from memory."""
_REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_NEEDS_NO_RIGHT = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}
_OTHERS: dict[ApiKey, set[int]] = {
    # known from the request itself: a session that was never opened, an ID in a version without IDs
    ApiKey.FETCH: {0, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_ID},
    ApiKey.METADATA: {0, ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_ID},
    ApiKey.PRODUCE: {ErrorCode.UNKNOWN_TOPIC_ID},
    ApiKey.DELETE_TOPICS: {ErrorCode.UNKNOWN_TOPIC_ID},
    ApiKey.FIND_COORDINATOR: {ErrorCode.INVALID_REQUEST},
    ApiKey.ALTER_CONFIGS: {ErrorCode.INVALID_REQUEST},
    ApiKey.SASL_HANDSHAKE: {ErrorCode.ILLEGAL_SASL_STATE},
    ApiKey.SASL_AUTHENTICATE: {ErrorCode.ILLEGAL_SASL_STATE},
    ApiKey.PUSH_TELEMETRY: {ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.THROTTLING_QUOTA_EXCEEDED},
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: {0, ErrorCode.THROTTLING_QUOTA_EXCEEDED},
    **{api: {0} for api in _LISTED},
    ApiKey.API_VERSIONS: {0, ErrorCode.REBOOTSTRAP_REQUIRED},
}
"""Further codes in responses, as on Apache Kafka (`tests/differential/access`)."""
_TELL_OF_IDS = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.DELETE_TOPICS)
_LISTS = ("topics", "groups", "results", "transaction_states", "replica_election_results", "responses")
_DRAWN = {"session_id", "throttle_time_ms", "client_instance_id", "subscription_id"}


class Asked(NamedTuple):
    """A request, and its subject."""

    names: Names
    api: ApiKey
    version: int
    message: dict[str, Any]


@pytest.fixture(scope="module")
def broker(home: Path) -> Iterator[RunningBroker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SSL://localhost:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_LOGIN} user_mallory="m";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(home / "broker.pem"),
        "sharecore.ssl.reload.interval.ms": "0",  # no request reads these files, only their watcher
        "sharecore.metrics.listener": "127.0.0.1:0",
        "sharecore.telemetry.enable": "true",
    }
    running = RunningBroker(home / "data", settings).start()
    make_existing(running)
    yield running
    running.stop()


def make_existing(broker: RunningBroker) -> None:
    topic = {"name": "exists-t", "num_partitions": 2, "replication_factor": 1}
    broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000)
    data = [{"name": "exists-t", "partition_data": [{"index": 0, "records": batch([b"x"])}]}]
    broker.ask(ApiKey.PRODUCE, 9, acks=-1, timeout_ms=5000, topic_data=data)
    part = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1}
    committed = [{"name": "exists-t", "partitions": [part]}]
    broker.ask(
        ApiKey.OFFSET_COMMIT, 8, group_id="exists-g", generation_id_or_member_epoch=-1, topics=committed
    )
    broker.ask(
        ApiKey.INIT_PRODUCER_ID, 4, transactional_id="exists-x", transaction_timeout_ms=60_000, producer_id=-1
    )
    credential = {"name": "exists-u", "mechanism": 1, "iterations": 4096}
    credential |= {"salt": b"salt-of-16-bytes", "salted_password": b"p" * 32}
    broker.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, upsertions=[credential])


@pytest.fixture(scope="module")
def existing(broker: RunningBroker, home: Path) -> Names:
    (topic,) = broker.ask(ApiKey.METADATA, 12, topics=[{"name": "exists-t"}]).topics
    return named("exists", topic.topic_id, home)


def named(word: str, topic_id: uuid.UUID, home: Path) -> Names:
    key_store = ("listener.name.ssl.ssl.keystore.location", str(home / "pipe"))
    settings = {**SETTINGS, 4: key_store}
    names = (f"{word}-t", topic_id, f"{word}-g", f"{word}-x", f"{word}-u")
    return Names(*names, "no-such-host.invalid", settings)


@pytest.fixture(scope="module")
def missing(home: Path) -> Names:
    return named("absent", uuid.UUID(int=0xABCD << 64 | 1), home)


def log_in(broker: RunningBroker) -> Client:
    client = Client(broker.broker.listeners["SASL_PLAINTEXT"].port)
    client.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    assert client.ask(ApiKey.SASL_AUTHENTICATE, 1, auth_bytes=b"\0mallory\0m").error_code == 0
    return client


def requests(api: ApiKey, names: Names) -> Iterator[Asked]:
    served = APIS[api]
    for version in range(served.min_version, served.max_version + 1):
        for fixed in variants(api):
            yield Asked(names, api, version, message(api, version, names, fixed))


@contextmanager
def storage_calls(broker: RunningBroker) -> Iterator[list[str]]:
    """Collect calls of the storage on the broker's thread, except those that only list existing objects."""
    called: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_filename.startswith(_STORAGE) and code.co_name not in _LOOK_UPS:
                called.append(f"{code.co_filename}:{code.co_qualname}")
        elif event == "c_call" and type(getattr(argument, "__self__", None)).__name__ in (
            "Store",
            "StoredLog",
        ):
            called.append(argument.__qualname__)

    broker.look(lambda _: sys.setprofile(note))
    try:
        yield called
    finally:
        broker.look(lambda _: sys.setprofile(None))


def written(home: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in (home / "data").rglob("*") if each.is_file()}


def groups(broker: RunningBroker) -> list[str]:
    return broker.look(lambda broker: sorted(each.group_id for each in broker.groups.registry))


def codes(value: Any) -> Iterator[int]:
    """All error codes of a response."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, each in zip(value._fields, value, strict=True):
            if name == "error_code":
                yield each
            else:
                yield from codes(each)
    elif isinstance(value, list):
        for each in value:
            yield from codes(each)


def told(value: Any, names: Names) -> Any:
    """Return a response without the requested names and random values."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = zip(value._fields, value, strict=True)
        return {name: told(each, names) for name, each in items if name not in _DRAWN}
    if isinstance(value, list):
        return [told(each, names) for each in value]
    if isinstance(value, str):
        word = names.topic.partition("-")[0]
        return value.replace(word, "NAME").replace(url_safe(names.topic_id), "ID")
    return "ID" if value == names.topic_id else value


def is_empty(answer: Any) -> bool:
    return not any(answer._asdict().get(name) for name in _LISTS)


def tells_the_same(asked: Asked) -> bool:
    """Return whether existing objects get the same response as missing ones.

    Apache Kafka reveals which topic IDs exist, and sometimes asks a client for its metrics.
    """
    by_id = any(path.endswith("topic_id") for path, _ in fields(asked.api, asked.version))
    return not (by_id and asked.api in _TELL_OF_IDS) and asked.api not in TELEMETRY


@pytest.mark.heavy
@pytest.mark.parametrize("api", sorted(APIS), ids=lambda api: api.name)
def test_nothing_but_the_request_is_read(
    broker: RunningBroker, home: Path, existing: Names, missing: Names, api: ApiKey
) -> None:
    """No file, log or address is accessed; nothing is written, no group is created; the response is an
    error or empty.
    """
    client = log_in(broker)
    asked = [*zip(requests(api, existing), requests(api, missing), strict=True)]
    before = written(home), groups(broker)
    answers = []
    with blocking.calls_of_others() as blocked, storage_calls(broker) as called:
        for pair in asked:
            answers += [[client.ask(each.api, each.version, **each.message) for each in pair]]
    assert blocked == []
    assert called == []
    assert (written(home), groups(broker)) == before
    for pair, both in zip(asked, answers, strict=True):
        for each, answer in zip(pair, both, strict=True):
            found, allowed = set(codes(answer)), _REFUSALS | _OTHERS.get(api, set())
            assert found <= allowed, f"{each}\n{answer}"
            assert found - {0} or api in _NEEDS_NO_RIGHT or is_empty(answer), f"{each}\n{answer}"
        if tells_the_same(pair[0]):
            assert told(both[0], existing) == told(both[1], missing), pair[0]
    client.close()
