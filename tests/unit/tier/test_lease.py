"""The end of a lease in time."""

from __future__ import annotations

from tests.unit.coordinator_log.world import World

from sharecore.tier.slots.lease import LEASE_MS, Lease, LeaseEnd


def test_the_end_of_a_lease_is_told_each_time_that_it_comes() -> None:
    world = World()
    heard: int | None = None
    told: list[int] = []
    end = LeaseEnd(Lease(lambda: heard, world.monotonic_ms), lambda: told.append(world.monotonic_ms()), world)
    end.start()
    world.run(20_000)
    assert told == [], "there was none yet"
    heard = world.monotonic_ms()
    world.run(5_000)
    heard = world.monotonic_ms()
    world.run(LEASE_MS)
    assert told == []
    world.run(1)
    assert told == [heard + LEASE_MS + 1]
    world.run(20_000)
    assert len(told) == 1
    heard = world.monotonic_ms()
    world.run(1_000)
    heard = None
    world.run(LEASE_MS)
    assert len(told) == 2
    heard = world.monotonic_ms()
    world.run(1_000)
    end.stop()
    world.run(20_000)
    assert len(told) == 2
