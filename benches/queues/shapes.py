"""What is measured: loads, how they are consumed, and which figures of a trail count."""

from __future__ import annotations

import argparse
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from benches.queues.load import SEED, Load, half_hot, uniform, zipf
from benches.queues.sampler import Sampler
from benches.queues.subjects import HEADER, Run
from benches.queues.trail import Trail, first_errors, percentile

EARLY_MS = -1.0
"""A clock is read before or after what it is read for."""
DAY_S = 86_400
ZIPF = 1.1
HOT_KEYS, ZIPF_KEYS = 1_000, 10_000
WEIGHTS = (8, 1)
BACKOFF_S = (1.0, 2.0)


class Result(NamedTuple):
    """One run of a subject.

    Args:
        sent: when each record was produced, in nanoseconds since the epoch.
        began_ns: what the load's times count from.
    """

    run: Run
    trail: Trail
    sampler: Sampler
    sent: array[int]
    began_ns: int


Figures = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A row or more of the table.

    Args:
        figures: of a run whose order is right.
        checks: what else has to hold; yields what does not.
        is_whole: whether every record has to be delivered.
        is_ours_alone: whether only sharecore has it.
    """

    title: str
    run: Run
    figures: Callable[[Result], Figures]
    checks: Callable[[Result], Iterator[str]] = lambda _: iter(())
    is_whole: bool = True
    is_ours_alone: bool = False

    def errors(self, result: Result) -> list[str]:
        """Return what is wrong with a run; its figures do not count then."""
        found = list(self.checks(result))
        if self.run.order == "key":
            found += first_errors(result.trail.out_of_order(self.run.load.keys))
        if self.is_whole:
            missing = result.trail.missing(range(self.run.load.count))
            found += [missing] if missing else []
        return found


def ordered(run_max: int = 1, **more: object) -> dict[str, object]:
    """Return a group's settings."""
    return {"share.ordering": "key", "share.ordering.run.max": run_max, **more}


def throughput(result: Result) -> Figures:
    """Return records a second from the first delivery to the end of the last, and CPU time."""
    trail = result.trail
    cpu = result.sampler.cpu_s(trail.began_ns, trail.ended_ns)
    count = len(trail.deliveries)
    return {"records/s": count / trail.seconds, "broker's CPU s a million": cpu * 1e6 / count}


def order(chosen: argparse.Namespace) -> Iterator[Case]:
    """Keys that are many, some and few, with nothing to do for a record."""
    for keys in (100_000, 1_000, 10):
        load = Load(f"keys-{keys}", uniform(chosen.records, keys))
        named, more = f"{keys:,} keys", {"workers": chosen.members, "seconds": chosen.seconds}
        yield Case(f"{named}, no order", Run(load, order="none", **more), throughput, is_whole=False)
        yield Case(f"{named}, in order", Run(load, ordered(), **more), throughput, is_whole=False)
        if keys == 10:
            run = Run(load, ordered(64), run_max=64, **more)
            yield Case(f"{named}, runs of up to 64", run, throughput, is_whole=False)


def hot_key(chosen: argparse.Namespace) -> Iterator[Case]:
    """One key has half of all records, and more than can be worked off."""
    others = chosen.rate * chosen.pace_seconds
    for work_ms in (1, 10):
        for hot in (False, True):
            keys = half_hot(others * 2, HOT_KEYS) if hot else array("q", half_hot(others * 2, HOT_KEYS)[1::2])
            load = Load(f"hot-{work_ms}-{hot}", keys, rate=chosen.rate * (2 if hot else 1))
            seconds = chosen.pace_seconds + 5
            run = Run(load, ordered(), workers=64, poll=1, work_us=work_ms * 1000, seconds=seconds)
            title = f"work of {work_ms} ms, {chosen.rate:,} records/s"
            title += f", {chosen.rate:,} more of a hot key" if hot else ""
            yield Case(title, run, _of_the_others, _has_all_others, is_whole=False)


def _of_the_others(result: Result) -> Figures:
    load = result.run.load
    came = [each for each in result.trail.deliveries if load.keys[each.record]]
    waits = [(each.began_ns - result.sent[each.record]) / 1e6 for each in came]
    seconds = (came[-1].began_ns - came[0].began_ns) / 1e9
    return {
        "others, records/s": len(came) / seconds,
        "their wait p50, ms": percentile(waits, 50),
        "p99, ms": percentile(waits, 99),
        "hot key, records/s": (len(result.trail.deliveries) - len(came)) / result.trail.seconds,
    }


def _has_all_others(result: Result) -> Iterator[str]:
    keys = result.run.load.keys
    missing = result.trail.missing([number for number, key in enumerate(keys) if key])
    if missing:
        yield missing


def skewed(chosen: argparse.Namespace) -> Iterator[Case]:
    """Keys by Zipf's law, work of a millisecond, more and more workers."""
    keys = zipf(min(chosen.records, 100_000), ZIPF_KEYS, ZIPF)
    hottest = Counter(keys).most_common(1)[0][1] / len(keys)
    load = Load("zipf", keys)
    for workers in chosen.workers:
        allowed = min(workers * 1000, 1000 / hottest)

        def figures(result: Result, allowed: float = allowed) -> Figures:
            found = throughput(result)
            return found | {"% of what the keys allow": 100 * found["records/s"] / allowed}

        run = Run(load, ordered(), workers=workers, poll=1, work_us=1000, seconds=chosen.seconds)
        yield Case(f"{workers} workers", run, figures, is_whole=False)


