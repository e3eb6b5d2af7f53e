"""Whether a standby could take over, and when it does."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path

import pytest
from tests.harness.running import RunningBroker
from tests.harness.until import until
from tests.unit.broker.test_bucket import TIMEOUT_S, create, settings
from tests.unit.broker.test_home import bucket
from tests.unit.broker.test_lobby import HOME, RunningLobby, leader, until_claimed

from sharecore.broker.lobby.standing import Standing
from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.storage import Storage
from sharecore.storage.bucket import BucketPlace, restore, standby
from sharecore.storage.identity import IDENTITY, Identity, encode_identity

__all__ = ["bucket", "leader"]


def test_the_directory_of_another_cluster_is_refused(
    tmp_path: Path, bucket: Path, leader: RunningBroker
) -> None:
    RunningBroker(tmp_path / "other", {"node.id": "2"}).start().stop()
    with pytest.raises(ConfigError, match="it holds data of cluster"):
        RunningLobby(tmp_path / "other", bucket)


def test_a_directory_that_was_restored_is_refused_at_the_start(
    tmp_path: Path, bucket: Path, leader: RunningBroker
) -> None:
    restored = tmp_path / "restored"
    restore(BucketPlace(f"file://{bucket}"), restored, lambda *_: None)
    with pytest.raises(ConfigError, match=r"data that may not be in the bucket.*Use an empty directory"):
        RunningLobby(restored, bucket)


def test_a_directory_that_another_process_uses_is_refused_at_the_start(
    tmp_path: Path, bucket: Path, leader: RunningBroker
) -> None:
    storage = Storage(tmp_path / "other")
    try:
        with pytest.raises(OSError, match="is in use by another process"):
            RunningLobby(tmp_path / "other", bucket)
    finally:
        storage.close()


@pytest.mark.heavy
def test_a_standby_that_cannot_fetch_is_not_ready(
    tmp_path: Path, bucket: Path, leader: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sharecore.broker.lobby.standby._AGAIN_S", 0.1)
    directory = tmp_path / "two"
    directory.mkdir()
    (directory / "bucket.fresh").write_text("where fetched files would go")
    lobby = RunningLobby(directory, bucket)
    try:
        until(lambda: "this broker could not take over now" in str(lobby.readiness()["reason"]))
        (directory / "bucket.fresh").unlink()
        until(lambda: lobby.readiness()["ready"])
    finally:
        lobby.stop()


def test_a_broker_that_was_fenced_waits_longer(tmp_path: Path, bucket: Path, leader: RunningBroker) -> None:
    directory = tmp_path / "two"
    directory.mkdir()
    config = BrokerConfig.from_properties(settings(bucket) | HOME | {"log.dirs": str(directory)})
    assert Standing(config).silence_ms == 6500
    (directory / "bucket.fenced").touch()
    assert Standing(config).silence_ms == 19_500


def test_a_standby_waits_for_all_that_a_new_home_is_given(tmp_path: Path, bucket: Path) -> None:
    config = settings(bucket) | HOME | {"log.dirs": str(tmp_path / "two")}
    standing = Standing(BrokerConfig.from_properties(config))
    assert not standing.is_complete
    standing.catalog.take([(IDENTITY, encode_identity(Identity("0123456789abcdefghijkl", 1)))])
    assert not standing.is_complete
    standing.catalog.take([(b"features", b"{}")])
    assert standing.is_complete


class SlowStandby:
    """The watch over a bucket that does not respond yet."""

    def __init__(self) -> None:
        self._looking = threading.Lock()
        self.began, self.responds = threading.Event(), threading.Event()

    def look(self) -> tuple[int, int, bool]:
        with self._looking:
            self.began.set()
            assert self.responds.wait(TIMEOUT_S)
        return 1, 1, True

    def silence(self) -> tuple[int, int]:
        assert not self._looking.locked(), "it would wait for the bucket"
        return 5, 2000

    def segment(self) -> int:
        return 1

    def take_changed(self) -> list[tuple[bytes, bytes | None]]:
        return []


def test_metrics_do_not_wait_for_the_bucket(
    tmp_path: Path, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(bucket) | HOME | {"log.dirs": str(tmp_path / "two")}
    standing = Standing(BrokerConfig.from_properties(config))
    slow = SlowStandby()
    monkeypatch.setattr(standing, "watching", slow)

    async def look() -> None:
        looking = asyncio.ensure_future(standing.look())
        await asyncio.to_thread(slow.began.wait, TIMEOUT_S)
        assert standing.silence() == (0, 0)
        slow.responds.set()
        assert not await looking
        place, silent_ms = standing.silence()
        assert place == 5
        assert silent_ms >= 2000

    asyncio.run(look())


class SimulatedStandby:
    """The watch over a bucket: the end of the journal at each look, and for how long it was free."""

    def __init__(self, ends: list[tuple[int, int]]) -> None:
        self._ends = ends

    def look(self) -> tuple[int, int, bool]:
        self._end = self._ends.pop(0)
        return 1, 1, True

    def silence(self) -> tuple[int, int]:
        return self._end

    def segment(self) -> int:
        return 1

    def take_changed(self) -> list[tuple[bytes, bytes | None]]:
        return []


@pytest.mark.parametrize(
    ("ends", "due_s"),
    [
        # a look comes when the silence is long enough
        ([(5, 0)], [1.0]),
        ([(5, 5000)], [1.0]),
        ([(5, 6200)], [0.31]),
        ([(5, 9000)], [0.01]),
        # heartbeats alone
        ([(5, 0), (6, 0), (6, 900), (7, 0)], [1.0] * 4),
        # the home is written, and then is not
        ([(5, 0), (7, 0), (8, 0), *[(8, 0)] * 5], [1.0, *[0.25] * 5, 1.0, 1.0]),
    ],
)
def test_a_standby_looks_more_often_while_the_home_is_written_and_when_the_silence_ends(
    tmp_path: Path,
    bucket: Path,
    ends: list[tuple[int, int]],
    due_s: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = settings(bucket) | HOME | {"log.dirs": str(tmp_path / "two")}
    standing = Standing(BrokerConfig.from_properties(config))
    monkeypatch.setattr(standing, "watching", SimulatedStandby(ends))

    async def looks() -> list[float]:
        loop = asyncio.get_running_loop()
        now_s, found = loop.time(), list[float]()
        for _ in due_s:
            # the clock of the loop stands still meanwhile
            monkeypatch.setattr(loop, "time", partial(float, now_s))
            await standing.look()
            found.append(standing.due_s())
            now_s += found[-1]
        return found

    assert asyncio.run(looks()) == pytest.approx(due_s)


class FailingOnce:
    """The watch over a bucket whose first answer is an error."""

    def __init__(self) -> None:
        self._failed = False

    def look(self) -> None:
        if not self._failed:
            self._failed = True
            raise OSError("503")

    def silence(self) -> tuple[int, int]:
        return 1, 0

    def segment(self) -> int:
        return 1

    def take_changed(self) -> list[tuple[bytes, bytes | None]]:
        return []


def test_a_first_look_that_fails_is_repeated(
    tmp_path: Path, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(bucket) | HOME | {"log.dirs": str(tmp_path / "two")}
    standing = Standing(BrokerConfig.from_properties(config))
    monkeypatch.setattr(standing, "watching", FailingOnce())

    async def look() -> list[bool]:
        return [await standing.look() for _ in range(2)]

    assert asyncio.run(look()) == [False, True]
    monkeypatch.setattr("sharecore.broker.lobby.standing._FIRST_S", 0.0)
    wrong = Standing(BrokerConfig.from_properties(config))
    monkeypatch.setattr(wrong, "watching", FailingOnce())
    with pytest.raises(OSError, match="503"):
        asyncio.run(wrong.look())


def test_a_copy_of_a_running_broker_is_not_taken_over(tmp_path: Path, bucket: Path) -> None:
    copied = RunningBroker(tmp_path / "data", settings(bucket)).start()
    create(copied, "jobs")
    until_claimed(bucket)
    config = settings(bucket) | HOME | {"node.id": "2", "log.dirs": str(tmp_path / "two")}
    standing = Standing(BrokerConfig.from_properties(config))
    standing.watching = standby(standing.place, 2, silence_ms=0)
    for _ in range(2):
        assert not asyncio.run(standing.look()), "it writes no heartbeats"
    shown = f"node 1 copies its data to file://{bucket} (epoch 1)"
    assert shown in standing.describe()
    copied.stop()
    own = standby(standing.place, 1, silence_ms=0)
    assert own.look() is None, "its own copy"
