"""Start, stop, configuration."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest
from tests.harness.broker import SHARECORE, Broker
from tests.harness.clients import configure_group, create_topic, produce, settle, share_consumer, take
from tests.interop.conftest import KIND, BrokerMaker

ours = pytest.mark.skipif(KIND != "sharecore", reason="sharecore's own command line")


def serve(home: Path, *arguments: str, timeout: float = 20) -> subprocess.CompletedProcess[str]:
    """Run `sharecore serve` where it should end by itself."""
    command = [SHARECORE, "serve", "--data-dir", str(home / "data"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)


@ours
def test_the_first_answer_comes_at_once(new_broker: BrokerMaker) -> None:
    # the bench measures the time; this detects a start that waits for something
    assert new_broker().start() < 10.0


def test_sigterm_ends_cleanly_under_load(new_broker: BrokerMaker) -> None:
    broker: Broker = new_broker()
    broker.start()
    create_topic(broker.bootstrap, "kept")
    configure_group(broker.bootstrap, "kept", share_auto_offset_reset="earliest")
    produce(broker.bootstrap, "kept", [b"value"] * 100)
    with share_consumer(broker.bootstrap, "kept", ["kept"]) as holder:
        take(holder)
        assert broker.terminate() in (0, 143)
    broker.start()
    with share_consumer(broker.bootstrap, "kept", ["kept"]) as consumer:
        assert len({message.offset() for message in settle(consumer, 100)}) == 100


@ours
def test_an_interrupt_ends_cleanly_and_quietly(new_broker: BrokerMaker) -> None:
    broker: Broker = new_broker()
    broker.start()
    subprocess.run(["kill", "-INT", str(broker.pid)], check=True)
    assert broker.wait() == 0
    assert "Traceback" not in broker.read_log()


@ours
def test_an_unknown_property_warns_and_a_bad_value_stops(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("no.such.property=1\ngroup.share.max.size=many\n")
    ended = serve(tmp_path, "--config", str(properties))
    assert ended.returncode != 0
    said = ended.stdout + ended.stderr
    assert "no.such.property" in said
    assert "group.share.max.size" in said
    assert "many" in said
    assert "Traceback" not in said


@ours
def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = serve(tmp_path, "--set", f"listeners=PLAINTEXT://127.0.0.1:{port}")
    assert ended.returncode != 0
    assert str(port) in ended.stderr
    assert "Traceback" not in ended.stderr


@ours
def test_a_data_directory_serves_one_broker(new_broker: BrokerMaker) -> None:
    """log.dirs"""
    broker: Broker = new_broker()
    broker.start()
    ended = serve(broker.home, "--set", "listeners=PLAINTEXT://127.0.0.1:0")
    assert ended.returncode != 0
    assert str(broker.home / "data") in ended.stderr
    assert "Traceback" not in ended.stderr
    assert broker.running()


@ours
def test_help_names_what_there_is() -> None:
    shown = subprocess.run([SHARECORE, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    for option in ("--config", "--set", "--data-dir", "--durability"):
        assert option in shown
