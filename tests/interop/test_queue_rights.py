"""Who may set and see a group's queue settings, pause it, and see why its records wait.

Apache Kafka is asked, too, where it has the API: for the settings of a group.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.harness.broker import SHARECORE
from tests.harness.clients import QUIET, configure_group, create_topic, produce, share_consumer, take
from tests.harness.listeners import Listeners
from tests.interop.conftest import KIND

from sharecore.admin import BlockingAdmin
from sharecore.errors import ErrorCode, KafkaError

TOPIC, GROUP, OTHER = "jobs", "workers", "others"
USER, PASSWORD = "clerk", "of-clerk"
PATIENCE_S = 30
_PARTS = (
    *("restype", "name", "resource_pattern_type", "principal", "host"),
    *("operation", "permission_type"),
)
ON_GROUP, ON_TOPIC = (ResourceType.GROUP, GROUP), (ResourceType.TOPIC, TOPIC)
SEES_GROUP = [(*ON_GROUP, AclOperation.DESCRIBE), (*ON_TOPIC, AclOperation.DESCRIBE)]
ours = pytest.mark.skipif(KIND == "apache", reason="settings that Apache Kafka does not have")
Right = tuple[ResourceType, str, AclOperation]


@pytest.fixture(scope="module")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    """Provide two groups, one of which has records that wait, and a user without rights."""
    made = Listeners(tmp_path_factory.mktemp("listeners"), KIND)
    made.start()
    plain = made.address("PLAINTEXT")
    create_topic(plain, TOPIC)
    own = {"share_ordering": "key"} if KIND == "sharecore" else {}
    configure_group(plain, GROUP, share_auto_offset_reset="earliest", **own)
    configure_group(plain, OTHER, share_auto_offset_reset="earliest")
    produce(plain, TOPIC, [b"job"] * 3)
    with share_consumer(plain, GROUP, [TOPIC]) as consumer:
        take(consumer)
    produce(plain, TOPIC, [b"job"] * 3)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    user = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
    admin = everything(made)
    admin.alter_user_scram_credentials([user])[USER].result(PATIENCE_S)
    yield made
    made.kill()


def everything(listeners: Listeners) -> AdminClient:
    """Return a client that may do all."""
    return AdminClient({"bootstrap.servers": listeners.address("PLAINTEXT"), **QUIET})


def settings(listeners: Listeners) -> dict[str, str]:
    """Return the user's settings."""
    names = {"sasl.username": USER, "sasl.password": PASSWORD}
    return listeners.client("SASL_SSL", "SCRAM-SHA-512") | names


def _pattern(name: str) -> ResourcePatternType:
    return ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL


@contextmanager
def allowed(listeners: Listeners, *rights: Right) -> Iterator[BlockingAdmin]:
    """Give the user rights, and its administrator, once the broker knows them."""
    allow = AclPermissionType.ALLOW
    bindings = [
        AclBinding(kind, name.rstrip("*"), _pattern(name), f"User:{USER}", "*", operation, allow)
        for kind, name, operation in rights
    ]
    admin = everything(listeners)
    rules = [AclBindingFilter(*[getattr(each, part) for part in _PARTS]) for each in bindings]
    try:
        for answer in admin.create_acls(bindings).values() if bindings else ():
            answer.result(PATIENCE_S)
        until = time.monotonic() + PATIENCE_S
        # Apache Kafka's broker learns of a new right with a delay
        while any(not admin.describe_acls(rule).result(PATIENCE_S) for rule in rules):
            assert time.monotonic() < until
        with BlockingAdmin(settings(listeners)) as made:
            yield made
    finally:
        for deleted in admin.delete_acls(rules).values() if rules else ():
            deleted.result(PATIENCE_S)


def refusal(call: Callable[[], object]) -> tuple[ErrorCode | None, str]:
    """Return the code and text with which a request is refused; None if it is not."""
    try:
        call()
    except KafkaError as error:
        return error.code, error.message
    return None, ""


def lacks(right: str) -> tuple[ErrorCode, str]:
    return ErrorCode.GROUP_AUTHORIZATION_FAILED, f"the right {right} on group {GROUP} is missing"


FINE = (None, "")


