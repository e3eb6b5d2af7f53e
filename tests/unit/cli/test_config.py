"""`sharecore config`, and settings from the environment."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sharecore.cli.logs import JsonLines
from sharecore.cli.serve import gather
from sharecore.config import BrokerConfig, Status, broker_keys, parse_properties, unknown_names
from sharecore.config.environment import settings_of, variable_of
from sharecore.config.example import example, explain
from sharecore.errors import ConfigError


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sharecore", "config", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=30, env=os.environ | variables, check=False
    )


def test_the_example_sets_nothing_and_names_everything_that_works() -> None:
    text = example()
    assert parse_properties(text) == {}
    taken = parse_properties(
        "\n".join(line.removeprefix("#") for line in text.splitlines() if line[1:2].strip())
    )
    assert unknown_names(taken) == []
    assert taken.keys() == {name for name, (_, key) in broker_keys().items() if key.status is Status.WORKS}
    given = {name: value for name, value in taken.items() if value}
    config = BrokerConfig.from_properties(given)
    default = BrokerConfig()
    assert [name for name in broker_keys() if config.value(name) != default.value(name)] == []


@pytest.mark.process
def test_a_file_that_can_stand(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=4\nssl.client.auth=none\nnum.network.threads=8\nacme.audit.topic=9\n")
    ended = run("check", str(file), SHARECORE_DURABILITY="os")
    assert (ended.returncode, ended.stderr) == (0, "")
    unknown, remark, environment, summary = ended.stdout.splitlines()
    assert unknown.startswith("unknown: acme.audit.topic:")
    assert remark.startswith("no effect: num.network.threads:")
    assert environment == "from the environment: sharecore.durability"
    assert summary == "3 settings with an effect; a broker would start with them"


@pytest.mark.process
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("num.partitions=none", "refused: num.partitions=none: not an integer"),
        ("listeners=nowhere", "refused: listeners=nowhere: not an address"),
        ("sharecore.metrics.listener=9464", "refused: sharecore.metrics.listener=9464: not an address"),
        ("log.dirs=a,b", "refused: log.dirs=a,b"),
        ("num.partition=9", "refused: num.partition: no setting of this broker or of Kafka's; did you mean"),
    ],
)
def test_a_file_that_cannot_stand(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text(line)
    ended = run("check", str(file))
    assert ended.returncode == 2
    assert ended.stderr.startswith(said)
    assert "allowed" in ended.stderr or "did you mean num.partitions?" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.process
def test_a_file_that_is_not_there() -> None:
    ended = run("check", "no-such-file")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("sharecore: no-such-file: cannot be read")


@pytest.mark.process
def test_explanations() -> None:
    text = explain("log.dirs")
    for word in ("data directory", "default      data", "SHARECORE_LOG_DIRS"):
        assert word in text
    assert explain("broker.id") == explain("node.id")
    assert "(group)" in explain("share.auto.offset.reset")
    assert "no effect" in explain("num.network.threads")
    ended = run("explain", "log.dri")
    assert ended.returncode == 1
    assert ended.stderr.strip() == (
        "sharecore: log.dri: no setting of this broker or of Kafka's; similar: log.dir, log.dirs"
    )


def test_every_key_can_be_explained_and_has_a_variable_of_its_own() -> None:
    for name in broker_keys():
        assert explain(name).startswith(f"{name} (broker): ")
    assert len({variable_of(name) for name in broker_keys()}) == len(broker_keys())


def test_the_environment_stands_over_the_file_and_under_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=1\nlog.dirs=file\nsharecore.durability=fsync\n")
    environment = {
        "SHARECORE_NUM_PARTITIONS": "2",
        "SHARECORE_LOG_DIRS": "environment",
        "SHARECORE_DURABILITY": "os",
        "SHARECORE_BOOTSTRAP_SERVER": "localhost:1",
        "SHARECORE_INTER_BROKER_LISTENER_NAME": "INSIDE",
        "LOG_DIRS": "elsewhere",
    }
    assert settings_of(environment).keys() == {
        "num.partitions",
        "log.dirs",
        "sharecore.durability",
        "inter.broker.listener.name",
    }
    found = gather(file, ["num.partitions=3"], data_dir=Path("option"), environment=environment)
    assert found == {
        "num.partitions": "3",
        "log.dirs": "option",
        "sharecore.durability": "os",
        "inter.broker.listener.name": "INSIDE",
    }


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("SHARECORE_NUM_PARTITION", "did you mean SHARECORE_NUM_PARTITIONS?"),
        ("SHARECORE_LISTNER", "did you mean SHARECORE_LISTENERS?"),
        ("SHARECORE_42_0_42", "unset it"),
    ],
)
def test_a_variable_that_sets_nothing_is_refused(variable: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=rf"{variable} sets no setting of this broker; {re.escape(hint)}"):
        settings_of({variable: "1", "SHARECORE_NUM_PARTITIONS": "3"})


def test_variables_that_kubernetes_sets_for_a_service_are_no_settings() -> None:
    names = (
        "SHARECORE_SERVICE_HOST SHARECORE_SERVICE_PORT SHARECORE_SERVICE_PORT_KAFKA SHARECORE_PORT "
        "SHARECORE_PORT_9092_TCP SHARECORE_PORT_9092_TCP_ADDR SHARECORE_PORT_9092_TCP_PROTO "
        "SHARECORE_PAGE_SERVICE_HOST SHARECORE_PAGE_PORT_8080_TCP_PORT"
    )
    assert settings_of(dict.fromkeys(names.split(), "tcp://10.0.0.1:9092")) == {}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("num.partition", "num.partitions"),
        ("listner", "listeners"),
        ("durability", "sharecore.durability"),
    ],
)
def test_a_misspelled_setting_on_the_command_line_is_refused_with_the_one_that_was_meant(
    name: str, meant: str
) -> None:
    with pytest.raises(ConfigError, match=rf"--set {name}: no setting .*; did you mean {meant}\?"):
        gather(None, [f"{name}=3"], environment={})


def test_a_setting_on_the_command_line_has_to_exist() -> None:
    with pytest.raises(ConfigError, match=r"--set acme.audit: no setting .*; `sharecore config example`"):
        gather(None, ["acme.audit=3"], environment={})


def test_a_line_of_the_log_as_json() -> None:
    about = {"group": "g", "topic": "t", "partition": 3}
    record = logging.makeLogRecord(
        {
            "name": "sharecore.partition",
            "levelname": "WARNING",
            "msg": "it %s",
            "args": ("failed",),
            "created": 1.5,
        }
        | about
    )
    assert json.loads(JsonLines().format(record)) == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "warning",
        "logger": "sharecore.partition",
        "message": "it failed",
        **about,
    }