def backoff(chosen: argparse.Namespace) -> Iterator[Case]:
    """Records that fail twice; and nothing but records that wait."""
    count = min(chosen.records, 100_000)
    load = Load("fails-twice", uniform(count, count), rate=chosen.rate)
    settings: dict[str, object] = {
        "share.retry.backoff.ms": int(BACKOFF_S[0] * 1000),
        "share.retry.backoff.jitter": 0,
        "share.partition.max.waiting": count,
    }
    seconds = count // chosen.rate + chosen.seconds
    run = Run(load, settings, order="none", workers=chosen.members, fails=2, seconds=seconds)
    yield Case(f"{count:,} records fail twice, {chosen.rate:,} a second", run, _late_retries, _no_early_retry)
    held = settings | {"share.retry.backoff.ms": 3_600_000, "share.retry.backoff.max.ms": 3_600_000}
    all_wait = Load("all-wait", load.keys)
    run = Run(all_wait, held, order="none", workers=chosen.members, fails=1, seconds=chosen.idle_seconds)
    yield Case(f"{count:,} records wait for an hour", run, _idle, is_ours_alone=True)


def _late_retries(result: Result) -> Figures:
    late = result.trail.lateness_ms(BACKOFF_S)
    return {f"late {name}, ms": value for name, value in _spread(late).items()} | {
        "deliveries/s": len(result.trail.deliveries) / result.trail.seconds
    }


def _no_early_retry(result: Result) -> Iterator[str]:
    late = result.trail.lateness_ms(BACKOFF_S)
    if len(late) != 2 * result.run.load.count:
        yield f"{len(late)} deliveries after a failure, not {2 * result.run.load.count}"
    if min(late) < EARLY_MS:
        yield f"a record came {-min(late):.1f} ms early"


def _idle(result: Result) -> Figures:
    ended = result.trail.ended_ns
    until = result.trail.began_ns + result.run.seconds * 1_000_000_000
    seconds = (until - ended) / 1e9
    return {
        "% of a core while all wait": 100 * result.sampler.cpu_s(ended + 1_000_000_000, until) / (seconds - 1)
    }


def times(chosen: argparse.Namespace) -> Iterator[Case]:
    """Delivery times at random within a minute, all written before the first of them."""
    chance = Random(SEED)
    for count in chosen.times:
        due = array("d", (chance.random() * chosen.pace_seconds for _ in range(count)))
        load = Load(f"times-{count}", array("q", range(count)), due_s=due)
        settings = {"share.deliver.at.header": HEADER, "share.partition.max.waiting": max(count, 1_000)}
        run = Run(load, settings, order="none", workers=chosen.members, seconds=chosen.seconds)
        title = f"{count:,} delivery times over {chosen.pace_seconds} s"
        yield Case(title, run, _late, _not_early, is_whole=False)


def _lateness(result: Result) -> list[float]:
    due = result.run.load.due_s
    # a header has whole milliseconds
    began_ms = result.began_ns // 1_000_000
    return [each.began_ns / 1e6 - began_ms - int(due[each.record] * 1000) for each in result.trail.deliveries]


def _late(result: Result) -> Figures:
    figures = {f"late {name}, ms": value for name, value in _spread(_lateness(result)).items()}
    return figures | throughput(result) | {"broker's memory grew by, MB": result.sampler.grown_bytes() / 1e6}


def _not_early(result: Result) -> Iterator[str]:
    early = min(_lateness(result))
    if early < EARLY_MS:
        yield f"a record came {-early:.1f} ms early"


def _spread(values: list[float]) -> dict[str, float]:
    return {"p50": percentile(values, 50), "p99": percentile(values, 99), "at most": max(values)}


def weights(chosen: argparse.Namespace) -> Iterator[Case]:
    """Two topics full of records, of which one counts eight times."""
    load = Load("weights", array("q", range(chosen.records)), topics=2, batch=100)
    settings = {
        "share.topic.weights": ",".join(f"weights.{each}:{part}" for each, part in enumerate(WEIGHTS))
    }
    # one member may take them all: no partition may run dry
    accepts = chosen.records // (2 * load.partitions)
    for members in (1, chosen.members):
        run = Run(load, settings, order="none", workers=members, accepts=accepts)
        yield Case(f"weights 8:1, {members} member(s)", run, _parts, is_whole=False, is_ours_alone=True)


def _parts(result: Result) -> Figures:
    """Return the first topic's part in all full seconds."""
    by_second: dict[int, Counter[int]] = {}
    for each in result.trail.deliveries:
        second = (each.began_ns - result.trail.began_ns) // 1_000_000_000
        by_second.setdefault(second, Counter())[result.run.load.topic_of(each.record)] += 1
    full = [by_second[second] for second in sorted(by_second)[:-1]] or list(by_second.values())
    parts = [100 * each[0] / each.total() for each in full]
    wanted = 100 * WEIGHTS[0] / sum(WEIGHTS)
    return {
        "part of the first topic, %": sum(parts) / len(parts),
        "farthest off in a second, %": max(abs(part - wanted) for part in parts),
        "records/s": len(result.trail.deliveries) / result.trail.seconds,
    }


SHAPES: dict[str, Callable[[argparse.Namespace], Iterator[Case]]] = {
    "order": order,
    "hot-key": hot_key,
    "zipf": skewed,
    "backoff": backoff,
    "times": times,
    "weights": weights,
}
