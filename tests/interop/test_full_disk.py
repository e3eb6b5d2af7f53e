"""What the user sees of a disk that is full: no file grows, as where there is no room."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.harness.broker import QUICK_GROUPS, SHARECORE, Broker, free_port
from tests.harness.browser import Browser
from tests.harness.clients import (
    REJECT,
    configure_group,
    create_topic,
    produce,
    settle,
    share_consumer,
)

UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
SETTINGS = {
    "errors.deadletterqueue.auto.create.topics.enable": "true",
    "sharecore.page.actions": "everyone",
    "share.coordinator.write.timeout.ms": "500",
}


@pytest.fixture(scope="module")
def ports() -> tuple[int, int]:
    """Of the metrics and of the page."""
    return free_port(), free_port()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, ports: tuple[int, int]) -> Iterator[Broker]:
    """One with five dead letters."""
    listeners = ("sharecore.metrics.listener", "sharecore.page.listener")
    own = {name: f"127.0.0.1:{port}" for name, port in zip(listeners, ports, strict=True)}
    made = Broker(tmp_path_factory.mktemp("full"), settings=QUICK_GROUPS | SETTINGS | own)
    made.start()
    create_topic(made.bootstrap, "jobs")
    settings = {"share_auto_offset_reset": "earliest", "errors_deadletterqueue_topic_name": "dlq.jobs"}
    configure_group(made.bootstrap, "workers", **settings, errors_deadletterqueue_copy_record_enable=True)
    produce(made.bootstrap, "jobs", [b"bad"] * 5)
    with share_consumer(made.bootstrap, "workers", ["jobs"]) as consumer:
        settle(consumer, 5, lambda _: REJECT)
    until = time.monotonic() + 20
    while "5" not in sharecore(made, "dlq", "list").stdout:
        assert time.monotonic() < until, "no letters"
        time.sleep(0.1)
    yield made
    assert made.terminate() == 0, made.read_log()[-4000:]


@contextmanager
def full_disk(broker: Broker) -> Iterator[None]:
    """The broker's disk takes nothing more for a while."""
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, UNLIMITED)


def no_room() -> None:
    """For a program that is about to start: its disk takes nothing."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def sharecore(
    broker: Broker, *arguments: str, output: Path | None = None, no_room_here: bool = False
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"SHARECORE_BOOTSTRAP_SERVER": broker.bootstrap}
    with (output or Path(os.devnull)).open("w") as file:
        return subprocess.run(
            [SHARECORE, *arguments],
            stdout=subprocess.PIPE if output is None else file,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env=environment,
            preexec_fn=no_room if no_room_here else None,
        )


def failed(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """It ended with status 1 and one line that has these words."""
    assert done.returncode == 1, done
    assert done.stderr.startswith("sharecore: "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("room", [0, 1000])
def test_a_broker_that_is_started_there(tmp_path: Path, room: int) -> None:
    command = [SHARECORE, "serve", "--data-dir", str(tmp_path / "data"), "--port", "0"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("sharecore: ")
    assert "File too large" in last
    assert str(tmp_path / "data") in last
    assert "Traceback" not in done.stderr


def test_a_broker_says_that_it_is_not_ready(broker: Broker, ports: tuple[int, int]) -> None:
    def ready() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/readyz", timeout=20) as page:
                return page.status, page.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    with full_disk(broker):
        time.sleep(1.1)
        status, text = ready()
        assert status == 503
        assert "File too large" in json.loads(text)["reason"]
    time.sleep(1.1)
    assert ready()[0] == 200


def test_metrics_are_exported_all_the_same(broker: Broker) -> None:
    with full_disk(broker):
        done = sharecore(broker, "export-metrics", "--once")
    assert done.returncode == 0
    assert "sharecore_exporter_up 1.0" in done.stdout


def test_metrics_that_find_no_room(broker: Broker) -> None:
    done = sharecore(broker, "export-metrics", "--once", output=Path("/dev/full"))
    failed(done, "No space left on device")


def told_at_once(done: subprocess.CompletedProcess[str], count: int) -> None:
    """It said what the broker answers and until when it tries again, and why it failed in the end."""
    assert (done.returncode, done.stdout) == (1, "")
    first, last = done.stderr.splitlines()
    why = "sharecore: Broker: Disk error when trying to access log file on disk"
    assert re.fullmatch(rf"{why}; what is not written is tried again until \d\d:\d\d:\d\dZ", first), first
    assert last.startswith(f"sharecore: {count} of {count} records were not written: Broker: Disk error")


def test_records_are_tried_until_there_is_room(broker: Broker) -> None:
    create_topic(broker.bootstrap, "values")
    command = [SHARECORE, "produce", "-b", broker.bootstrap, "values", "one", "two"]
    with full_disk(broker):
        told_at_once(sharecore(broker, "produce", "values", "a", "b", "-X", "delivery.timeout.ms=1500"), 2)
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert waiting.stderr is not None
        assert "tried again until" in waiting.stderr.readline()
    assert waiting.communicate(timeout=40) == ("2 records written to values\n", "")


def test_what_is_not_settled_is_said(broker: Broker) -> None:
    create_topic(broker.bootstrap, "unsettled")
    configure_group(broker.bootstrap, "settlers", share_auto_offset_reset="earliest")
    produce(broker.bootstrap, "unsettled", [b"job"] * 2000)
    consume = ("consume", "unsettled", "-g", "settlers")
    words = [SHARECORE, *consume, "-b", broker.bootstrap]
    showing = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert showing.stdout is not None
    first = showing.stdout.readline()
    assert first == "unsettled-0@0  delivery 1  accepted  job\n"
    with full_disk(broker):
        shown, told = showing.communicate(timeout=60)
    failed(
        subprocess.CompletedProcess(words, showing.returncode, shown, told),
        "unsettled-0: not settled, what is shown of it may come again: ",
    )
    again = sharecore(broker, *consume, "--max", "2000", "--idle", "2").stdout
    seen = {line.split()[0] for line in (first + shown + again).splitlines()}
    assert seen == {f"unsettled-0@{offset}" for offset in range(2000)}


def test_letters_stay_until_there_is_room(broker: Broker, tmp_path: Path) -> None:
    create_topic(broker.bootstrap, "again")
    redrive = ("dlq", "redrive", "dlq.jobs", "--to", "again")
    with full_disk(broker):
        told_at_once(sharecore(broker, *redrive, "-X", "message.timeout.ms=1500"), 5)
    # progress is written to another disk
    progress = tmp_path / "progress"
    failed(
        sharecore(broker, *redrive, "--progress", str(progress), no_room_here=True),
        str(progress),
        "File too large",
    )
    assert not progress.exists()
    done = sharecore(broker, *redrive, "--progress", str(progress))
    assert done.returncode == 0, done.stderr
    assert "5" in done.stdout


def test_an_action_on_the_page(broker: Broker, ports: tuple[int, int]) -> None:
    browser = Browser(ports[1])
    browser.csrf = browser.get("/api/session").body["csrf"]
    wanted = {"group": "workers", "topics": ["jobs"], "to": "earliest"}
    with full_disk(broker):
        answer = browser.post("/api/reset", wanted)
        assert answer.body
    assert browser.post("/api/reset", wanted).status == 200
