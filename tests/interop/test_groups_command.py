"""`sharecore groups` beside Kafka's own tools: times, states, types, and groups of other types."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import PIPE

import pytest
from confluent_kafka import Consumer, Producer
from tests.harness import java
from tests.harness.broker import Broker
from tests.harness.clients import QUIET, configure_topic, produce, settle, share_consumer
from tests.interop.test_admin import sharecore

FIRST = datetime(2026, 3, 29, tzinfo=UTC)
SHARE_GROUPS = f"{java.TOOLS}.consumer.group.ShareGroupCommand"


@pytest.fixture
def hourly(broker: Broker, topic: str, group: str) -> None:
    """A group that has done a record for each hour of the day in which clocks change in Europe."""
    configure_topic(broker.bootstrap, topic, retention_ms=-1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    for hour in range(24):
        moment = FIRST + timedelta(hours=hour)
        producer.produce(topic, b"x", timestamp=round(moment.timestamp() * 1000))
    assert producer.flush(10) == 0
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, 24)


@pytest.mark.usefixtures("hourly")
def test_a_time_means_what_it_means_to_kafkas_tool(
    broker: Broker, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    for text in (
        "2026-03-29T02:30:00.000",
        "2026-03-29T02:00:00.001",
        "2026-03-29T02:00:00.000Z",
        "2026-03-29T03:30:00.000+02:00",
        "2026-03-29T03:30:00.000-0300",
        "2027-01-01T00:00:00.000",
    ):
        tool = java.run(
            SHARE_GROUPS,
            *("--bootstrap-server", broker.bootstrap, "--group", group, "--topic", topic),
            *("--reset-offsets", "--to-datetime", text, "--dry-run"),
        )
        status, shown, _ = sharecore(broker, "reset", group, "--to-datetime", text)
        assert status == 0
        assert shown.splitlines()[0].endswith("Z")
        assert shown.splitlines()[2].split()[2] == tool.split()[-1], text
    # input that the tool does not accept
    for text, offset in (
        ("2026-03-29T05:00:00", "5"),
        ("2026-03-29", "0"),
        ("2026-03-29T05:00:00+02:00", "3"),
    ):
        assert sharecore(broker, "reset", group, "--to-datetime", text)[1].split("\n")[2].split()[2] == offset
    status, shown, said = sharecore(broker, "reset", group, "--to-datetime", "yesterday")
    assert (status, shown, said.startswith("sharecore: --to-datetime yesterday: not a time")) == (2, "", True)


@pytest.mark.parametrize(
    ("option", "value", "known"),
    [("--state", "Resting", "PreparingRebalance"), ("--type", "stream", "streams")],
)
def test_a_state_or_type_that_is_unknown_is_refused_with_the_list(
    broker: Broker, option: str, value: str, known: str
) -> None:
    status, shown, said = sharecore(broker, "list", option, value)
    assert (status, shown, said.count("\n")) == (2, "", 1)
    assert said.startswith(f"sharecore: {option} {value}: unknown; allowed: ")
    assert known in said


@pytest.mark.usefixtures("hourly")
def test_states_and_types_are_read_in_any_case_and_with_commas(broker: Broker, group: str) -> None:
    for arguments, is_there in (
        (("--state", "EMPTY"), True),
        (("--state", "stable,empty"), True),
        (("--state", "preparingREBALANCE", "--state", "Dead"), False),
        (("--type", "Share, classic"), True),
        (("--type", "consumer"), False),
    ):
        status, shown, _ = sharecore(broker, "list", *arguments)
        assert (status, group in shown.split()) == (0, is_there), arguments


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_another_type_is_deleted_only_by_its_type(
    broker: Broker, topic: str, group: str, protocol: str
) -> None:
    name = f"{protocol}-{group}"
    produce(broker.bootstrap, topic, [b"x"])
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": name, "group.protocol": protocol, **QUIET}
    with Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([topic])
        message = consumer.poll(30)
        assert message is not None
        consumer.commit(message=message, asynchronous=False)
    status, shown, _ = sharecore(broker, "delete", name)
    assert status == 1
    assert f"not deleted: it is a {protocol} group" in shown
    assert name in sharecore(broker, "list", "--type", protocol)[1]
    status, _, said = sharecore(broker, "reset", name, "--to-earliest", "--topic", topic, "--execute")
    assert (status, f"{name} is a {protocol} group" in said) == (1, True)
    status, shown, _ = sharecore(broker, "delete", name, "--type", protocol)
    assert (status, shown.split()[-1]) == (0, "deleted")


@pytest.mark.parametrize("more", [(), ("--execute",), ("--topic", "TOPIC", "--execute")])
def test_a_reset_of_a_group_that_is_missing_says_so(
    broker: Broker, topic: str, group: str, more: tuple[str, ...]
) -> None:
    name = f"no-{group}"
    arguments = [topic if each == "TOPIC" else each for each in more]
    status, shown, said = sharecore(broker, "reset", name, "--to-earliest", *arguments)
    assert (status, shown) == (1, "")
    assert said == f"sharecore: GROUP_ID_NOT_FOUND: there is no share group {name}\n"
    assert name not in sharecore(broker, "list")[1].split()


def test_members_are_shown_with_their_ids_and_epochs(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"x"])
    with share_consumer(broker.bootstrap, group, [topic], **{"client.id": "me"}) as consumer:
        settle(consumer, 1)
        status, shown, _ = sharecore(broker, "describe", group, "--output", "json", "--timeout", "20")
        (found,) = json.loads(shown)
        (member,) = found["members"]
        assert (status, member["client"], member["topics"]) == (0, "me", [topic])
        assert member["epoch"] > 0
        assert member["partitions"] == [{"topic": topic, "partition": 0}]
        row = sharecore(broker, "describe", group)[1].splitlines()[3].split()
        assert row == ["me", member["member"], member["host"], str(member["epoch"]), f"{topic}-0"]
        everyone = json.loads(sharecore(broker, "describe", "--all-groups", "-o", "json")[1])
        assert group in {each["group"] for each in everyone}
    listed = json.loads(sharecore(broker, "list", "-o", "json")[1])
    assert {"group": group, "type": "share", "state": "Empty", "paused": None} in listed


@pytest.mark.parametrize(
    "arguments", [("describe",), ("describe", "g", "--all-groups"), ("describe", "g", "-o", "x")]
)
def test_describe_says_what_it_needs(broker: Broker, arguments: tuple[str, ...]) -> None:
    assert sharecore(broker, *arguments)[0] == 2


@pytest.mark.usefixtures("hourly")
def test_a_reset_has_kafkas_name_and_a_dry_run(broker: Broker, group: str) -> None:
    status, shown, _ = sharecore(broker, "reset-offsets", group, "--to-offset", "7", "--dry-run")
    assert (status, shown.splitlines()[-1]) == (0, "nothing has changed yet: --execute does it")
    status, _, said = sharecore(broker, "reset", group, "--to-offset", "7", "--dry-run", "--execute")
    assert (status, "exclude each other" in said) == (2, True)
    assert sharecore(broker, "reset-offsets", group, "--to-offset", "7", "--execute")[0] == 0


@pytest.mark.parametrize("kind", ["share", "classic", "consumer"])
def test_a_group_with_members_says_who_they_are_and_is_deleted_by_force(
    broker: Broker, topic: str, group: str, kind: str
) -> None:
    name = f"{kind}-of-{group}"
    produce(broker.bootstrap, topic, [b"x"])
    # killed, so that no member rejoins
    words = [sys.executable, "-c", MEMBER, broker.bootstrap, name, topic, kind]
    member = subprocess.Popen(words, stdout=PIPE)
    assert member.stdout is not None
    assert member.stdout.readline() == b"here\n"
    member.kill()
    member.wait()
    member.stdout.close()
    options = ("--type", kind)
    status, shown, _ = sharecore(broker, "delete", name, *options)
    assert (status, "1 member: " in shown, "(somebody at /127.0.0.1)" in shown) == (1, True, True)
    status, shown, _ = sharecore(broker, "delete", name, *options, "--force")
    assert (status, "deleted, after these were removed: 1 member: " in shown) == (0, True), shown
    assert name not in sharecore(broker, "list")[1].split()


MEMBER = """
import sys, time
from confluent_kafka import Consumer, ShareConsumer
bootstrap, group, topic, kind = sys.argv[1:]
settings = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": "somebody"}
if kind == "share":
    consumer = ShareConsumer(settings)
else:
    consumer = Consumer(settings | {"group.protocol": kind, "auto.offset.reset": "earliest"})
consumer.subscribe([topic])
until = time.monotonic() + 10
while time.monotonic() < until:
    if kind == "share":
        consumer.poll(0.5)
        break
    if consumer.poll(0.5) is not None:
        break
print("here", flush=True)
time.sleep(60)
"""


@pytest.mark.long
def test_a_setting_that_only_sharecore_has_is_named_on_apache_kafka(tmp_path: Path) -> None:
    apache = Broker(tmp_path, "apache")
    apache.start()
    try:
        cannot = "this cluster cannot pause share groups; sharecore brokers and tiers can"
        lacks = "this cluster has no group setting share.ordering; sharecore brokers and tiers have it"
        for arguments, error in (
            (("pause", "g"), cannot),
            (("pause", "g", "--for", "10m"), cannot),
            (("config", "g", "--set", "share.ordering=key"), lacks),
            (("config", "g", "--set", "share.nonsense=5"), "Unknown group config name: share.nonsense"),
        ):
            shown = sharecore(apache, *arguments)
            assert shown == (1, "", f"sharecore: INVALID_CONFIG: {error}\n"), arguments
    finally:
        apache.kill()