@pytest.mark.parametrize(
    ("right", "may_set", "may_see"),
    [
        (None, False, False),
        ((*ON_GROUP, AclOperation.READ), False, False),
        ((*ON_GROUP, AclOperation.DESCRIBE), False, False),
        ((*ON_GROUP, AclOperation.ALTER), False, False),
        ((ResourceType.GROUP, OTHER, AclOperation.ALTER_CONFIGS), False, False),
        ((ResourceType.TOPIC, GROUP, AclOperation.ALTER_CONFIGS), False, False),
        ((*ON_GROUP, AclOperation.DESCRIBE_CONFIGS), False, True),
        ((*ON_GROUP, AclOperation.ALTER_CONFIGS), True, True),
        ((*ON_GROUP, AclOperation.ALL), True, True),
    ],
)
def test_settings_of_a_group_need_their_own_rights(
    listeners: Listeners, right: Right | None, may_set: bool, may_see: bool
) -> None:
    names = ["share.record.lock.duration.ms", *(["share.retry.backoff.ms"] if KIND == "sharecore" else ())]
    with allowed(listeners, *([right] if right is not None else ())) as admin:
        for name in names:
            setting = {name: 20_000}
            expected = FINE if may_set else lacks("ALTER_CONFIGS")
            assert refusal(lambda: admin.alter_configs(GROUP, setting)) == expected  # noqa: B023
            assert refusal(lambda: admin.alter_configs(GROUP, unset=[name])) == expected  # noqa: B023
            tried = refusal(lambda: admin.alter_configs(GROUP, setting, validate_only=True))  # noqa: B023
            assert tried == expected
            # nobody without the right learns whether a value would do
            wrong = refusal(lambda: admin.alter_configs(GROUP, {name: -5}))[0]  # noqa: B023
            assert wrong == (ErrorCode.INVALID_CONFIG if may_set else expected[0])
        expected = FINE if may_see else lacks("DESCRIBE_CONFIGS")
        assert refusal(lambda: admin.configs(GROUP)) == expected
        assert refusal(lambda: admin.configs(GROUP, names)) == expected


@ours
@pytest.mark.parametrize("operation", [AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS])
def test_pausing_needs_the_right_to_alter_the_group_alone(
    listeners: Listeners, operation: AclOperation
) -> None:
    may = operation is AclOperation.ALTER_CONFIGS
    with allowed(listeners, (*ON_GROUP, operation)) as admin:
        expected = FINE if may else lacks("ALTER_CONFIGS")
        assert refusal(lambda: admin.pause(GROUP)) == expected
        assert (admin.pause_of(GROUP).lasting, admin.waiting_of(GROUP, []).paused != "") == (may, may)
        assert refusal(lambda: admin.resume(GROUP)) == expected
        status, shown, told = sharecore(listeners, "groups", "pause", GROUP, "--for", "1h")
        assert (status, lacks("ALTER_CONFIGS")[1] in told) == (int(not may), not may)
        assert ("paused until" in shown) == may
        assert (listed_pause(listeners) or "").startswith("until 2") == may
        assert sharecore(listeners, "groups", "resume", GROUP)[0] == int(not may)
        assert admin.waiting_of(GROUP, []).paused == ""
        assert listed_pause(listeners) is None


