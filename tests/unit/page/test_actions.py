"""Actions of the page, and its read-only parts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from tests.harness.browser import Browser
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import ACCEPT, Member, acquired, produce
from tests.unit.page.conftest import start

from sharecore._core import encode_records
from sharecore.errors import ConfigError
from sharecore.page import actions
from sharecore.protocol import ApiKey

LETTER = [
    ("__dlq.errors.topic", b"jobs"),
    ("__dlq.errors.partition", b"0"),
    ("__dlq.errors.offset", b"2"),
    ("__dlq.errors.group", b"workers"),
    ("__dlq.errors.delivery.count", b"3"),
    ("__dlq.errors.message", b"Offset rejected by client."),
]


@pytest.fixture
def running(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    settings = {"sharecore.page.listener": "127.0.0.1:0"} | getattr(request, "param", {})
    started = start(tmp_path, settings)
    yield started
    started.stop()


@pytest.fixture
def browser(running: RunningBroker) -> Browser:
    browser = Browser(running.broker.page_port)
    browser.csrf = browser.get("/api/session").body["csrf"]
    return browser


def everyone(mark: Any) -> Any:
    setting = {"sharecore.page.actions": "everyone"}
    return pytest.mark.parametrize("running", [setting], indirect=True)(mark)


def settle(running: RunningBroker) -> None:
    """Accept five records; then leave."""
    produce(running, "jobs", 5)
    member = Member(running, "workers", "jobs")
    while not acquired(member.fetch(0)):
        pass
    member.acknowledge({0: [(0, 4, ACCEPT)]})
    names = {"group_id": "workers", "member_id": member.name}
    member.client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **names, member_epoch=-1)
    member.client.close()


def test_where_nobody_logs_in_the_page_only_shows(running: RunningBroker, browser: Browser) -> None:
    settle(running)
    session = browser.get("/api/session").body
    assert (session["in"], session["user"], session["may_act"], session["mechanisms"]) == (
        True,
        None,
        False,
        [],
    )
    assert browser.look("/api/group", group="workers")["group"]["lag"] == 0
    for path, body in (
        ("reset", {"group": "workers", "to": "earliest", "confirm": "workers"}),
        ("delete-offsets", {"group": "workers", "topic": "jobs", "confirm": "workers"}),
        ("delete-group", {"group": "workers", "confirm": "workers"}),
        ("redrive", {"topic": "jobs", "letters": [[0, 0]], "confirm": "jobs"}),
    ):
        answer = browser.post(f"/api/{path}", body)
        assert (answer.status, "only shows" in answer.body["error"]) == (403, True)
    assert browser.post("/api/login", {"user": "a", "password": "b", "mechanism": "PLAIN"}).status == 404


@everyone
def test_a_group_is_reset_as_planned_and_deleted(running: RunningBroker, browser: Browser) -> None:
    settle(running)
    asked = {"group": "workers", "topic": "jobs", "to": "offset", "value": "1"}
    planned = browser.post("/api/reset", asked)
    change = {"topic": "jobs", "partition": 0, "before": 5, "after": 1}
    assert planned.body == {"plan": [change]}
    done = browser.post("/api/reset", {**asked, "confirm": "workers"})
    assert done.body == {"done": [change], "failed": []}
    for wrong in ({"to": "offset", "value": "-1"}, {"to": "offset"}, {"to": "time", "value": "x"}, {}):
        assert browser.post("/api/reset", {"group": "workers", **wrong}).status == 400
    assert browser.post("/api/delete-offsets", {**asked, "confirm": "workers"}).body == {}
    assert browser.post("/api/delete-group", {"group": "workers", "confirm": "workers"}).status == 200
    assert browser.post("/api/delete-group", {"group": "workers", "confirm": "workers"}).status == 404


@pytest.mark.heavy
@everyone
def test_a_group_is_paused_and_resumed(running: RunningBroker, browser: Browser) -> None:
    settle(running)
    produce(running, "jobs", 2)
    member = Member(running, "workers", "jobs", name="later")
    asked = {"group": "workers", "confirm": "workers"}
    assert browser.look("/api/group", group="workers")["paused"] == ""
    assert browser.post("/api/pause", asked).body == {}
    assert acquired(member.fetch(0)) == {}
    assert browser.look("/api/group", group="workers")["paused"] == "paused until it is resumed"
    assert browser.post("/api/pause", {**asked, "minutes": 5}).status == 200
    assert acquired(member.fetch()) == {}
    assert browser.look("/api/group", group="workers")["paused"].startswith("paused until 2")
    for wrong in ({"minutes": 0}, {"minutes": "soon"}, {"confirm": "others"}):
        assert browser.post("/api/pause", {**asked, **wrong}).status == 400
    assert browser.post("/api/resume", asked).body == {}
    assert acquired(member.fetch()) == {0: [(5, 6, 1)]}


@everyone
def test_letters_are_shown_and_go_back(running: RunningBroker, browser: Browser) -> None:
    settle(running)
    asked = {
        "name": "dlq.jobs", "num_partitions": 1, "replication_factor": 1,
        "configs": [{"name": "errors.deadletterqueue.group.enable", "value": "true"}],
    }  # fmt: skip
    running.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    exhausted = [*LETTER[:2], ("__dlq.errors.offset", b"99"), *LETTER[3:]]
    letters = encode_records(
        [
            (b"k", b"seven", [*LETTER, ("own", b"1")]),
            (None, None, LETTER),
            (None, None, exhausted),
            (None, b"none", []),
        ],
        round(time.time() * 1000),
    )
    data = [{"name": "dlq.jobs", "partition_data": [{"index": 0, "records": letters}]}]
    running.ask(ApiKey.PRODUCE, 12, acks=-1, timeout_ms=5000, topic_data=data)
    assert browser.get("/api/letter-topics").body == {"topics": ["dlq.jobs"]}
    found = browser.get("/api/letters", topic="dlq.jobs", group="workers", cause="rejected").body
    assert [(each["offset"], each["copy"]) for each in found["letters"]] == [
        (2, False),
        (1, False),
        (0, True),
    ]
    assert found["letters"][2]["value"]["text"] == "seven"
    assert found["letters"][2]["headers"] == [["own", {"text": "1", "cut": False, "bytes": 1}]]
    assert found["complete"] is True
    assert browser.get("/api/letters", topic="dlq.jobs", group="others").body["letters"] == []
    wanted = {"topic": "dlq.jobs", "letters": [[0, 0], [0, 1], [0, 2], [0, 3], [0, 77]]}
    assert browser.post("/api/redrive", wanted).status == 400
    # the copy and the original record exist; that of offset 99 does not
    moved = browser.post("/api/redrive", {**wanted, "confirm": "dlq.jobs"})
    assert moved.body == {"moved": {"jobs": 2}, "gone": 3}
    assert browser.look("/api/groups")["groups"] != []
    rows = browser.get(
        "/api/records", group="workers", topic="jobs", partition=0, states="new,available", first=5
    ).body["records"]
    assert [each["value"]["text"] for each in rows] == ["seven", "x"]
    headers = {name: value["text"] for name, value in rows[0]["headers"]}
    assert headers == {
        "own": "1", "__redrive.topic": "jobs", "__redrive.partition": "0", "__redrive.offset": "2",
        "__redrive.group": "workers", "__redrive.delivery.count": "3", "__redrive.count": "1",
    }  # fmt: skip
    for wrong in ([], [[0]], [["0", 1]], [[0, 1]] * 101, "x"):
        body = {"topic": "dlq.jobs", "letters": wrong, "confirm": "dlq.jobs"}
        assert browser.post("/api/redrive", body).status == 400


def test_a_page_that_cannot_be_served_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sharecore\.page\.listener"):
        RunningBroker(tmp_path, {"sharecore.page.listener": "here"})
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location"):
        RunningBroker(tmp_path, {"sharecore.page.listener": "https://127.0.0.1:0"}).start()
    keys = tmp_path / "keys.json"
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    keys.write_text(
        json.dumps({"keys": [json.loads(ECAlgorithm.to_jwk(key)) | {"kid": "1", "alg": "ES256"}]})
    )
    tokens = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sharecore.page.listener": "127.0.0.1:0",
    }
    with pytest.raises(ConfigError, match="no listener takes any"):
        RunningBroker(tmp_path, tokens).start()


def test_a_time_without_a_zone_is_utc_wherever_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        for text in ("2026-03-29T02:30", "2026-03-29T02:30Z", "2026-03-28T22:30-04:00"):
            assert actions._target({"to": "time", "value": text}).value == 1_774_751_400_000, text
        for wrong in ("02:30", "tomorrow", "2026-02-30T00:00"):
            with pytest.raises(actions.BadRequest):
                actions._target({"to": "time", "value": wrong})
    finally:
        monkeypatch.undo()
        time.tzset()
