"""`sharecore doctor`: its findings, and what its bundle omits."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from click.testing import Result
from tests.harness.broker import free_port
from tests.harness.running import RunningBroker
from tests.unit.broker.share_member import Member, produce
from typer.testing import CliRunner

from sharecore.admin.doctor import configuration, without_secrets
from sharecore.cli.app import app
from sharecore.protocol import ApiKey

pytestmark = pytest.mark.process


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sharecore", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=cwd, check=False)


def run_here(*arguments: str) -> Result:
    """Run it in this process, with enough time for a cluster on a busy machine."""
    return CliRunner().invoke(app, ["doctor", *arguments, "-X", "default.api.timeout.ms=60000"])


@pytest.mark.parametrize(
    ("settings", "level", "word"),
    [
        ({"num.partition": "4"}, "bad", "num.partition is not a setting"),
        ({"acme.audit.topic": "4"}, "doubt", "acme.audit.topic is not a setting"),
        ({"num.network.threads": "4"}, "doubt", "num.network.threads"),
        ({"num.partitions": "many"}, "bad", "not an integer"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "doubt", "takes anybody"),
        (
            {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://localhost:9092"},
            "doubt",
            "sends clients to localhost",
        ),
        ({"sharecore.durability": "os"}, "doubt", "loss of power"),
        ({"sharecore.bucket.url": "file:///mnt/queue"}, "good", "a copy goes to file:///mnt/queue"),
        (
            {"sharecore.bucket.url": "file:///mnt/queue", "sharecore.durability": "bucket"},
            "good",
            "confirmed writes are in file:///mnt/queue",
        ),
        ({}, "good", "a broker starts"),
    ],
)
def test_what_is_said_of_settings(settings: dict[str, str], level: str, word: str) -> None:
    assert [each for each in configuration(settings) if each.level == level and word in each.what] != []


def test_a_whole_directory_a_damaged_one_and_none(tmp_path: Path) -> None:
    data = tmp_path / "data"
    broker = RunningBroker(data).start()
    asked = {"name": "t", "num_partitions": 2, "replication_factor": 1}
    broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    produce(broker, "t", 5)
    # beside the running broker
    ended = run("--data-dir", str(data), cwd=tmp_path)
    broker.stop()
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "4 topics with 56 partitions" in ended.stdout

    (journal,) = [path for path in data.rglob("*") if path.is_file() and path.stat().st_size > 500]
    content = bytearray(journal.read_bytes())
    content[300] ^= 255
    journal.write_bytes(content)
    ended = run("--data-dir", str(data), cwd=tmp_path)
    assert ended.returncode == 1
    assert "BAD   data directory" in ended.stdout
    assert f"sharecore store check {data}" in ended.stdout

    (data / "format").write_text("format=1000\nrelease=9.8.7\n")
    ended = run("--data-dir", str(data), cwd=tmp_path)
    assert ended.returncode == 1
    assert "run 9.8.7 or later" in ended.stdout
    assert "store check" not in ended.stdout

    ended = run("--data-dir", str(tmp_path / "none"), cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert "is not a directory" in ended.stdout


def test_a_cluster_with_a_group_that_nobody_serves(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path / "data").start()
    try:
        asked = {"name": "t", "num_partitions": 1, "replication_factor": 1}
        broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
        configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
        resources = [{"resource_type": 32, "resource_name": "g", "configs": configs}]
        broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
        produce(broker, "t", 5)
        member = Member(broker, "g", "t")
        member.fetch(0)
        names = {"group_id": "g", "member_id": member.name, "subscribed_topic_names": None}
        member.client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **names, member_epoch=-1)
        ended = run_here("-b", f"127.0.0.1:{broker.port}")
        assert ended.exit_code == 0, ended.output
        assert "answers, 1 share group," in ended.stdout
        assert "group g: 5 records wait, and nobody is there to take them" in ended.stdout
        assert "paused" not in ended.stdout
        resources[0]["configs"] = [{"name": "share.paused", "config_operation": 0, "value": "true"}]
        broker.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
        ended = run_here("-b", f"127.0.0.1:{broker.port}")
        assert "group g: paused until it is resumed" in ended.stdout
        assert "groups resume" in ended.stdout
    finally:
        broker.stop()
    ended = run_here("-b", f"127.0.0.1:{free_port()}")
    assert ended.exit_code == 1
    assert "BAD   cluster" in ended.stdout


def test_the_environment_names_the_cluster_as_for_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHARECORE_BOOTSTRAP_SERVER", f"127.0.0.1:{free_port()}")
    ended = CliRunner().invoke(app, ["doctor", "-X", "default.api.timeout.ms=1000"])
    assert ended.exit_code == 1
    assert "BAD   cluster" in ended.stdout


def test_the_bundle_holds_no_secret_and_no_record(tmp_path: Path) -> None:
    secrets = {
        "ssl.keystore.password": "planted-1",
        "listener.name.safe.plain.sasl.jaas.config": "planted-2",
        "group.share.persister.api.token": "planted-3",
        "ssl.keystore.key": "planted-4",
        "what.nobody.knows": "planted-5",
    }
    assert set(without_secrets(secrets).values()) == {"[hidden]"}
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=7\n" + "".join(f"{name}={value}\n" for name, value in secrets.items()))
    broker = RunningBroker(tmp_path / "data").start()
    asked = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    broker.ask(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000)
    produce(broker, "t", 5)
    broker.stop()
    bundle = tmp_path / "support.tar.gz"
    run("-c", str(file), "--data-dir", str(tmp_path / "data"), "--bundle", str(bundle), cwd=tmp_path)
    with tarfile.open(bundle) as archive:
        contents = {
            Path(each.name).name: extracted.read().decode()
            for each in archive.getmembers()
            if (extracted := archive.extractfile(each)) is not None
        }
    assert contents.keys() == {"findings.json", "versions.json", "settings.json", "files.json"}
    assert json.loads(contents["settings.json"])["num.partitions"] == "7"
    assert json.loads(contents["files.json"])
    assert "planted" not in "".join(contents.values())


def test_a_file_of_client_settings_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    gone = tmp_path / "client.properties"
    ended = run_here("-b", "127.0.0.1:1", "--command-config", str(gone))
    assert ended.exit_code == 1
    assert f"cluster: {gone}: cannot be read: No such file or directory" in ended.stdout