def listed_pause(listeners: Listeners) -> str | None:
    """Return what the list of groups says of the group's pause, to a user with all rights."""
    listed = subprocess.run(
        [SHARECORE, "groups", "list", "-b", listeners.address("PLAINTEXT"), "-o", "json"],
        capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    paused: dict[str, str | None] = {each["group"]: each["paused"] for each in json.loads(listed.stdout)}
    return paused[GROUP]


def sharecore(listeners: Listeners, *words: str) -> tuple[int, str, str]:
    """Run a command as the user; return status, output and what was said on standard error."""
    mine = settings(listeners)
    options = [word for name, value in mine.items() for word in ("-X", f"{name}={value}")]
    ended = subprocess.run(
        [SHARECORE, *words, "-b", mine["bootstrap.servers"], *options],
        capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stdout, ended.stderr


UNKNOWN = "why records wait is not known: "
MAY_READ = [(*ON_GROUP, AclOperation.DESCRIBE), (*ON_TOPIC, AclOperation.READ)]


@pytest.mark.parametrize(
    ("words", "rights"),
    [(("describe", GROUP), SEES_GROUP), (("peek", GROUP, TOPIC), MAY_READ)],
    ids=["describe", "peek"],
)
def test_a_group_is_shown_without_the_reasons_that_the_user_may_not_see(
    listeners: Listeners, words: tuple[str, ...], rights: list[Right]
) -> None:
    with allowed(listeners, *rights):
        status, shown, told = sharecore(listeners, "groups", *words)
        assert status == 0, told
        assert f"{TOPIC}-0" in shown
        assert shown.count(UNKNOWN) == 1
        assert f"the right DESCRIBE_CONFIGS on group {GROUP} is missing" in shown
    with allowed(listeners, *rights, (*ON_GROUP, AclOperation.DESCRIBE_CONFIGS)):
        status, shown, told = sharecore(listeners, "groups", *words)
        assert status == 0, told
        assert (f"{UNKNOWN}the brokers do not report it" in shown) == (KIND == "apache")
        assert UNKNOWN not in shown or KIND == "apache"


@ours
def test_reasons_of_a_share_partition_need_its_topic_too(listeners: Listeners) -> None:
    plain = listeners.address("PLAINTEXT")
    with BlockingAdmin(bootstrap_servers=plain) as all_rights:
        places = [each.partition for each in all_rights.offsets(GROUP)]
    with share_consumer(plain, GROUP, [TOPIC]) as consumer:
        take(consumer)
        with allowed(listeners, (*ON_GROUP, AclOperation.DESCRIBE_CONFIGS)) as admin:
            found = admin.waiting_of(GROUP, places)
            assert (found.partitions, found.missing) == ({}, "")
        with allowed(listeners, (*ON_GROUP, AclOperation.DESCRIBE_CONFIGS), SEES_GROUP[1]) as admin:
            assert [*admin.waiting_of(GROUP, places).partitions] == places


def test_schedules_need_the_rights_that_docs_name_and_no_more(listeners: Listeners) -> None:
    plain, secret = listeners.address("PLAINTEXT"), "secret"
    admin = everything(listeners)
    for topic in ("schedules", "schedules.state", secret):
        policy = "compact" if topic.endswith("state") else "delete"
        made = NewTopic(topic, 1, config={"cleanup.policy": policy})
        admin.create_topics([made])[topic].result(PATIENCE_S)
    refused = sharecore(listeners, "schedules", "add", "mine", "x", "--to", TOPIC, "--delay", "1s")
    assert (refused[0], refused[1]) == (1, "")
    lacking = "the right WRITE on topic schedules is missing"
    assert lacking in refused[2]
    assert lacking in sharecore(listeners, "schedules", "cancel", "mine")[2]
    writes = AclOperation.WRITE
    with allowed(listeners, (ResourceType.TOPIC, "schedules", writes)):
        for key, target in (("mine", TOPIC), ("theirs", secret)):
            added = sharecore(listeners, "schedules", "add", key, key, "--to", target, "--delay", "1s")
            assert added[0] == 0, added[2]
        # whether it is there takes the right to read
        unsure = sharecore(listeners, "schedules", "cancel", "neither")
        assert unsure[:2] == (0, "schedule neither: canceled, if there was one\n")
    operations = (AclOperation.READ, writes, AclOperation.DESCRIBE, AclOperation.DELETE)
    rights: list[Right] = [
        *(
            (ResourceType.TOPIC, topic, each)
            for topic in ("schedules", "schedules.state")
            for each in operations
        ),
        (*ON_TOPIC, writes),
        (ResourceType.GROUP, "schedules.scheduler", AclOperation.READ),
        (ResourceType.TRANSACTIONAL_ID, "schedules.scheduler.*", writes),
    ]
    mine = settings(listeners)
    options = [word for name, value in mine.items() for word in ("-X", f"{name}={value}")]
    with allowed(
        listeners,
        (ResourceType.TOPIC, "schedules", AclOperation.READ),
        (ResourceType.TOPIC, "schedules.state", AclOperation.READ),
    ):
        listed = sharecore(listeners, "schedules", "list")
        assert (listed[0], "mine" in listed[1]) == (0, True), listed
    with allowed(listeners, *rights):
        command = [SHARECORE, "schedules", "run", "-b", mine["bootstrap.servers"], *options]
        running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            came = committed(plain, TOPIC, b"mine")
        finally:
            running.terminate()
            told = running.communicate(timeout=PATIENCE_S)[1]
        assert came, told
        assert "cannot write schedule b'theirs'" in told
        assert "TOPIC_AUTHORIZATION_FAILED" in told
    end = admin.list_offsets({TopicPartition(secret, 0): OffsetSpec.latest()})
    assert next(iter(end.values())).result(PATIENCE_S).offset == 0


def committed(bootstrap: str, topic: str, value: bytes) -> bool:
    """Wait until a committed record has this value."""
    asked = {"group.id": "committed", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **asked, **QUIET})
    consumer.subscribe([topic])
    until = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < until:
            message = consumer.poll(0.5)
            if message is not None and message.value() == value:
                return True
    finally:
        consumer.close()
    return False
