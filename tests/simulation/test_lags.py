"""The auditor compares start offsets that a broker reports with those that an administrator has set."""

from __future__ import annotations

from uuid import UUID

from tests.simulation.lags import Key, Lags
from tests.simulation.leases import SharePartition
from tests.simulation.ledger import Ledger
from tests.simulation.loop import SimulatedLoop
from tests.simulation.story import Story

KEY: Key = "g", UUID(int=1), 0
SET = "start offset that was set"


class _Told:
    """A share partition with ten records, and the faults that the auditor finds in reported start offsets."""

    def __init__(self) -> None:
        self._story = Story(SimulatedLoop(1))
        self.ledger = ledger = Ledger(self._story)
        self.begin = 0
        ledger.log(*KEY[1:]).values = dict.fromkeys(range(10), b"")
        self.share = SharePartition("g t-0", lock_s=3.0, limits=(4, 4))
        self._lags = Lags({KEY: self.share}, ledger, self._story, lambda topic_id, index: (self.begin, 10))

    def given(self, first: int, last: int, count: int = 1) -> None:
        """A member is given records."""
        assert self.share.deliver(0.0, 0.0, "m", [(first, last, count)]) == []

    def answered(self, start: int) -> None:
        """A reset is answered."""
        self.share.suspended -= 1
        self.share.forget()
        self.share.begin_at(start)

    def told(self, start: int) -> list[str]:
        """Report a start offset."""
        self._lags.described(KEY, {KEY: (set(), set(), self.share.lives)}, start, 0)
        return [each.kind for each in self._story.violations if each.kind == SET]


def test_a_start_offset_is_the_one_that_was_set() -> None:
    told = _Told()
    told.share.suspend(3)
    told.answered(3)
    assert told.told(3) == []
    assert told.told(4) == [SET]


def test_records_of_the_new_state_may_be_given_out_and_settled_before_the_reset_is_answered() -> None:
    told = _Told()
    told.share.suspend(3)
    told.share.led(0.0, 3)
    told.given(3, 7)
    told.answered(3)
    assert told.told(8) == []
    assert told.told(9) == [SET], "nobody was given the record at offset 8"


def test_what_was_given_out_before_the_reset_is_answered_may_come_again_or_be_settled() -> None:
    told = _Told()
    told.share.suspend(3)
    told.share.led(0.0, 3)
    told.given(3, 5)
    told.answered(3)
    assert [told.share.may_be_over(offset) for offset in (3, 5, 6)] == [True, True, False]
    told.given(3, 3, count=2)


def test_a_start_offset_that_was_set_passes_records_that_have_vanished() -> None:
    compacted = _Told()
    compacted.ledger.names[KEY[1]] = "c"
    compacted.ledger.compacted.add("c")
    compacted.share.suspend(3)
    compacted.share.led(0.0, 3)
    compacted.given(5, 7)
    compacted.answered(3)
    assert compacted.told(8) == []
    assert compacted.told(9) == [SET]
    retained = _Told()
    retained.ledger.names[KEY[1]] = "short"
    retained.begin = 6
    retained.share.suspend(3)
    retained.answered(3)
    assert retained.told(6) == []
    assert retained.told(7) == [SET]


def test_records_of_the_old_state_do_not_move_a_start_offset_that_was_set() -> None:
    told = _Told()
    told.share.suspend(3)
    told.share.led(0.0, 2)
    told.given(2, 7)
    told.answered(3)
    assert told.told(8) == [SET]


def test_what_was_given_out_during_an_earlier_reset_does_not_count() -> None:
    told = _Told()
    told.share.suspend(3)
    told.share.led(0.0, 3)
    told.given(3, 7)
    told.answered(3)
    told.share.suspend(3)
    told.answered(3)
    assert told.told(8) == [SET]


def test_a_share_partition_that_was_not_known_when_the_reset_was_asked_for_may_begin_anywhere() -> None:
    told = _Told()
    told.given(3, 7)
    told.share.forget()
    told.share.begin_at(3)
    assert told.told(8) == []
