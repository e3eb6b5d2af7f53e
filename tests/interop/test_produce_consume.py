"""`sharecore produce` and `sharecore consume`: bytes as they are, nothing settled unseen, clear failures."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.harness.broker import QUICK_GROUPS, SHARECORE, Broker
from tests.harness.clients import configure_group, create_topic, produce, settle, share_consumer
from tests.interop.conftest import BrokerMaker

EVERY_BYTE = bytes(byte for byte in range(256) if byte != 0x0A)


def command(broker: Broker, *arguments: str | bytes) -> list[str | bytes]:
    verb, *rest = arguments
    return [SHARECORE, verb, "-b", broker.bootstrap, *rest]


def run(
    broker: Broker, *arguments: str | bytes, stdin: bytes = b"", timeout: float = 60
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(broker, *arguments), input=stdin, capture_output=True, timeout=timeout, check=False
    )


def values_in(broker: Broker, topic: str, group: str, count: int) -> list[bytes]:
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        return [message.value() or b"" for message in settle(consumer, count)]


@pytest.mark.parametrize(
    ("given", "values"),
    [
        pytest.param(EVERY_BYTE + b"\n", [EVERY_BYTE], id="every byte but a line feed"),
        pytest.param(b"a\r\nb\r", [b"a\r", b"b\r"], id="carriage returns"),
        pytest.param(b"\n\na\n\n", [b"", b"", b"a", b""], id="empty lines"),
        pytest.param(b"a\n\x00\xe9 caf\xe9", [b"a", b"\x00\xe9 caf\xe9"], id="no line feed at the end"),
        pytest.param(b"x" * 700_000 + b"\n" + b"y" * 900_000, [b"x" * 700_000, b"y" * 900_000], id="long"),
    ],
)
def test_lines_are_records_byte_for_byte(
    broker: Broker, topic: str, group: str, given: bytes, values: list[bytes]
) -> None:
    done = run(broker, "produce", topic, stdin=given)
    noun = "record" if len(values) == 1 else "records"
    assert (done.returncode, done.stdout.decode()) == (0, f"{len(values)} {noun} written to {topic}\n")
    assert values_in(broker, topic, group, len(values)) == values


def test_arguments_are_records_byte_for_byte(broker: Broker, topic: str, group: str) -> None:
    arguments = EVERY_BYTE.replace(b"\0", b""), b"caf\xe9", b""
    assert run(broker, "produce", topic, "--", *arguments).returncode == 0
    assert values_in(broker, topic, group, 3) == [*arguments]


def test_what_is_written_of_an_input_is_said_where_the_rest_is_not(
    broker: Broker, topic: str, group: str
) -> None:
    large = run(broker, "produce", topic, stdin=b"a\nb\n" + b"x" * 3_000_000 + b"\nc\n")
    assert (large.returncode, large.stdout) == (1, b"")
    assert large.stderr.startswith(b"sharecore: 1 of ")
    assert large.stderr.count(b"\n") == 1
    assert b"(record 3)" in large.stderr
    written = int(large.stderr.split(b"; ")[-1].split()[0])
    endless = run(
        broker, "produce", topic, "-X", "message.max.bytes=1000", stdin=b"d\n" + b"x" * 1001 + b"\ne\n"
    )
    assert endless.returncode == 1
    assert b"line 2 is longer than message.max.bytes=1000" in endless.stderr
    assert b"; 1 record written to" in endless.stderr
    assert len(values_in(broker, topic, group, written + 1)) == written + 1


def test_a_broker_that_dies_in_the_middle_of_an_input(new_broker: BrokerMaker) -> None:
    broker = new_broker()
    broker.start()
    producing = subprocess.Popen(
        command(broker, "produce", "jobs", "-X", "message.timeout.ms=2000"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert producing.stdin is not None
    for _ in range(2000):
        producing.stdin.write(b"before\n")
    producing.stdin.flush()
    configure_group(broker.bootstrap, "reader", share_auto_offset_reset="earliest")
    until = time.monotonic() + 30
    while (read := len(values_in(broker, "jobs", "reader", 1))) < 1:
        assert time.monotonic() < until
    broker.kill()
    out, told = producing.communicate(b"after\n" * 2000, timeout=60)
    assert (producing.returncode, out) == (1, b"")
    said = told.decode().splitlines()[-1]
    assert " records were not written: " in said
    assert read <= int(said.split("; ")[-1].split()[0]) <= 4000


@pytest.mark.parametrize("closed", [0, 1])
def test_a_stream_that_is_closed_is_said(broker: Broker, topic: str, closed: int) -> None:
    words = command(broker, *(("produce", topic), ("consume", topic, "-g", "nobody"))[closed])
    done = subprocess.run(
        words,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: os.close(closed),
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith((b"sharecore: standard input is", b"sharecore: standard output is")[closed])
    assert done.stderr.count(b"\n") == 1


VALUES = [EVERY_BYTE, b"\x1b[31mred\x1b[0m", b"[bold]", b"two\nlines\r\n", b"", b"x" * 100_000]


def lines_of(topic: str, values: Sequence[bytes]) -> bytes:
    return b"".join(
        f"{topic}-0@{offset}  delivery 1  accepted  ".encode() + value + b"\n"
        for offset, value in enumerate(values)
    )


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_a_pipe_and_a_file_get_values_as_they_are(
    broker: Broker, topic: str, group: str, kind: str, tmp_path: Path
) -> None:
    produce(broker.bootstrap, topic, VALUES)
    words = command(broker, "consume", topic, "-g", group, "--max", str(len(VALUES)))
    if kind == "pipe":
        shown = subprocess.run(words, stdout=subprocess.PIPE, timeout=60, check=True).stdout
    else:
        with (tmp_path / "shown").open("wb") as file:
            subprocess.run(words, stdout=file, timeout=60, check=True)
        shown = (tmp_path / "shown").read_bytes()
    assert shown == lines_of(topic, VALUES)


def test_a_terminal_gets_nothing_that_it_would_act_on(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [EVERY_BYTE, b"\x1b]0;title\x07caf\xc3\xa9"])
    leader, follower = pty.openpty()
    showing = subprocess.Popen(command(broker, "consume", topic, "-g", group, "--max", "2"), stdout=follower)
    os.close(follower)
    shown = b""
    while True:
        try:
            piece = os.read(leader, 10_000)
        except OSError:  # the last writer has ended
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    assert showing.wait(30) == 0
    text = shown.decode().replace("\r\n", "\n")
    assert all(each.isprintable() or each == "\n" for each in text)
    assert text.endswith("accepted  \\x1b]0;title\\x07café\n")


def left_after(broker: Broker, topic: str, group: str) -> list[str]:
    """Return the values that are still to come, by a run that takes all of them."""
    done = run(broker, "consume", topic, "-g", group, "--idle", "2")
    assert done.returncode == 0, done.stderr
    return [line.split("  ")[-1] for line in done.stdout.decode().splitlines()]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_what_a_reader_that_ends_early_did_not_take_comes_again(
    broker: Broker, topic: str, group: str, count: int
) -> None:
    numbers = [str(number) for number in range(40)]
    produce(broker.bootstrap, topic, [number.encode() for number in numbers])
    seen: list[str] = []
    for _ in range(2):
        words = " ".join(map(str, command(broker, "consume", topic, "-g", group)))
        script = f"set -o pipefail; {words} | head -n {count}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        seen += [line.split("  ")[-1] for line in done.stdout.decode().splitlines()]
    assert seen == numbers[: 2 * count]
    assert sorted(left_after(broker, topic, group), key=int) == numbers[2 * count :]


def test_a_reader_that_goes_ends_it_where_nothing_comes(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"0"])
    showing = subprocess.Popen(
        command(broker, "consume", topic, "-g", group), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert showing.stdout is not None
    assert showing.stderr is not None
    assert showing.stdout.readline().endswith(b"accepted  0\n")
    showing.stdout.close()
    assert (showing.wait(30), showing.stderr.read()) == (0, b"")
    showing.stderr.close()
    assert left_after(broker, topic, group) == []


def test_a_reader_that_takes_its_time_is_not_waited_for_for_ever(
    broker: Broker, topic: str, group: str
) -> None:
    produce(broker.bootstrap, topic, [b"%d" % number for number in range(20)])
    showing = subprocess.Popen(
        command(broker, "consume", topic, "-g", group, "--max", "20"), stdout=subprocess.PIPE
    )
    assert showing.wait(60) == 0, "it waited for a reader of a pipe with room"
    assert showing.stdout is not None
    assert showing.stdout.read().count(b"\n") == 20
    showing.stdout.close()


def test_what_finds_no_room_comes_again(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"0", b"1"])
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command(broker, "consume", topic, "-g", group),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, b"sharecore: [Errno 28] No space left on device\n")
    assert left_after(broker, topic, group) == ["0", "1"]


def test_ctrl_c_settles_nothing_that_was_not_shown(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"%d" % number for number in range(40)])
    showing = subprocess.Popen(
        command(broker, "consume", topic, "-g", group), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert showing.stdout is not None
    first = showing.stdout.readline()
    showing.send_signal(signal.SIGINT)
    rest, told = showing.communicate(timeout=30)
    assert (showing.returncode, told) == (130, b"")
    shown = {line.split("  ")[-1] for line in (first + rest).decode().splitlines()}
    assert shown | set(left_after(broker, topic, group)) == {str(number) for number in range(40)}


def test_a_topic_that_does_not_exist_is_said_with_names_near_it(broker: Broker) -> None:
    create_topic(broker.bootstrap, "invoices")
    done = run(broker, "consume", "invoice", "-g", "billing", "--idle", "1")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"sharecore: there is no topic invoice; near names: invoices")


PERSISTER = """
from sharecore.errors import ErrorCode, KafkaError
from sharecore.persister import NoOpPersister

class Refusing(NoOpPersister):
    def __init__(self, settings):
        self.code = ErrorCode[settings["code"]]

    def read(self, key, leader_epoch, done):
        done(KafkaError(self.code, "the state is damaged"))
"""


@pytest.mark.parametrize("code", ["UNKNOWN_SERVER_ERROR", "COORDINATOR_NOT_AVAILABLE"])
def test_a_partition_whose_state_cannot_be_loaded_is_said(tmp_path: Path, code: str) -> None:
    (tmp_path / "refusing.py").write_text(PERSISTER)
    settings = {
        "group.share.persister.class.name": "refusing:Refusing",
        "group.share.persister.code": code,
    }
    broker = Broker(tmp_path / "broker", settings=QUICK_GROUPS | settings)
    broker.environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    broker.start()
    try:
        produce(broker.bootstrap, "jobs", [b"0"])
        done = run(broker, "consume", "jobs", "-g", "workers", "--from-beginning", "--idle", "2")
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.startswith(b"sharecore: jobs-0 gives no records: ")
        assert b"the state is damaged" in done.stderr
    finally:
        broker.kill()
