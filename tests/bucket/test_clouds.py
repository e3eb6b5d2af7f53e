"""Azure Blob Storage and Google Cloud Storage as a bucket, on the emulators that people run."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.bucket import azurite, fakegcs
from tests.bucket.home import TOPIC, home_settings, numbers_in
from tests.bucket.takeovers import run
from tests.harness.broker import QUICK_GROUPS, SHARECORE, Broker, free_port
from tests.harness.clients import create_topic, produce
from tests.harness.s3 import BUCKET

from sharecore.storage.bucket import BucketPlace, Probe, probe

CHECKS = 11
FOREIGN = "bm90LXRoZS1rZXktb2YtdGhlLWFjY291bnQtYXQtYWxsIQ=="


@dataclass(frozen=True)
class Emulator:
    """A kind of store."""

    run: Callable[[Path], AbstractContextManager[str]]
    at: str
    """The URL before the bucket's name."""
    endpoint_variable: str
    credentials: dict[str, str]
    missing: str
    """What is said of a bucket that does not exist."""

    @property
    def url(self) -> str:
        return f"{self.at}{BUCKET}/queue"


AZURITE = Emulator(
    azurite.azurite,
    f"az://{azurite.ACCOUNT}/",
    "AZURE_STORAGE_ENDPOINT",
    azurite.credentials(),
    "404 ContainerNotFound",
)
FAKE_GCS = Emulator(fakegcs.fake_gcs, "gs://", "STORAGE_EMULATOR_HOST", {}, "404 NoSuchBucket")
EMULATORS = [pytest.param(AZURITE, id="azurite"), pytest.param(FAKE_GCS, id="fake-gcs-server")]


@pytest.fixture(autouse=True)
def nothing_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AZURE_", "GOOGLE_", "STORAGE_EMULATOR_")):
            monkeypatch.delenv(name)


@pytest.fixture(params=EMULATORS)
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Emulator]:
    emulator: Emulator = request.param
    for name, value in emulator.credentials.items():
        monkeypatch.setenv(name, value)
    with emulator.run(tmp_path / "server") as endpoint:
        monkeypatch.setenv(emulator.endpoint_variable, endpoint)
        yield emulator


@pytest.fixture
def azure(tmp_path: Path) -> Iterator[str]:
    with azurite.azurite(tmp_path / "server") as endpoint:
        yield endpoint


def probed(url: str, endpoint: str | None = None) -> Probe:
    found = probe(BucketPlace(url, endpoint))
    for secret in (azurite.KEY, FOREIGN, "sig="):
        assert secret not in repr(found)
    return found


def restored(url: str, directory: Path) -> set[int]:
    """Restore a copy; return the numbers in it, none if there is no copy yet."""
    command = [SHARECORE, "bucket", "restore", url, str(directory)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert azurite.KEY not in ended.stdout + ended.stderr
    if ended.returncode:
        assert "the bucket holds no " in ended.stderr
        return set()
    return set(numbers_in(directory, TOPIC))


def test_creates_race_right(store: Emulator) -> None:
    found = probed(store.url)
    assert (found.verdict, found.why) == ("fit", "")
    assert [check.outcome for check in found.checks] == ["passed"] * CHECKS


def test_a_bucket_that_does_not_exist(store: Emulator) -> None:
    found = probed(f"{store.at}elsewhere/queue")
    assert found.verdict == "unknown"
    assert store.missing in found.why
    assert ", or correct its name" in found.why


def test_a_copy_of_a_lost_machine_is_restored(store: Emulator, tmp_path: Path) -> None:
    settings = QUICK_GROUPS | {"sharecore.bucket.url": store.url, "sharecore.bucket.interval.ms": "100"}
    broker = Broker(tmp_path / "broker", settings=settings)
    broker.start()
    create_topic(broker.bootstrap, TOPIC, 2)
    produce(broker.bootstrap, TOPIC, [b"%d" % number for number in range(1000)])
    expected, end = set(range(1000)), time.monotonic() + 60
    while restored(store.url, tmp_path / "meanwhile") != expected:
        assert time.monotonic() < end, broker.read_log()[-3000:]
        shutil.rmtree(tmp_path / "meanwhile", ignore_errors=True)
    broker.kill()
    assert restored(store.url, tmp_path / "restored") == expected
    assert azurite.KEY not in broker.read_log()


@pytest.mark.timeout(600)
def test_a_home_whose_leader_is_killed_and_stopped_loses_nothing(store: Emulator, tmp_path: Path) -> None:
    seed = random.randrange(1 << 16)
    found = run(tmp_path, store.url, {"killed": 2, "stopped": 1}, seed)
    print(found)
    assert found["answered"]
    assert found["lost"] == 0, f"seed {seed}"
    assert found["acknowledged_and_delivered_again"] == 0, f"seed {seed}"


def test_a_home_on_an_empty_directory_has_everything(store: Emulator, tmp_path: Path) -> None:
    first = Broker(tmp_path / "first", settings=home_settings(store.url, free_port()))
    first.start()
    create_topic(first.bootstrap, TOPIC, 2)
    produce(first.bootstrap, TOPIC, [b"%d" % number for number in range(300)])
    first.kill()
    second = Broker(tmp_path / "second", settings=home_settings(store.url, free_port()))
    second.start()
    assert second.terminate() == 0
    assert numbers_in(second.home / "data", TOPIC).keys() == set(range(300))


@pytest.mark.parametrize(
    ("letters", "right", "verdict"),
    [
        ("cwdl", "blobs/read (r in a SAS)", "unknown"),
        ("rdl", "blobs/write (cw in a SAS)", "unknown"),
        ("rcwd", "blobs/read (l in a SAS)", "unknown"),
        ("rcwl", "blobs/delete (d in a SAS)", "grows"),
    ],
)
def test_each_letter_that_a_shared_access_signature_lacks_is_named(
    azure: str, monkeypatch: pytest.MonkeyPatch, letters: str, right: str, verdict: str
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", azurite.shared_access(letters))
    found = probed(AZURITE.url, azure)
    assert found.verdict == verdict, found
    assert f"Allow Microsoft.Storage/storageAccounts/blobServices/containers/{right}" in found.why


def test_a_shared_access_signature_with_all_letters(azure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", f"?{azurite.shared_access('rcwdl')}")
    found = probed(AZURITE.url, azure)
    assert (found.verdict, found.why) == ("fit", "")


def test_a_key_of_another_account(azure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_KEY", FOREIGN)
    found = probed(AZURITE.url, azure)
    assert found.verdict == "unknown"
    assert "403 AuthorizationFailure" in found.why or "403 AuthenticationFailed" in found.why
    assert "Correct the credentials in the environment" in found.why
