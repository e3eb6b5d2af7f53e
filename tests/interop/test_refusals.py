"""What commands say where a cluster cannot be had, or does not let them: on sharecore and on Apache Kafka."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.harness.broker import SHARECORE, free_port
from tests.harness.clients import QUIET, configure_group, create_topic, produce, share_consumer, take
from tests.harness.listeners import Listeners
from tests.interop.conftest import KIND
from textual.widgets import DataTable, Static

from sharecore.admin.watch import Watch
from sharecore.cli.top.app import Top
from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport

TOPIC, GROUP = "jobs", "workers"
NOBODY, PASSWORD = "nobody", "nothing"
_PARTS = (
    *("restype", "name", "resource_pattern_type", "principal", "host"),
    *("operation", "permission_type"),
)
COMMANDS = {
    "doctor": ("doctor",),
    "export-metrics": ("export-metrics", "--once"),
    "peek": ("groups", "peek", GROUP, TOPIC),
    "dlq list": ("dlq", "list"),
    "dlq show": ("dlq", "show", "dlq.workers"),
    "dlq redrive": ("dlq", "redrive", "dlq.workers", "--to", TOPIC, "--dry-run"),
}

WAYS = ("doctor", "export-metrics", "dlq list")
"""Commands that come to a cluster each in a way of its own."""


@pytest.fixture(scope="module")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    """Provide a group that waits, and a user who may do nothing."""
    made = Listeners(tmp_path_factory.mktemp("listeners"), KIND)
    made.start()
    plain = made.address("PLAINTEXT")
    create_topic(plain, TOPIC)
    configure_group(plain, GROUP, share_auto_offset_reset="earliest")
    produce(plain, TOPIC, [b"job"] * 3)
    with share_consumer(plain, GROUP, [TOPIC]) as consumer:
        take(consumer)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    user = UserScramCredentialUpsertion(NOBODY, info, PASSWORD.encode())
    admin = AdminClient({"bootstrap.servers": plain, **QUIET})
    admin.alter_user_scram_credentials([user])[NOBODY].result(30)
    yield made
    made.kill()


def nobody(listeners: Listeners) -> dict[str, str]:
    """Return the settings of a client without rights."""
    names = {"sasl.username": NOBODY, "sasl.password": PASSWORD}
    return listeners.client("SASL_SSL", "SCRAM-SHA-512") | names


def run(command: str, settings: dict[str, str]) -> tuple[int, str, str]:
    """Status, output and what was said on standard error."""
    options = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    ended = subprocess.run(
        [SHARECORE, *COMMANDS[command], "-b", settings["bootstrap.servers"], *options],
        capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stdout, ended.stderr


def one_line(command: str, settings: dict[str, str]) -> str:
    """What a command says that fails, in one line: the doctor among what it has found."""
    status, shown, told = run(command, settings)
    assert status == 1
    if command == "doctor":
        (line,) = [line for line in shown.splitlines() if line.startswith("BAD")]
        assert told == ""
        return line
    assert (shown, told.count("\n")) == ("", 1)
    return told


@pytest.mark.parametrize("command", COMMANDS)
def test_nobody_listens(command: str) -> None:
    address = f"localhost:{free_port()}"
    assert f"no broker at {address}" in one_line(command, {"bootstrap.servers": address})


@pytest.mark.parametrize("command", WAYS)
def test_a_listener_of_another_protocol(listeners: Listeners, command: str) -> None:
    address = listeners.address("SASL_SSL")
    said = one_line(command, {"bootstrap.servers": address})
    assert address in said
    # Apache Kafka answers with a TLS alert, which is more specific
    assert "security.protocol" in said
    assert "may be wrong for this listener" in said


@pytest.mark.parametrize("command", WAYS)
def test_a_wrong_password(listeners: Listeners, command: str) -> None:
    said = one_line(command, nobody(listeners) | {"sasl.password": "wrong"})
    assert "check sasl.username and sasl.password" in said


@pytest.mark.parametrize("command", WAYS)
def test_a_certificate_that_nobody_vouches_for(listeners: Listeners, command: str) -> None:
    settings = nobody(listeners)
    del settings["ssl.ca.location"]
    assert "certificate is not trusted" in one_line(command, settings)


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("doctor", 0, "no share group is there, or none that this client may DESCRIBE"),
        ("export-metrics", 0, "no share group is there, or none that this client may DESCRIBE"),
        ("peek", 1, "the right DESCRIBE on topic jobs is missing"),
        ("dlq list", 0, "no dead-letter records"),
        ("dlq show", 1, "there is no topic dlq.workers, or none that this client may DESCRIBE"),
        ("dlq redrive", 1, "there is no topic dlq.workers, or none that this client may DESCRIBE"),
    ],
)
def test_no_rights(listeners: Listeners, command: str, status: int, words: str) -> None:
    ended, shown, told = run(command, nobody(listeners))
    assert ended == status
    assert words in shown + told


def test_each_right_that_peek_lacks_is_named(listeners: Listeners) -> None:
    admin = AdminClient({"bootstrap.servers": listeners.address("PLAINTEXT"), **QUIET})
    state = "__share_group_state"
    steps = [
        (ResourceType.TOPIC, TOPIC, AclOperation.DESCRIBE, "DESCRIBE on group workers", 1),
        (ResourceType.GROUP, GROUP, AclOperation.DESCRIBE, "READ on topic jobs", 1),
        (ResourceType.TOPIC, TOPIC, AclOperation.READ, f"DESCRIBE on topic {state}", 0),
        (ResourceType.TOPIC, state, AclOperation.DESCRIBE, f"READ on topic {state}", 0),
        (ResourceType.TOPIC, state, AclOperation.READ, "", 0),
    ]
    bindings = []
    try:
        for kind, name, operation, lacking, status in steps:
            literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
            bindings.append(AclBinding(kind, name, literal, f"User:{NOBODY}", "*", operation, allow))
            for answer in admin.create_acls(bindings[-1:]).values():
                answer.result(30)
            until = time.monotonic() + 30
            # Apache Kafka's brokers learn of a new right with a delay
            while (ended := run("peek", nobody(listeners)))[2].count(lacking or "the right") != bool(lacking):
                assert time.monotonic() < until, ended
            found, shown, told = ended
            assert (found, "jobs-0@0" in shown) == (status, not status), ended
            assert ("all records look new" in told) == (status == 0 and bool(lacking))
    finally:
        rules = [AclBindingFilter(*[getattr(each, part) for part in _PARTS]) for each in bindings]
        for deleted in admin.delete_acls(rules).values():
            deleted.result(30)


def test_top_over_tls_with_rights_and_without(listeners: Listeners) -> None:
    async def shown(settings: dict[str, str]) -> tuple[list[str], str]:
        watch = Watch(Transport(read_connection_settings(settings)))
        app = Top(watch, settings["bootstrap.servers"], 60)
        async with app.run_test(size=(120, 30)) as pilot:
            table, head = app.query_one(DataTable), app.query_one("#head", Static)
            while "every" not in str(head.render()):
                await pilot.pause(0.05)
            rows = [str(table.get_row_at(row)[0]) for row in range(table.row_count)]
            text = str(head.render())
        await watch.close()
        return rows, text

    rows, head = asyncio.run(shown(listeners.client("SASL_SSL", "SCRAM-SHA-512")))
    assert (rows, "1 share group " in head) == ([GROUP], True)
    rows, head = asyncio.run(shown(nobody(listeners)))
    assert (rows, "0 share groups" in head) == ([], True)
    wrong = nobody(listeners) | {"sasl.password": "wrong"}
    assert "check sasl.username and sasl.password" in asyncio.run(shown(wrong))[1]
