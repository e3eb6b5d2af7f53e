"""The simulator compared with queueing theory."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from sharecore.errors import ConfigError
from sharecore.jobs.handling import handling_time
from sharecore.jobs.load import Load, Outcome
from sharecore.jobs.simulation import simulate


def mean_wait_ms(rate_per_ms: float, service_ms: float, servers: int) -> float:
    """Erlang's C: the mean time in the system, with exponential times and this many servers."""
    load = rate_per_ms * service_ms
    terms = [load**n / math.factorial(n) for n in range(servers)]
    last = load**servers / math.factorial(servers) / (1 - load / servers)
    return last / (sum(terms) + last) / (servers / service_ms - rate_per_ms) + service_ms


@pytest.mark.heavy
@pytest.mark.parametrize(("members", "service_ms"), [(1, 8.0), (3, 20.0), (8, 60.0)])
def test_waiting_times_are_those_of_a_queue_with_so_many_servers(members: int, service_ms: float) -> None:
    out = simulate(
        Load(
            records_per_s=100,
            members=members,
            handling=f"exponential:{service_ms}",
            max_poll_records=1,
            duration_s=300,
        )
    )
    assert out.latency_mean_ms == pytest.approx(
        mean_wait_ms(out.arrived / 300_000, service_ms, members), rel=0.06
    )
    assert out.utilisation == pytest.approx(0.1 * service_ms / members, rel=0.02)


@pytest.mark.heavy
@pytest.mark.parametrize("failure_rate", [0.0, 0.2])
@pytest.mark.parametrize("poll", [1, 50])
def test_littles_law(failure_rate: float, poll: int) -> None:
    out = simulate(Load(members=6, failure_rate=failure_rate, max_poll_records=poll, duration_s=20))
    settled = out.accepted + out.archived
    assert settled == out.arrived
    assert out.backlog_mean == pytest.approx(out.arrived / 20_000 * out.latency_mean_ms, rel=0.02)


@pytest.mark.heavy
def test_what_fails_is_delivered_again_until_the_limit() -> None:
    rate = 0.3
    out = simulate(
        Load(records_per_s=2_000, failure_rate=rate, delivery_limit=3, handling="fixed:0.5", duration_s=20)
    )
    expected = out.arrived * (1 + rate + rate**2)
    assert out.deliveries == pytest.approx(expected, rel=0.01)
    assert out.archived == pytest.approx(out.arrived * rate**3, rel=0.06)
    assert out.redelivery_rate == pytest.approx(1 - out.arrived / out.deliveries)
    assert out.accepted + out.archived == out.arrived


def test_locks_run_out_where_a_poll_takes_longer() -> None:
    load = Load(records_per_s=100.0, members=1, handling="fixed:50", duration_s=30.0, lock_ms=1_000)
    slow = simulate(load)
    assert slow.lock_timeouts > 0
    assert slow.refused > 0
    assert slow.redelivery_rate > 0.5
    renewed = simulate(replace(load, renew=True))
    assert (renewed.lock_timeouts, renewed.refused, renewed.redeliveries) == (0, 0, 0)
    fewer = simulate(replace(load, max_poll_records=10))
    assert (fewer.lock_timeouts, fewer.refused, fewer.redeliveries) == (0, 0, 0)
    assert fewer.throughput == pytest.approx(20, rel=0.02)


def test_the_window_bounds_what_is_in_flight_and_so_the_members_that_work() -> None:
    out = simulate(
        Load(
            records_per_s=1_000,
            record_batch=10,
            arrivals="constant",
            members=10,
            handling="fixed:10",
            max_poll_records=10,
            max_record_locks=20,
            duration_s=20,
        )
    )
    assert out.inflight_max == 20
    # two members can hold ten records each, a hundred a second per member
    assert out.throughput == pytest.approx(200, rel=0.03)
    assert out.utilisation == pytest.approx(0.2, rel=0.03)


def test_a_write_that_takes_time_is_part_of_the_latency() -> None:
    out = simulate(
        Load(records_per_s=10.0, arrivals="constant", handling="fixed:2", duration_s=10.0, write_ms=7)
    )
    assert out.latency_p50_ms == pytest.approx(9)
    assert out.latency_max_ms == pytest.approx(9)


def test_whole_record_batches_or_as_many_as_asked_for() -> None:
    load = Load(record_batch=100, max_poll_records=10, members=1, handling="fixed:0.1")
    batches = simulate(load)
    records = simulate(replace(load, record_limit=True))
    assert batches.operations < records.operations / 3
    assert batches.accepted == records.accepted == batches.arrived


def test_the_same_load_gives_the_same_outcome() -> None:
    load = Load(failure_rate=0.1, handling="lognormal:2:0.7", duration_s=5)
    assert simulate(load) == simulate(load)
    assert simulate(load) != simulate(
        Load(failure_rate=0.1, handling="lognormal:2:0.7", duration_s=5, seed=2)
    )


def test_the_seed_fixes_the_arrivals_whatever_else_differs() -> None:
    def arrived(out: Outcome) -> list[int]:
        return [sample.arrived for sample in out.samples]

    assert arrived(simulate(Load(duration_s=5))) == arrived(
        simulate(Load(duration_s=5, failure_rate=0.3, members=1))
    )


@pytest.mark.parametrize(
    "text", ["fixed", "fixed:x", "fixed:-1", "gauss:1:2", "uniform:3:1", "exponential:0", ""]
)
def test_a_distribution_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match="unknown handling-time distribution"):
        handling_time(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"members": 0},
        {"records_per_s": 0},
        {"failure_rate": 1.5},
        {"arrivals": "sometimes"},
        {"duration_s": 1e9},
    ],
)
def test_a_load_that_cannot_stand(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Load(**wrong)
