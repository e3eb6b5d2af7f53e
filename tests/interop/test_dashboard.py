"""`sharecore dashboard`: the page of sharecore, and of Apache Kafka as far as its APIs and records tell."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType
from tests.harness.broker import SHARECORE, Broker, free_port
from tests.harness.browser import Browser
from tests.harness.clients import produce, share_consumer, take
from tests.unit.broker.share_member import Member
from tests.unit.page.conftest import SECURED, allow, start

from sharecore.security.acl import Operation, ResourceType


@contextmanager
def dashboard(bootstrap: str, *arguments: str) -> Iterator[Browser]:
    port = free_port()
    serving = subprocess.Popen(
        [SHARECORE, "dashboard", "-b", bootstrap, "--listen", f"127.0.0.1:{port}", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert serving.stdout is not None
        assert serving.stdout.readline() == f"the page of {bootstrap} is on http://127.0.0.1:{port}/\n"
        yield Browser(port)
    finally:
        serving.terminate()
        serving.communicate(timeout=20)


def test_a_group_with_what_came_back_and_what_is_new(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"good", b"bad", b"good"])
    settings = {"share.acknowledgement.mode": "explicit"}
    with dashboard(broker.bootstrap, "--interval", "0.5") as browser:
        session = browser.get("/api/session").body
        assert (session["in"], session["may_act"], session["leaders"]) == (True, False, False)
        with share_consumer(broker.bootstrap, group, [topic], **settings) as consumer:
            for record in take(consumer):
                good = record.value() == b"good"
                consumer.acknowledge(record, AcknowledgeType.ACCEPT if good else AcknowledgeType.RELEASE)
            consumer.commit_sync()
            detail = wait_for(browser, group, members=1)
            assert detail["members"][0]["assignment"] == {topic: [0]}
        produce(broker.bootstrap, topic, [b"next"])
        detail = wait_for(browser, group, members=0)
        (window,) = detail["windows"]
        # no API reports lease owners: these come from the share-state records
        assert (window["source"], window["log_end"]) == ("state", 4)
        assert all(len(run) == 6 and run[4:] == [None, None] for run in window["runs"])
        assert [run[0] for run in window["runs"] if run[2] == 0] == [1]
        asked = {"group": group, "topic": topic, "partition": 0}
        found = browser.get("/api/records", **asked, states="available,new").body
        shown = [(each["offset"], each["state"], each["value"]["text"]) for each in found["records"]]
        assert shown == [(1, "available", "bad"), (3, "new", "next")]
        assert found["next"] is None
        points = browser.get("/api/trail", group=group).body["points"]
        assert points
        assert all(lag >= 0 for _, lag in points)
        answer = browser.post("/api/delete-group", {"group": group, "confirm": group})
        assert answer.status == 403


def wait_for(browser: Browser, group: str, *, members: int) -> dict[str, Any]:
    deadline = time.monotonic() + 30
    for look in browser.looks("/api/group", group=group):
        assert time.monotonic() < deadline, look
        if look.get("windows") and len(look["members"]) == members and look["windows"][0]["runs"]:
            found: dict[str, Any] = look
            return found
    raise AssertionError("the stream ended")


def test_each_user_logs_in_where_no_user_is_named(tmp_path: Path) -> None:
    running = start(tmp_path, SECURED)
    try:
        allow(running, "alice", ResourceType.GROUP, "workers", Operation.DESCRIBE)
        member = Member(running, "workers", "jobs")
        bootstrap = f"127.0.0.1:{running.broker.listeners['SASL_PLAINTEXT'].port}"
        with dashboard(bootstrap, "-X", "security.protocol=SASL_PLAINTEXT") as browser:
            session = browser.get("/api/session").body
            assert (session["in"], "PLAIN" in session["mechanisms"]) == (False, True)
            assert browser.login("alice", "of-bob").status == 401
            assert browser.login("alice", "of-alice").status == 200
            assert [each["group_id"] for each in browser.look("/api/groups")["groups"]] == ["workers"]
            assert browser.get("/api/session").body["may_act"] is True
            assert browser.login("carol", "of-carol").status == 200
            assert browser.look("/api/groups")["groups"] == []
        # with a user in its settings, the page acts as that user for everybody, read-only
        given = ("-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=PLAIN")
        user = ("-X", "sasl.username=alice", "-X", "sasl.password=of-alice")
        with dashboard(bootstrap, *given, *user) as browser:
            session = browser.get("/api/session").body
            assert (session["in"], session["user"], session["may_act"]) == (True, None, False)
            assert [each["group_id"] for each in browser.look("/api/groups")["groups"]] == ["workers"]
        member.client.close()
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("-b", "127.0.0.1:{port}"), 1, "no broker at 127.0.0.1:{port}"),
        (("--listen", "9466"), 2, "--listen 9466: not an address; allowed: HOST:PORT"),
        (("--key", "key.pem"), 2, "--key has no effect without --certificate"),
        (("--certificate", "none.pem"), 1, "--certificate none.pem: cannot be loaded"),
        (("-X", "sasl.mechanism=PLAIN"), 1, "sasl.mechanism=PLAIN has no effect"),
        (
            ("-X", "security.protocol=SASL_SSL", "-X", "group=x"),
            1,
            "group is not a setting of an admin client",
        ),
    ],
)
def test_what_cannot_be_had_is_one_line(
    broker: Broker, arguments: tuple[str, ...], status: int, said: str
) -> None:
    port = str(free_port())
    given = [each.format(port=port) for each in arguments]
    bootstrap = () if "-b" in given else ("-b", broker.bootstrap)
    ended = subprocess.run(
        [SHARECORE, "dashboard", *bootstrap, *given], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == status
    assert said.format(port=port) in ended.stderr
    assert ended.stderr.count("\n") == 1
