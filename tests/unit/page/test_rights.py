"""Permissions on the page of a broker with passwords: those of the user's ACLs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.harness.browser import Browser
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import RELEASE, Member, acquired, produce
from tests.unit.page.conftest import SECURED


@pytest.fixture(scope="module", autouse=True)
def leased(secured: RunningBroker) -> Iterator[Member]:
    """Ten records, three of them released once, and two held for the second time."""
    produce(secured, "jobs", 10)
    member = Member(secured, "workers", "jobs")
    got: dict[int, list[tuple[int, int, int]]] = {}
    while not got:
        got = acquired(member.fetch(0))
    assert got == {0: [(0, 9, 1)]}
    member.acknowledge({0: [(2, 4, RELEASE)]})
    assert acquired(member.fetch(0, max_records=2, share_acquire_mode=1))[0][0][2] == 2
    yield member
    member.client.close()


def login(secured: RunningBroker, user: str) -> Browser:
    browser = Browser(secured.broker.page_port)
    assert browser.login(user, f"of-{user}").status == 200
    return browser


@pytest.fixture
def alice(secured: RunningBroker) -> Iterator[Browser]:
    browser = login(secured, "alice")
    yield browser
    browser.post("/api/logout", {})


@pytest.fixture
def bob(secured: RunningBroker) -> Iterator[Browser]:
    browser = login(secured, "bob")
    yield browser
    browser.post("/api/logout", {})


@pytest.fixture
def carol(secured: RunningBroker) -> Iterator[Browser]:
    browser = login(secured, "carol")
    yield browser
    browser.post("/api/logout", {})


def test_without_a_login_nothing_is_told(browser: Browser) -> None:
    session = browser.get("/api/session").body
    assert (session["in"], session["mechanisms"]) == (False, ["PLAIN"])
    assert "csrf" not in session
    for path in ("groups", "group", "trail", "records", "poison", "letters", "letter-topics"):
        assert browser.get(f"/api/{path}", group="workers").status == 401
    for path in ("reset", "delete-group", "delete-offsets", "redrive", "logout"):
        assert browser.post(f"/api/{path}", {"group": "workers", "confirm": "workers"}).status == 401


@pytest.mark.heavy
def test_credentials_that_are_wrong(browser: Browser) -> None:
    answer = browser.login("alice", "of-bob")
    assert (answer.status, "set-cookie" in answer.headers) == (401, False)
    assert browser.login("alice", "of-alice", "SCRAM-SHA-512").status == 401
    assert browser.post("/api/login", {"user": "alice"}).status == 400


def test_the_cookie_is_for_the_page_alone(secured: RunningBroker) -> None:
    browser = Browser(secured.broker.page_port)
    cookie = browser.login("alice", "of-alice").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    before = browser.cookie
    assert browser.login("alice", "of-alice").status == 200
    assert browser.cookie != before
    again = Browser(secured.broker.page_port)
    again.cookie = before
    assert again.get("/api/session").body["in"] is False
    assert browser.post("/api/logout", {}).status == 200
    assert browser.get("/api/groups").status == 401


def test_who_may_read_sees_leases_and_records(alice: Browser, leased: Member) -> None:
    look = alice.look("/api/groups")
    (group,) = look["groups"]
    assert (group["group_id"], group["members"], group["lag"]) == ("workers", 1, 10)
    detail = alice.look("/api/group", group="workers")
    (window,) = detail["windows"]
    assert (window["source"], window["start"], window["log_end"]) == ("leader", 0, 10)
    held = [run for run in window["runs"] if run[4] is not None]
    assert {run[4] for run in held} == {leased.name}
    assert all(0 < run[5] <= 30_000 for run in held)
    assert [run[:4] for run in window["runs"] if run[2] == 0] == [[4, 4, 0, 1]]
    assert sum(run[1] - run[0] + 1 for run in held) == 9
    found = alice.get(
        "/api/records", group="workers", topic="jobs", partition=0, states="available,acquired"
    ).body
    assert [(each["offset"], each["state"], each["deliveries"]) for each in found["records"]][2:6] == [
        (2, "acquired", 2), (3, "acquired", 2), (4, "available", 1), (5, "acquired", 1),
    ]  # fmt: skip
    assert found["records"][0]["value"] == {"text": "x", "cut": False, "bytes": 1}
    assert alice.get("/api/poison", group="workers").body["runs"] == []


def test_who_may_alter_the_group_pauses_it_and_sees_why_records_wait(alice: Browser) -> None:
    asked = {"group": "workers", "confirm": "workers"}
    detail = alice.look("/api/group", group="workers")
    assert (detail["operations"]["alter_configs"], detail["waits"], detail["paused"]) == (True, [], "")
    assert alice.post("/api/pause", asked).status == 200
    assert alice.look("/api/group", group="workers")["paused"] == "paused until it is resumed"
    assert alice.post("/api/resume", asked).status == 200
    assert alice.look("/api/group", group="workers")["paused"] == ""


def test_who_may_describe_sees_no_records_and_does_nothing(bob: Browser) -> None:
    detail = bob.look("/api/group", group="workers")
    assert detail["operations"] == {"read": False, "delete": False, "alter_configs": False}
    assert detail["windows"][0]["source"] == "leader"
    assert detail["waits"] == [
        "why records wait is not known: GROUP_AUTHORIZATION_FAILED: "
        "the right DESCRIBE_CONFIGS on group workers is missing"
    ]
    refused = bob.get("/api/records", group="workers", topic="jobs", partition=0, states="acquired,available")
    assert (refused.status, refused.body["code"]) == (403, "TOPIC_AUTHORIZATION_FAILED")
    assert bob.get("/api/poison", group="workers").body["runs"] is None
    for path, more in (
        ("delete-group", {}),
        ("delete-offsets", {"topic": "jobs"}),
        ("pause", {}),
        ("resume", {}),
    ):
        answer = bob.post(f"/api/{path}", {"group": "workers", "confirm": "workers", **more})
        assert (answer.status, answer.body["code"]) == (403, "GROUP_AUTHORIZATION_FAILED")
    answer = bob.post("/api/reset", {"group": "workers", "to": "earliest", "confirm": "workers"})
    assert answer.status == 403


def test_who_may_nothing_sees_nothing(carol: Browser) -> None:
    assert carol.look("/api/groups")["groups"] == []
    assert carol.look("/api/group", group="workers")["code"] == "GROUP_ID_NOT_FOUND"
    assert carol.get("/api/records", group="workers", topic="jobs", states="new").status == 404
    assert carol.get("/api/letters", topic="jobs").status == 403
    assert carol.get("/api/letter-topics").body == {"topics": []}


def test_a_group_with_members_is_neither_reset_nor_deleted(alice: Browser) -> None:
    for path, more in (("reset", {"to": "earliest"}), ("delete-group", {})):
        answer = alice.post(f"/api/{path}", {"group": "workers", "confirm": "workers", **more})
        assert (answer.status, answer.body["code"]) == (502, "NON_EMPTY_GROUP")


def test_users_are_bounded(secured: RunningBroker) -> None:
    most = int(SECURED["sharecore.page.sessions.max"])
    browsers = [Browser(secured.broker.page_port) for _ in range(most + 1)]
    assert [each.login("bob", "of-bob").status for each in browsers] == [200] * most + [429]
    # nothing is left of the refused one: when another one goes, there is room again
    browsers[0].post("/api/logout", {})
    assert browsers[most].login("bob", "of-bob").status == 200
    for each in browsers:
        each.post("/api/logout", {})
