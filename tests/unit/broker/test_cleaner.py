"""Which log is compacted, when, and how many at a time: on a real store, with a controlled clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from tests.harness.until import until

from sharecore.broker.configs.topics import TopicConfigs
from sharecore.broker.store.cleaner import Cleaner
from sharecore.config import BrokerConfig
from sharecore.config.keys import LONG_MAX
from sharecore.errors import ErrorCode, KafkaError
from sharecore.storage import Log, Storage, StoreLog
from sharecore.storage.cleaner import Cleaned, LogCleaner
from sharecore.storage.store_topics import store_logs

HOUR_MS = 3_600_000
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0"}


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


class Bench:
    """A storage with topics of one partition, and a cleaner whose rounds the test starts."""

    def __init__(self, path: Path) -> None:
        self.clock = Clock()
        self.storage = Storage(path)
        self.settings: dict[str, str] = {}
        self.passes: list[tuple[str, dict[str, Any]]] = []

    def topic(self, name: str, **settings: str) -> Log:
        own = COMPACTED | {key.replace("_", "."): text for key, text in settings.items()}

        async def main() -> None:
            self.storage.attach(asyncio.get_running_loop())
            await self.storage.topics.create(name, 1, own)
            asyncio.get_running_loop().remove_reader(self.storage.store.fileno())

        asyncio.run(main())
        log = self.storage.topics.log(name, 0)
        assert log is not None
        return log

    def write(self, log: Log, keys: int, rounds: int = 10) -> None:
        """Write each key this many times, an hour ago."""
        for value in range(rounds):
            records = [(b"%d" % key, b"%d" % value * 100) for key in range(keys)]
            log.append_local(records, now_ms=self.clock.ms - HOUR_MS)
        self.storage.sync()

    def seal(self, *logs: Log) -> None:
        """Roll the active segment, and wait until its content counts."""
        cleaner = LogCleaner(self.storage)
        self._seal(cleaner, cleaner.roll, [cast(StoreLog, log) for log in logs])

    def _seal(self, cleaner: LogCleaner, roll: Callable[[], object], logs: Iterable[StoreLog]) -> None:
        roll()
        waiting = list(logs)
        until(lambda: not any(cleaner.dirt(log, LONG_MAX).active_bytes for log in waiting), "sealed segments")

    def check(self, instead: Mapping[str, Any] | None = None) -> None:
        """Run a round of the cleaner.

        Args:
            instead: by topic, called in place of a pass.
        """

        async def main() -> None:
            config = BrokerConfig.from_properties(self.settings)
            configs = TopicConfigs(self.storage.topics, self.storage.configs, lambda: config)
            cleaner = Cleaner(self.storage, configs, lambda: config, self.clock)
            clean, roll = cleaner._cleaner.clean, cleaner._cleaner.roll
            compacted = [log for topic in self.storage.topics for log in store_logs(topic)]

            def passed(log: StoreLog, **how: Any) -> Cleaned | None:
                self.passes.append((log.topic, how))
                if log.topic in (instead or {}):
                    (instead or {})[log.topic]()
                return clean(log, **how)

            cast(Any, cleaner._cleaner).clean = passed
            # segments sealed too late for this round would be found by the next
            cast(Any, cleaner._cleaner).roll = partial(self._seal, cleaner._cleaner, roll, compacted)
            self.storage.attach(asyncio.get_running_loop())
            try:
                await cleaner.check()
            finally:
                cleaner.stop()
                asyncio.get_running_loop().remove_reader(self.storage.store.fileno())

        asyncio.run(main())
        self.storage.drain()

    @property
    def passed(self) -> list[str]:
        return [topic for topic, _ in self.passes]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.storage.close()


def kept(log: Log) -> list[int]:
    return [offset for offset, *_ in log.scan(0)]


def test_the_last_record_of_each_key_stays(bench: Bench) -> None:
    compacted, other = bench.topic("compacted"), bench.topic("other", cleanup_policy="delete")
    for log in (compacted, other):
        bench.write(log, keys=3)
    bench.check()
    assert kept(compacted) == [*range(24, 30)], "the last batch is not looked at"
    assert kept(other) == list(range(30))
    bench.check()
    assert bench.passed == ["compacted"], "nothing is new"


def test_a_cleaner_that_is_switched_off_does_nothing(bench: Bench) -> None:
    bench.settings["log.cleaner.enable"] = "false"
    bench.write(bench.topic("t"), keys=1)
    bench.check()
    assert bench.passed == []


def test_records_younger_than_min_compaction_lag_ms_wait(bench: Bench) -> None:
    log = bench.topic("t", min_compaction_lag_ms=str(2 * HOUR_MS))
    bench.write(log, keys=1)
    bench.check()
    assert kept(log) == list(range(10))
    bench.clock.ms += HOUR_MS + 1
    bench.check()
    assert kept(log) == [8, 9]


def test_records_older_than_max_compaction_lag_ms_wait_no_longer(bench: Bench) -> None:
    log = bench.topic("t", max_compaction_lag_ms=str(2 * HOUR_MS), min_cleanable_dirty_ratio="1")
    bench.write(log, keys=1)
    bench.check()
    assert kept(log) == list(range(10)), "no share of new bytes is more than all"
    bench.clock.ms += HOUR_MS + 1
    bench.check()
    assert kept(log) == [8, 9]


def test_the_log_with_the_largest_share_of_new_bytes_is_first(bench: Bench) -> None:
    logs = [bench.topic(name) for name in ("little", "much", "middling")]
    for log in logs:
        bench.write(log, keys=100, rounds=2)
    bench.check()
    bench.passes.clear()
    for log, rounds in zip(logs, (2, 50, 10), strict=True):
        bench.write(log, keys=100, rounds=rounds)
    bench.seal(*logs)
    bench.check()
    assert bench.passed == ["much", "middling", "little"]


def test_a_log_that_is_written_to_counts_once_it_is_as_large_or_as_old_as_a_segment(bench: Bench) -> None:
    """segment.bytes, segment.ms"""
    large = bench.topic("large", segment_ms=str(2 * HOUR_MS), segment_bytes="1048576")
    bench.write(large, keys=1)
    bench.check()
    assert bench.passed == [], "neither is reached"
    bench.write(large, keys=1000, rounds=12)
    bench.check()
    assert bench.passed == ["large"]
    old = bench.topic("old", segment_ms=str(2 * HOUR_MS), segment_bytes="1048576")
    bench.write(old, keys=1)
    bench.check()
    assert bench.passed == ["large"]
    bench.clock.ms += HOUR_MS
    bench.check()
    assert kept(old) == [8, 9]


def test_tombstones_stay_for_delete_retention_ms(bench: Bench) -> None:
    log = bench.topic("t", delete_retention_ms=str(HOUR_MS))
    bench.write(log, keys=1)
    then_ms = bench.clock.ms - HOUR_MS
    for key, value in ((b"0", None), (b"last", b"")):
        log.append_local([(key, value)], now_ms=then_ms)
        bench.storage.sync()
    bench.check()
    assert kept(log) == [10, 11], "the tombstone of the key, and the last batch"
    bench.clock.ms += HOUR_MS + 1
    log.append_local([(b"last", b"")], now_ms=then_ms)
    bench.storage.sync()
    bench.check()
    assert kept(log) == [11, 12]


@pytest.mark.parametrize("threads", [1, 3])
def test_as_many_logs_are_compacted_at_a_time_as_there_are_threads(bench: Bench, threads: int) -> None:
    bench.settings |= {"log.cleaner.threads": str(threads), "log.cleaner.io.buffer.size": "3000"}
    bench.settings |= {
        "log.cleaner.dedupe.buffer.size": "30000000",
        "log.cleaner.io.buffer.load.factor": "0.5",
        "log.cleaner.io.max.bytes.per.second": "3e9",
    }
    logs = [bench.topic(name) for name in "abc"]
    for log in logs:
        bench.write(log, keys=1)
    lock, met = threading.Lock(), threading.Barrier(threads)
    running: list[int] = [0, 0]

    def enter() -> None:
        with lock:
            running[0] += 1
            running[1] = max(running)
        met.wait(30)  # passes that are not concurrent never meet
        with lock:
            running[0] -= 1

    bench.check(dict.fromkeys("abc", enter))
    assert running == [0, threads]
    assert [kept(log) for log in logs] == [[8, 9]] * 3
    limits = [how["limits"] for _, how in bench.passes]
    assert {limit.read_bytes for limit in limits} == {3000 // threads}
    assert {limit.keys_bytes for limit in limits} == {30_000_000 // threads}
    assert {limit.keys_load for limit in limits} == {0.5}
    assert {limit.bytes_per_second for limit in limits} == {3e9 / threads}


@pytest.mark.parametrize(
    ("code", "again"), [(ErrorCode.KAFKA_STORAGE_ERROR, True), (ErrorCode.CORRUPT_MESSAGE, False)]
)
def test_a_pass_that_fails_holds_up_no_other(
    bench: Bench, code: ErrorCode, again: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = bench.topic("bad"), bench.topic("good")
    for log in (bad, good):
        bench.write(log, keys=1)

    def fail() -> None:
        raise KafkaError(code, "a bad sector")

    bench.check({"bad": fail})
    assert sorted(bench.passed) == ["bad", "good"], "once a round"
    assert kept(good) == [8, 9]
    assert kept(bad) == list(range(10))
    assert "cannot compact bad-0" in caplog.text
    assert ("until the broker restarts" in caplog.text) is not again
