"""Our own client, administration, worker and commands with every security protocol and mechanism."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tests.harness.aio import in_loop
from tests.harness.broker import SHARECORE
from tests.harness.clients import produce
from tests.harness.listeners import MECHANISMS, Listeners
from tests.interop.client.receive import settle
from tests.interop.conftest import KIND

from sharecore.admin import Admin
from sharecore.client import ShareConsumer, blocking
from sharecore.client.errors import AuthenticationFailed
from sharecore.errors import KafkaError

SASL = ("SASL_PLAINTEXT", "SASL_SSL")
CASES = [("SSL", None), *((protocol, name) for protocol in SASL for name in MECHANISMS)]
PATIENCE = 30.0
TOPIC = "home"
JOBS = f"""
from sharecore.client import worker

@worker("{TOPIC}")
def handle(record):
    print(record.value.decode(), flush=True)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    listeners = Listeners(tmp_path_factory.mktemp("home"), KIND)
    listeners.start()
    produce(listeners.address("PLAINTEXT"), TOPIC, [b"a", b"b"])
    yield listeners
    listeners.kill()


async def start_at_the_beginning(settings: dict[str, Any], group: str) -> None:
    async with Admin(settings) as admin:
        await admin.alter_configs(group, {"share.auto.offset.reset": "earliest"})


@pytest.mark.parametrize(("protocol", "mechanism"), CASES)
@in_loop
async def test_administration_and_both_consumers(
    home: Listeners, protocol: str, mechanism: str | None
) -> None:
    settings: dict[str, Any] = home.client(protocol, mechanism)
    group = f"{protocol}-{mechanism}"
    await start_at_the_beginning(settings, group)
    async with ShareConsumer(settings, group_id=group, share_acknowledgement_mode="explicit") as consumer:
        consumer.subscribe([TOPIC])
        assert [record.value for record in await settle(consumer, 2)] == [b"a", b"b"]
    await start_at_the_beginning(settings, f"{group}-blocking")
    values = await asyncio.to_thread(take, settings, f"{group}-blocking")
    assert values == [b"a", b"b"]


def take(settings: dict[str, Any], group: str) -> list[bytes | None]:
    with blocking.ShareConsumer(settings, group_id=group) as consumer:
        consumer.subscribe([TOPIC])
        records = list(consumer.poll(timeout=PATIENCE))
        while len(records) < 2:
            records += consumer.poll(timeout=PATIENCE)
    return [record.value for record in records]


@in_loop
async def test_settings_as_javas_clients_have_them(home: Listeners) -> None:
    async with Admin(home.java_client("SASL_SSL", "SCRAM-SHA-256")) as admin:
        await admin.list_groups()


