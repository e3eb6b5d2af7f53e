from __future__ import annotations

from tests.unit.coordinator_log.world import World

from sharecore.waiting import DelayedFetch


class Fetch(DelayedFetch[int]):
    """A fetch answered by `found` once available; after the timeout by 0, unless it must keep waiting."""

    def __init__(self, world: World) -> None:
        self.answers: list[int] = []
        super().__init__(world.call_later, self.answers.append)
        self.found: int | None = None
        self.must_wait = False
        self.watching = False

    def look(self, *, late: bool) -> int | None:
        if late and self.found is None and not self.must_wait:
            return 0
        return self.found

    def watch(self) -> None:
        self.watching = True

    def unwatch(self) -> None:
        self.watching = False


def test_what_is_there_is_answered_at_once() -> None:
    fetch = Fetch(World())
    fetch.found = 7
    assert fetch.start(500) == 7
    assert (fetch.waiting, fetch.watching, fetch.answers) == (False, False, [])


def test_without_time_there_is_no_wait() -> None:
    for max_wait_ms in (0, -1):
        assert Fetch(World()).start(max_wait_ms) == 0


def test_a_fetch_is_answered_when_there_is_something_and_only_once() -> None:
    world = World()
    fetch = Fetch(world)
    assert fetch.start(500) is None
    assert fetch.watching
    assert not fetch.again()
    fetch.found = 7
    assert fetch.again()
    assert (fetch.waiting, fetch.watching, fetch.answers) == (False, False, [7])
    assert fetch.again(), "it waits no longer"
    world.run(1000)
    assert fetch.answers == [7]


def test_a_fetch_is_answered_when_its_time_is_over() -> None:
    world = World()
    fetch = Fetch(world)
    fetch.start(500)
    world.run(499)
    assert fetch.answers == []
    world.run(1)
    assert (fetch.answers, fetch.watching) == ([0], False)


def test_a_late_fetch_may_have_to_wait_on() -> None:
    world = World()
    fetch = Fetch(world)
    fetch.must_wait = True
    fetch.start(500)
    world.run(1000)
    assert (fetch.waiting, fetch.answers) == (True, [])
    fetch.must_wait = False
    fetch.again()
    assert fetch.answers == [0]


def test_a_fetch_that_was_cancelled_is_not_answered() -> None:
    world = World()
    fetch = Fetch(world)
    fetch.start(500)
    fetch.cancel()
    fetch.cancel()
    fetch.found = 7
    world.run(1000)
    assert (fetch.watching, fetch.answers) == (False, [])
