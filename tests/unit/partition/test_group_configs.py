"""Group configurations are cached for groups in use, not for any that a client names."""

from __future__ import annotations

from tests.unit.partition.bench import Bench


def test_as_many_groups_as_clients_name_take_bounded_memory() -> None:
    bench = Bench()
    for number in range(3000):
        assert bench.leaders.config(f"group-{number}") is bench.config
    assert len(bench.leaders._configs) <= 1000
