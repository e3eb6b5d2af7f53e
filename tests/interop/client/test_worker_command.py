"""Workers as a command: signals, to it and to the child processes of its handlers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.harness.broker import SHARECORE, Broker, free_port
from tests.harness.clients import produce
from tests.interop.client.receive import values

PROGRAM = """
import asyncio
from sharecore.client import worker

@worker({topic!r}, concurrency=2)
async def handle(record):
    print("began", record.offset, flush=True)
    await asyncio.sleep(2)
    print("ended", record.offset, flush=True)
"""


@pytest.mark.parametrize("signals", [1, 2])
def test_the_command(broker: Broker, topic: str, group: str, tmp_path: Path, signals: int) -> None:
    produce(broker.bootstrap, topic, values(6))
    (tmp_path / "jobs.py").write_text(PROGRAM.format(topic=topic))
    command = [SHARECORE, "work", "jobs:handle", "--group", group, "-b", broker.bootstrap]
    process = subprocess.Popen(
        [*command, "--log-format", "json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["began 0\n", "began 1\n"]
    for _ in range(signals):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
    out, log = process.communicate(timeout=20)
    assert process.returncode == 0, log
    events = Counter(json.loads(line).get("event") for line in log.splitlines())
    if signals == 1:
        assert out == "ended 0\nended 1\n"
        assert events["accepted"] == 2
    else:
        assert out == ""
        assert events["accepted"] == 0
    assert events["started"] == events["stopped"] == 1


def test_options_name_what_the_worker_needs(broker: Broker, topic: str, group: str, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(PROGRAM.format(topic=f"{topic}-created"))
    process = subprocess.Popen(
        [
            *(SHARECORE, "work", "jobs:handle", "-b", broker.bootstrap, "--group", f"{group}-new"),
            *("--create-topics", "--max-deliveries", "3"),
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    log = ""
    while "event=started" not in log:
        line = process.stderr.readline()
        assert line, log
        log += line
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert f"event=topic created worker=handle topic={topic}-created" in log
    assert "setting=share.auto.offset.reset=earliest" in log
    assert "setting=share.delivery.count.limit=3" in log


def test_nobody_at_the_address_is_said_again_and_again(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(PROGRAM.format(topic="jobs"))
    address = f"127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [SHARECORE, "work", "jobs:handle", "--group", "workers", "-b", address],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(2)]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 0
    for line in lines:
        assert "ERROR" in line, lines
        assert f"event=no answer worker=handle brokers={address} next_try_in_seconds=" in line, lines
        assert "error=Disconnected: NETWORK_EXCEPTION" in line, lines


FORKING = """
import multiprocessing, os, signal, subprocess, sys, time
from sharecore.client import worker

def square(number):
    return number * number

@worker({topic!r})
def handle(record):
    how = record.value.decode()
    if how == "pool":
        with multiprocessing.get_context("fork").Pool(2) as pool:
            said = pool.map(square, [1, 2, 3])
    elif how == "process":
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        child.start()
        child.terminate()
        child.join()
        said = child.exitcode
    elif how == "subprocess":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        child.terminate()
        said = child.wait()
    else:
        child = os.fork()
        if not child:
            time.sleep(60)
            os._exit(0)
        os.kill(child, signal.SIGINT)
        said = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(how, said, flush=True)
"""


def test_signals_to_a_child_of_a_handler_are_not_the_worker_s(
    broker: Broker, topic: str, group: str, tmp_path: Path
) -> None:
    produce(broker.bootstrap, topic, [b"pool", b"process", b"subprocess", b"process", b"pool"])
    (tmp_path / "jobs.py").write_text(FORKING.format(topic=topic))
    process = subprocess.Popen(
        [SHARECORE, "work", "jobs:handle", "--group", group, "-b", broker.bootstrap],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(5)]
    assert said == [
        "pool [1, 4, 9]\n",
        f"process {-signal.SIGTERM}\n",
        f"subprocess {-signal.SIGTERM}\n",
        f"process {-signal.SIGTERM}\n",
        "pool [1, 4, 9]\n",
    ]
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=20)
    assert process.returncode == 0, log
    assert log.count("event=accepted") == 5


BLOCKING = """
import asyncio, time
from sharecore.client import worker

@worker({topic!r}, drain_seconds=0.5)
async def handle(record):
    print("began", flush=True)
    if record.value == b"blocks":
        time.sleep(60)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("goes on", flush=True)
"""


@pytest.mark.parametrize("value", [b"blocks", b"ignores its cancellation"])
def test_a_second_signal_ends_a_worker_whatever_its_handler_does(
    broker: Broker, topic: str, group: str, tmp_path: Path, value: bytes
) -> None:
    produce(broker.bootstrap, topic, [value])
    (tmp_path / "jobs.py").write_text(BLOCKING.format(topic=topic))
    process = subprocess.Popen(
        [SHARECORE, "work", "jobs:handle", "--group", group, "-b", broker.bootstrap],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "began\n"
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode is not None