def command(
    home: Listeners, settings: dict[str, str], *arguments: str, program: tuple[str, ...] = (SHARECORE,)
) -> tuple[int, str, str]:
    """Status, output and errors of one of our commands."""
    at = settings["bootstrap.servers"]
    file = home.home / "client.properties"
    lines = (f"{key}={value}\n" for key, value in settings.items() if key != "bootstrap.servers")
    file.write_text("".join(lines))
    done = subprocess.run(
        [*program, *arguments, "-b", at, "--command-config", str(file)],
        input="planted-nora\n", capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_every_command_with_one_file(home: Listeners) -> None:
    settings = home.client("SASL_SSL", "SCRAM-SHA-512")

    def run(*arguments: str) -> str:
        status, shown, told = command(home, settings, *arguments)
        assert (status, told) == (0, ""), (arguments, told)
        return shown

    assert run("produce", "written", "a", "b") == "2 records written to written\n"
    took = run("consume", "written", "-g", "takers", "--from-beginning", "-n", "1")
    assert took.split()[-1] == "a"
    assert "takers" in run("groups", "list")
    assert "b" in run("groups", "peek", "takers", "written").split()
    assert "takers" in run("state", "dump")
    assert "sharecore_exporter_up 1.0" in run("export-metrics", "--once")
    run("users", "add", "nora")
    assert "nora" in run("users", "list")
    run("acls", "add", "--principal", "User:nora", "--operation", "read", "--topic", "written")
    assert "User:nora" in run("acls", "list")


@pytest.mark.parametrize("names", ["java", "tokens"])
def test_commands_with_other_names_and_with_tokens(home: Listeners, names: str) -> None:
    if names == "java":
        settings = home.java_client("SASL_SSL", "SCRAM-SHA-256")
    else:
        settings = home.client("SASL_SSL", "OAUTHBEARER")
    topic = f"written-{names}"
    assert command(home, settings, "produce", topic, "a") == (0, f"1 record written to {topic}\n", "")
    if names == "java":
        return
    status, took, told = command(home, settings, "consume", topic, "-g", names, "--from-beginning", "-n", "1")
    assert (status, took.split()[-1:]) == (0, ["a"]), told


@pytest.mark.timeout(90)
def test_the_worker(home: Listeners, tmp_path: Path) -> None:
    settings = home.client("SASL_SSL", "SCRAM-SHA-512")
    asyncio.run(start_at_the_beginning(settings, "work"))
    (tmp_path / "jobs.py").write_text(JOBS)
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    at = ("-b", settings["bootstrap.servers"], "--command-config", str(file))
    process = subprocess.Popen(
        [SHARECORE, "work", "jobs:handle", "-g", "work", *at],
        cwd=tmp_path, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert sorted(process.stdout.readline() for _ in range(2)) == ["a\n", "b\n"]
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, log
    finally:
        process.kill()


def wrong(home: Listeners) -> list[tuple[str, dict[str, str], str]]:
    """What was set wrongly, the settings, and what the error says to do."""
    scram = home.client("SASL_SSL", "SCRAM-SHA-512")
    bare = home.client("PLAINTEXT")
    subprocess.run([SHARECORE, "certs", str(home.home / "other")], check=True, capture_output=True)
    return [
        ("password", scram | {"sasl.password": "guess"}, "check sasl.username and sasl.password"),
        (
            "token",
            home.client("SASL_PLAINTEXT", "OAUTHBEARER") | {"sasl.oauthbearer.token": home.token()[:-4]},
            "check the token's issuer, audience and expiry",
        ),
        ("authority", scram | {"ssl.ca.location": str(home.home / "other/ca.pem")}, "set ssl.ca.location"),
        (
            "no SASL there",
            scram | {"bootstrap.servers": home.address("SSL")},
            "does not use SASL: set security.protocol to SSL",
        ),
        ("no TLS", bare | {"bootstrap.servers": home.address("SSL")}, "security.protocol"),
        ("no SASL", bare | {"bootstrap.servers": home.address("SASL_PLAINTEXT")}, "security.protocol"),
        ("TLS on PLAINTEXT", scram | {"bootstrap.servers": home.address("PLAINTEXT")}, "security.protocol"),
    ]


@in_loop
async def test_what_is_wrong_is_told_with_what_to_do(home: Listeners) -> None:
    for what, settings, advice in wrong(home):
        with pytest.raises(KafkaError) as raised:
            async with Admin(settings, default_api_timeout_ms=500) as admin:
                await admin.list_groups()
        assert advice in str(raised.value), what
        assert ("protocol" in advice) or isinstance(raised.value, AuthenticationFailed), what


@pytest.mark.parametrize("verb", ["produce", "consume"])
def test_commands_do_not_wait_where_time_does_not_help(home: Listeners, verb: str) -> None:
    more = ("x",) if verb == "produce" else ("-g", "never", "-n", "1")
    settings = home.client("SASL_SSL", "SCRAM-SHA-512") | {"sasl.password": "guess"}
    status, _, told = command(home, settings, verb, TOPIC, *more)
    assert (status, told.count("\n")) == (1, 1)
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in told


def test_ctrl_c_ends_a_command_that_writes_all_it_can(home: Listeners) -> None:
    """It comes into a callback of the client now and then."""
    address = home.address("PLAINTEXT")
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as lines:
        words = [SHARECORE, "produce", "endless", "-b", address]
        writing = subprocess.Popen(words, stdin=lines.stdout, stderr=subprocess.PIPE, text=True)
        try:
            admin = AdminClient({"bootstrap.servers": address})
            while "endless" not in admin.list_topics(timeout=PATIENCE).topics:
                time.sleep(0.05)
            time.sleep(0.5)
            writing.send_signal(signal.SIGINT)
            _, told = writing.communicate(timeout=PATIENCE)
        finally:
            writing.kill()
            lines.kill()
    assert writing.returncode == 130
    assert re.fullmatch(r"sharecore: interrupted; [0-9]+ records written to endless\n", told)


TOLD_AT_THE_END = """
import atexit, os, sys, time
def tell():
    # the operating system keeps a joined thread for a moment
    until = time.monotonic() + 2
    while (threads := len(os.listdir("/proc/self/task"))) > 1 and time.monotonic() < until:
        time.sleep(0.01)
    print("threads:", threads, file=sys.stderr)
atexit.register(tell)
from sharecore.cli.app import main
main()
"""


@pytest.mark.parametrize(
    ("status", "arguments"),
    [
        (0, ("produce", "ended", "x")),
        (1, ("refused", "produce", "ended", "x")),
        (0, ("consume", TOPIC, "-g", "ended", "--from-beginning", "-n", "1")),
        (1, ("refused", "consume", TOPIC, "-g", "ended", "-n", "1")),
        (1, ("refused", "consume", TOPIC, "-g", "ended", "--from-beginning", "-n", "1")),
        (0, ("dlq", "list")),
        (1, ("dlq", "list", "no-such-topic")),
        (1, ("dlq", "show", "no-such-topic")),
        (0, ("dlq", "redrive", TOPIC)),
        (1, ("dlq", "redrive", "no-such-topic")),
        (1, ("dlq", "redrive", TOPIC, "-X", "linger.ms=much")),
    ],
)
def test_no_thread_of_a_client_outlives_a_command(
    home: Listeners, status: int, arguments: tuple[str, ...]
) -> None:
    """OpenSSL is taken down at the end of a process, under whatever handshake goes on then."""
    settings = home.client("SASL_SSL", "SCRAM-SHA-512")
    if arguments[0] == "refused":
        settings, arguments = settings | {"sasl.password": "guess"}, arguments[1:]
    python = Path(SHARECORE).with_name("python")
    ended, _, told = command(home, settings, *arguments, program=(str(python), "-c", TOLD_AT_THE_END))
    assert (ended, told.splitlines()[-1]) == (status, "threads: 1"), told
