"""The command line, in a separate process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.harness.broker import ROOT, answers, free_port

from sharecore.cli.serve import advertised
from sharecore.errors import ConfigError
from sharecore.security.certificates import Authority

pytestmark = pytest.mark.process

SHARECORE = [sys.executable, "-m", "sharecore"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SHARECORE, *arguments], capture_output=True, text=True, timeout=30, check=False)


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*SHARECORE, "serve", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_help_teaches() -> None:
    text = run("serve", "--help").stdout
    for word in ("--config", "--set", "--data-dir", "--durability", "server.properties", "localhost:9092"):
        assert word in text


@pytest.mark.parametrize(
    ("addresses", "properties", "setting"),
    [
        (["h:1"], {}, "PLAINTEXT://h:1"),
        (["h:1"], {"listeners": "SSL://:9093"}, "SSL://h:1"),
        (["h:1"], {"listeners": "A://:1, C://:2", "controller.listener.names": "x, c"}, "A://h:1"),
        (["b://h:1", "A://h:2"], {"listeners": "A://:1,B://:2"}, "b://h:1,A://h:2"),
    ],
)
def test_what_clients_are_told_is_of_a_listener(
    addresses: list[str], properties: dict[str, str], setting: str
) -> None:
    assert advertised(addresses, properties) == setting


def test_of_several_listeners_one_is_named() -> None:
    with pytest.raises(ConfigError, match="several listeners; allowed: A://h:1 or B://h:1"):
        advertised(["h:1"], {"listeners": "A://:1,B://:2"})


def test_the_version() -> None:
    assert run("--version").stdout.startswith("sharecore 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--set", "num.partitions=none"],
            "num.partitions=none: not an integer; allowed: an integer, at least 1",
        ),
        (["--set", "num.partitions"], "--set num.partitions: no setting; allowed: KEY=VALUE"),
        (["--config", "no-such-file"], "no-such-file: cannot be read"),
        (["--durability", "maybe"], "sharecore.durability=maybe"),
        (["--log-level", "loud"], "--log-level loud"),
        (["--log-format", "xml"], "--log-format xml: unknown; allowed: one of text, json"),
        (
            ["--metrics-listener", "here"],
            "sharecore.metrics.listener=here: not an address; allowed: empty, or",
        ),
        (["--set", "listeners=SSL://localhost:9093"], "sharecore certs"),
    ],
)
def test_what_cannot_stand_is_refused(arguments: list[str], message: str, tmp_path: Path) -> None:
    ended = run("serve", "--data-dir", str(tmp_path), *arguments)
    assert ended.returncode == 2
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://localhost:1\nnum.io.threads=3\nacme.audit=3\nnode.id=4\n")
    broker = start(
        "-c", str(file), "--port", str(port), "--data-dir", str(tmp_path / "data"), "--set", "node.id=5"
    )
    assert broker.stdout is not None
    line = broker.stdout.readline()
    assert f"localhost:{port} (node 5 of cluster" in line
    assert f"data in {tmp_path / 'data'}, durability fsync" in line
    assert answers(port, timeout=10)
    broker.send_signal(signal.SIGTERM)
    _, log = broker.communicate(timeout=20)
    assert broker.returncode == 0
    assert "acme.audit is not a setting" in log
    assert "no effect: num.io.threads: Apache's threads and buffers" in log


def test_the_log_is_json_from_the_first_line_to_the_last(tmp_path: Path) -> None:
    words = ["--log-format", "json", "--host", "127.0.0.1", "--port", "0"]
    broker = start(*words, "--data-dir", str(tmp_path / "data"))
    assert broker.stderr is not None
    line = json.loads(broker.stderr.readline())
    while not line["message"].startswith("sharecore serves 127.0.0.1:"):
        line = json.loads(broker.stderr.readline())
    broker.send_signal(signal.SIGTERM)
    printed, log = broker.communicate(timeout=20)
    assert printed == ""
    assert [json.loads(line)["message"] for line in log.splitlines()][-1] == "stopped"
    ended = run("serve", *words, "--data-dir", str(tmp_path / "file" / "data"), "--set", "num.partitions=x")
    assert [json.loads(line)["level"] for line in ended.stderr.splitlines()] == ["error"]


def test_an_ephemeral_broker_keeps_nothing(tmp_path: Path) -> None:
    environment = os.environ | {"SHARECORE_LOG_DIRS": str(tmp_path / "of-the-image")}
    words = [*SHARECORE, "serve", "--ephemeral", "--print-address", "--stop-with-stdin"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=environment, stdin=pipe, stdout=pipe, stderr=pipe) as broker:
        assert broker.stdin is not None
        assert broker.stdout is not None
        address = json.loads(broker.stdout.readline())
        assert answers(int(address["listeners"]["PLAINTEXT"].rpartition(":")[2]), timeout=10)
        broker.stdin.close()
        assert broker.wait(20) == 0
    assert not Path(address["data_dir"]).parent.exists()
    assert list(tmp_path.iterdir()) == []
    for options in (["--data-dir", "data"], ["--set", "log.dirs=data"]):
        refused = run("serve", "--ephemeral", *options)
        assert (refused.returncode, "--ephemeral keeps no data" in refused.stderr) == (2, True)


def test_an_error_of_the_system_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = run("serve", "--port", "0", "--data-dir", str(tmp_path / "file"))
    assert (ended.returncode, ended.stderr) == (
        1,
        f"sharecore: {tmp_path / 'file'}: it is there already, and no directory\n",
    )


def test_a_port_in_use_and_a_directory_of_another_node(tmp_path: Path) -> None:
    port = free_port()
    broker = start("--port", str(port), "--host", "127.0.0.1", "--data-dir", str(tmp_path / "a"))
    try:
        assert broker.stdout is not None
        broker.stdout.readline()
        second = run("serve", "--port", str(port), "--host", "127.0.0.1", "--data-dir", str(tmp_path / "b"))
        assert second.returncode == 1
        assert f"cannot listen on 127.0.0.1:{port}: another process uses this port" in second.stderr
        assert "Traceback" not in second.stderr
    finally:
        broker.send_signal(signal.SIGINT)
        broker.communicate(timeout=20)
    assert broker.returncode == 0
    other = run("serve", "--port", "0", "--data-dir", str(tmp_path / "a"), "--node-id", "9")
    assert other.returncode == 2
    assert "belongs to another node; allowed: 1" in other.stderr


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    port = free_port()
    broker = start("--port", str(port), "--host", "127.0.0.1", "--data-dir", str(tmp_path))
    assert broker.stdout is not None
    broker.stdout.readline()
    request = struct.pack(">hhih", 18, 0, 1, -1)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as deaf:
        # unread responses: the broker gives them a second before it stops
        deaf.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while True:
                deaf.sendall((struct.pack(">i", len(request)) + request) * 1000)
        broker.send_signal(signal.SIGINT)
        assert broker.stderr is not None
        assert any("SIGINT: stopping" in line for line in broker.stderr)
        broker.send_signal(signal.SIGINT)
        broker.communicate(timeout=20)
    assert broker.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize("is_ignored", [False, True], ids=["terminal", "nohup"])
def test_a_hangup_stops_it_cleanly_unless_it_is_ignored(tmp_path: Path, *, is_ignored: bool) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if is_ignored else signal.SIG_DFL)
    try:
        broker = start("--port", "0", "--host", "127.0.0.1", "--data-dir", str(tmp_path / "data"))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert broker.stdout is not None
    port = int(re.search(r":(\d+) ", broker.stdout.readline())[1])  # type: ignore[index]
    broker.send_signal(signal.SIGHUP)
    if is_ignored:
        assert answers(port, timeout=10)
        broker.send_signal(signal.SIGTERM)
    _, log = broker.communicate(timeout=20)
    assert broker.returncode == 0
    assert ("SIGHUP: stopping" in log) is not is_ignored
    assert log.splitlines()[-1].endswith("stopped")


def test_a_hangup_reloads_certificates_of_a_broker_with_tls(tmp_path: Path) -> None:
    Authority(tmp_path, days=1).issue("localhost", file="broker", hosts=["localhost"])
    settings = ["listeners=SSL://localhost:0", "ssl.keystore.type=PEM", "sharecore.ssl.reload.interval.ms=0"]
    settings.append(f"ssl.keystore.location={tmp_path / 'broker.pem'}")
    broker = start("--data-dir", str(tmp_path / "data"), *(f"--set={setting}" for setting in settings))
    assert broker.stdout is not None
    assert broker.stderr is not None
    broker.stdout.readline()
    (tmp_path / "broker.pem").write_text("nothing of the kind")
    broker.send_signal(signal.SIGHUP)
    lines = [""]
    while "keeps its certificates" not in lines[-1]:
        lines.append(broker.stderr.readline())
        assert lines[-1], "it has stopped"
    broker.send_signal(signal.SIGTERM)
    _, log = broker.communicate(timeout=20)
    assert (broker.returncode, "SIGTERM: stopping" in log) == (0, True)
    # it loads them once at its start
    assert "reloaded" not in "".join(lines) + log


def test_what_is_kept_is_nobody_elses_to_read(tmp_path: Path) -> None:
    port, data = free_port(), tmp_path / "data"
    process = start("--port", str(port), "--data-dir", str(data))
    try:
        while not answers(port):
            assert process.poll() is None
            time.sleep(0.02)
        assert {path.stat().st_mode & 0o077 for path in (data, *data.rglob("*"))} == {0}
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.parametrize(
    ("keys", "is_restarted"), [("http://127.0.0.1:1/keys", True), ("ftp://localhost/keys", False)]
)
def test_systemd_restarts_a_broker_unless_a_setting_is_invalid(
    tmp_path: Path, keys: str, is_restarted: bool
) -> None:
    settings = [
        "listeners=SASL_PLAINTEXT://localhost:0",
        "sasl.enabled.mechanisms=OAUTHBEARER",
        f"sasl.oauthbearer.jwks.endpoint.url={keys}",
    ]
    done = run("serve", "--data-dir", str(tmp_path), *(f"--set={setting}" for setting in settings))
    assert done.stderr.startswith(f"sharecore: sasl.oauthbearer.jwks.endpoint.url={keys}: ")
    unit = (ROOT / "packaging/systemd/sharecore.service").read_text()
    assert "\nRestart=on-failure\n" in unit
    [kept] = re.findall(r"^RestartPreventExitStatus=(.+)$", unit, re.MULTILINE)
    assert (done.returncode not in {0, *map(int, kept.split())}) == is_restarted
