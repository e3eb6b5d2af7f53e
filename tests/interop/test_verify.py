"""`sharecore verify --nemesis`: a broker of its own, a workload, faults, and what they prove."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.harness.broker import SHARECORE, Broker
from tests.harness.clients import create_topic

QUICK = ("--minutes", "0.1", "--workers", "4", "--producers", "4", "--topics", "1", "--rate", "200")


@pytest.mark.timeout(300)
def test_a_run_with_faults_proves_something_and_finds_no_breach(tmp_path: Path) -> None:
    arguments = ["--nemesis", *QUICK, "--seed", "11", "-o", "run.jsonl", "--report", "run.html"]
    done = subprocess.run(
        [SHARECORE, "verify", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        env=os.environ | {"SHARECORE_BOOTSTRAP_SERVER": ""},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("no breach\n")
    assert "seed 11" in done.stderr
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert lines[0]["seed"] == 11
    ops = {line["op"] for line in lines if line.get("outcome") == "ok"}
    assert ops >= {"send", "read", "take", "settle", "offsets", "admin", "quiet", "ends", "leave"}
    assert "held" in (tmp_path / "run.html").read_text()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path / "broker")
    broker.start()
    yield broker
    broker.kill()


def groups(broker: Broker) -> list[str]:
    command = [SHARECORE, "groups", "list", "-b", broker.bootstrap, "-o", "json"]
    listed = subprocess.run(command, check=True, capture_output=True)
    return [each["group"] for each in json.loads(listed.stdout)]


def test_a_group_that_exists_is_refused_and_stays(broker: Broker, tmp_path: Path) -> None:
    create_topic(broker.bootstrap, "jobs")
    consume = [SHARECORE, "consume", "jobs", "--group", "mine", "-b", broker.bootstrap, "--idle", "0.1"]
    subprocess.run(consume, check=True, capture_output=True)
    command = [SHARECORE, "verify", "-b", broker.bootstrap, *QUICK, "--group", "mine"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "there is a share group mine already" in refused.stderr
    assert groups(broker) == ["mine"]


def test_a_run_that_is_cut_short_leaves_nothing_behind(broker: Broker, tmp_path: Path) -> None:
    history, until = tmp_path / "run.jsonl", time.monotonic() + 60
    command = [SHARECORE, "verify", "-b", broker.bootstrap, *QUICK, "--minutes", "60", "-o", str(history)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        while not history.exists() or '"take"' not in history.read_text():
            assert time.monotonic() < until
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        while "ending the load" not in running.stderr.readline():
            assert time.monotonic() < until
        running.send_signal(signal.SIGINT)
        errors = running.communicate(timeout=60)[1]
    assert running.returncode == 130, errors
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert [name for name in admin.list_topics(timeout=20).topics if name.startswith("verify")] == []
    assert groups(broker) == []


@pytest.mark.long
@pytest.mark.timeout(300)
def test_ctrl_c_ends_the_load_and_checks_what_there_is(tmp_path: Path) -> None:
    command = [SHARECORE, "verify", "--nemesis", *QUICK, "--minutes", "60", "-o", "run.jsonl"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        until = time.monotonic() + 60
        while not (tmp_path / "run.jsonl").exists() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1)
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate(timeout=280)
    assert running.returncode == 0, (output + errors).decode()
    assert output.endswith(b"no breach\n")
    assert b"ending the load" in errors
