"""Cross-site requests are blocked, and resources are bounded."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from tests.harness.browser import Browser
from tests.harness.running import RunningBroker
from tests.unit.page.conftest import SECURED, start

from sharecore.broker.broker import Broker
from sharecore.network import Connection
from sharecore.page.settings import PageConfig
from sharecore.security.certificates import Authority


@pytest.fixture
def alice(browser: Browser) -> Iterator[Browser]:
    assert browser.login("alice", "of-alice").status == 200
    yield browser
    browser.post("/api/logout", {})


def test_every_answer_lets_nothing_in_from_elsewhere(browser: Browser) -> None:
    for path, status in (("/", 200), ("/assets/app.js", 200), ("/api/groups", 401), ("/none", 404)):
        answer = browser.get(path)
        assert answer.status == status
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in answer.headers
    assert browser.get("/api/session").headers["cache-control"] == "no-store"


def test_files_are_the_pages_own(browser: Browser) -> None:
    page = browser.get("/").body.decode()
    assert "http:" not in page
    assert "https:" not in page
    etag = browser.get("/assets/app.js").headers["etag"]
    assert browser.ask("GET", "/assets/app.js", headers={"if-none-match": etag}).status == 304
    for path in ("/assets/../app.py", "/assets/%2e%2e%2fapp.py", "/assets/__init__.py", "/assets/"):
        assert browser.get(path).status == 404


@pytest.mark.parametrize("name", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""])
def test_a_foreign_name_is_not_answered_to(browser: Browser, name: str) -> None:
    assert browser.ask("GET", "/api/session", headers={"host": name}).status == 421


@pytest.mark.parametrize("name", ["localhost:1", "127.0.0.1", "[::1]:80"])
def test_names_of_this_machine_are(browser: Browser, name: str) -> None:
    assert browser.ask("GET", "/api/session", headers={"host": name}).status == 200


FORGED = [
    {"x_csrf_token": ""},
    {"x_csrf_token": "of somebody else"},
    {"content_type": "text/plain"},
    {"content_type": "application/x-www-form-urlencoded"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"origin": "http://evil.example"},
    {"origin": "null"},
]


@pytest.mark.parametrize("headers", FORGED)
def test_what_does_not_come_from_the_page_changes_nothing(alice: Browser, headers: dict[str, str]) -> None:
    for path in ("delete-group", "reset", "redrive", "delete-offsets", "logout"):
        answer = alice.post(f"/api/{path}", {"group": "none", "confirm": "none"}, **headers)
        assert (answer.status, answer.body["error"]) == (403, "this request does not come from the page")
    assert alice.get("/api/session").body["in"] is True


@pytest.mark.parametrize("headers", FORGED[2:])
def test_nobody_is_logged_in_from_elsewhere(browser: Browser, headers: dict[str, str]) -> None:
    credentials = {"user": "alice", "password": "of-alice", "mechanism": "PLAIN"}
    assert browser.post("/api/login", credentials, **headers).status == 403


def test_actions_take_no_get(alice: Browser) -> None:
    for path in ("delete-group", "reset", "redrive", "delete-offsets", "logout", "login"):
        assert alice.get(f"/api/{path}", group="workers", confirm="workers").status == 405


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "no JSON"),
        (b"[" * 60_000, "no JSON"),
        (b"[]", "object"),
        (json.dumps({"group": 5}).encode(), "group: must be a string"),
        (json.dumps({"group": "none"}).encode(), "confirm: must be 'none'"),
        (json.dumps({"group": "none", "confirm": "nona"}).encode(), "confirm: must be 'none'"),
    ],
)
def test_what_makes_no_sense_is_said(alice: Browser, body: bytes, said: str) -> None:
    headers = {"content-type": "application/json", "x-csrf-token": alice.csrf}
    answer = alice.ask("POST", "/api/delete-group", body, headers)
    assert answer.status == 400
    assert said in answer.body["error"]


def test_a_request_has_a_size(alice: Browser) -> None:
    answer = alice.post("/api/delete-group", {"group": "x" * 100_000})
    assert answer.status == 413
    with socket.create_connection(("127.0.0.1", alice.port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000)
        assert connection.recv(64).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "values",
    [
        {"states": ""},
        {"states": "new,gone"},
        {"states": "new", "partition": "-1"},
        {"states": "new", "partition": "9" * 30},
        {"states": "new", "first": "1e3"},
        {"states": "new", "most": "101"},
        {"states": "new", "topic": "x" * 2000},
    ],
)
def test_numbers_and_names_have_bounds(alice: Browser, values: dict[str, str]) -> None:
    assert alice.get("/api/records", **{"group": "workers", "topic": "jobs"} | values).status == 400


def test_streams_of_a_user_are_bounded_and_end_with_the_session(
    secured: RunningBroker, alice: Browser
) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(alice.open("GET", "/api/groups")) for _ in range(8)]
        assert [each.status for each in streams] == [200] * 8
        assert alice.get("/api/groups").status == 429
        bob = Browser(secured.broker.page_port)
        assert bob.login("bob", "of-bob").status == 200
        assert bob.look("/api/groups")["total"] >= 0
        bob.post("/api/logout", {})
        assert alice.post("/api/logout", {}).status == 200
        for each in streams:
            assert b"event: ended" in each.read()
    assert alice.login("alice", "of-alice").status == 200
    # closed ones have freed their room
    for _ in range(10):
        alice.look("/api/groups")


@pytest.mark.heavy
def test_names_may_be_added_and_sessions_end_by_themselves(tmp_path: Path) -> None:
    more = {"sharecore.page.hosts": "queues.example", "sharecore.page.session.idle.ms": "1000"}
    running = start(tmp_path, SECURED | more)
    try:
        browser = Browser(running.broker.page_port)
        assert browser.ask("GET", "/api/session", headers={"host": "queues.example"}).status == 200
        assert browser.login("alice", "of-alice").status == 200
        running.until(lambda broker: any(each.principal.name == "alice" for each in connections(broker)))
        # its connections are closed too, without a request
        running.until(lambda broker: not any(each.principal.name == "alice" for each in connections(broker)))
        assert browser.get("/api/session").body["in"] is False
    finally:
        running.stop()


@pytest.mark.heavy
def test_connections_of_the_page_have_bounds(tmp_path: Path) -> None:
    bounds = {
        "sharecore.page.connections.max": "8",
        "sharecore.page.request.max.bytes": "2048",
        "sharecore.page.request.timeout.ms": "500",
    }
    running = start(tmp_path, SECURED | bounds)
    try:
        browser = Browser(running.broker.page_port)
        with ExitStack() as stack:
            idle = [stack.enter_context(connected(browser)) for _ in range(24)]
            assert browser.login("alice", "of-alice").status == 200
            for each in idle:
                assert is_closed(each), "beyond the eighth, and after half a second"
            half = stack.enter_context(connected(browser))
            half.sendall(
                b"POST /api/login HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
            )
            assert is_closed(half)
            long = stack.enter_context(connected(browser))
            long.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 3000)
            assert long.recv(64).startswith(b"HTTP/1.1 400")
    finally:
        running.stop()


def is_closed(connection: socket.socket) -> bool:
    """Wait until the other side closes a connection, whatever it sends before."""
    with suppress(ConnectionError):
        while connection.recv(1024):
            pass
    return True


@contextmanager
def connected(browser: Browser) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", browser.port), timeout=20) as connection:
        yield connection


@pytest.mark.heavy
def test_wrong_logins_keep_no_right_one_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharecore.broker.page.PageConfig", partial(PageConfig, login_pause_s=0.05))
    running = start(tmp_path / "data", SECURED)
    ports = running.broker.page_port

    def wrong(number: int) -> int:
        user = "alice" if number % 2 else f"nobody-{number}"
        return Browser(ports).post("/api/login", {"user": user, "password": "x", "mechanism": "PLAIN"}).status

    try:
        with ThreadPoolExecutor(60) as threads:
            refused = [threads.submit(wrong, number) for number in range(60)]
            wait(refused, return_when=FIRST_COMPLETED)
            for user in ("bob", "alice"):
                for _ in range(100):  # as the response asks for
                    status = Browser(ports).login(user, f"of-{user}").status
                    if status != 429:
                        break
                assert status == 200
            codes = {each.result() for each in refused}
    finally:
        running.stop()
    assert codes == {401, 429}


def test_a_page_with_tls_asks_browsers_for_no_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates", days=1)
    authority.issue("localhost", file="broker", hosts=["localhost", "127.0.0.1"])
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "certificates/broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "certificates/ca.pem"),
        "ssl.client.auth": "required",
        "sharecore.page.listener": "https://127.0.0.1:0",
    }
    running = start(tmp_path / "data", SECURED | settings)
    try:
        browser = Browser(running.broker.page_port)
        browser.trusted = ssl.create_default_context(cafile=str(tmp_path / "certificates/ca.pem"))
        answer = browser.login("alice", "of-alice")
        assert (answer.status, "strict-transport-security" in answer.headers) == (200, True)
        assert "secure" in answer.headers["set-cookie"].lower().split("; ")
        assert browser.get("/api/session").body["user"] == "alice"
    finally:
        running.stop()


@pytest.mark.process
def test_nothing_of_it_is_loaded_unasked() -> None:
    code = (
        "import sys, sharecore.broker.process.run, sharecore.cli.app\n"
        "print([name for name in sys.modules if name.startswith(('starlette', 'uvicorn', 'sharecore.page'))])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def connections(broker: Broker) -> list[Connection]:
    return [each for each in broker.server.connections.values() if each.principal is not None]
