"""The auditor's model of a share partition takes for possible what the wire leaves open, and nothing else."""

from __future__ import annotations

from tests.simulation.leases import RELEASE, SharePartition

ACCEPT, REJECT = 1, 3


def _delivered() -> SharePartition:
    share = SharePartition("g t-0", lock_s=3.0, limits=(4, 4))
    assert share.deliver(0.0, 0.0, "m", [(0, 2, 1)]) == []
    return share


def test_what_was_settled_stays_possible_where_it_was_perhaps_begun_anew() -> None:
    share = _delivered()
    assert share.answered(0.1, 0.2, "m", share.claims(0.1, "m", [(0, 0, bytes([ACCEPT]))])) == []
    # this one failed
    share.refused(0.1, share.claims(0.1, "m", [(1, 1, bytes([ACCEPT]))]), certain=False)
    share.forget(perhaps=True)
    assert [share.may_be_over(offset) for offset in range(3)] == [True, True, False]
    share.forget()
    assert not any(share.may_be_over(offset) for offset in range(3)), "it was begun anew for certain"


def test_a_failed_acknowledgement_may_come_to_light_after_another_delivery() -> None:
    """A write that timed out is undone in memory alone; who reads the log later finds it."""
    share = _delivered()
    share.refused(0.1, share.claims(0.1, "m", [(0, 0, bytes([ACCEPT]))]), certain=False)
    assert not share.may_be_over(0), "whoever failed to write it delivers it again"
    assert share.deliver(4.0, 4.0, "m", [(0, 1, 2)]) == []
    share.refused(4.1, share.claims(4.1, "m", [(0, 1, bytes([ACCEPT]))]), certain=True)
    share.loosen(restarted=True)
    assert [share.may_be_over(offset) for offset in range(2)] == [True, False]
    assert share.deliver(5.0, 5.0, "m", [(0, 0, 2)]) == []
    share.loosen(restarted=True)
    assert not share.may_be_over(0), "what was read from the log did not hold it"


def test_an_acknowledgement_that_nobody_answered_may_come_to_light_after_another_delivery() -> None:
    share = _delivered()
    share.claims(0.1, "m", [(0, 0, bytes([ACCEPT]))])
    assert share.deliver(4.0, 4.0, "m", [(0, 1, 2)]) == []
    assert not share.may_be_over(0), "whoever failed to write it delivers it again"
    share.loosen(restarted=True)
    assert [share.may_be_over(offset) for offset in range(2)] == [True, False]
    assert share.deliver(5.0, 5.0, "m", [(0, 0, 2)]) == []
    share.loosen(restarted=True)
    assert not share.may_be_over(0), "what was read from the log did not hold it"


def test_a_release_that_was_answered_came_after_what_had_failed() -> None:
    share = _delivered()
    share.refused(0.1, share.claims(0.1, "m", [(1, 2, bytes([ACCEPT]))]), certain=False)
    share.deliver(4.0, 4.0, "m", [(0, 2, 2)])
    claims = share.claims(4.1, "m", [(1, 1, bytes([RELEASE]))])
    assert share.answered(4.1, 4.2, "m", claims) == []
    share.loosen(restarted=True)
    assert [share.may_be_over(offset) for offset in range(3)] == [False, False, True]


def test_a_release_does_not_bring_a_start_offset_back() -> None:
    """What had failed was written after all, with a start offset behind the record; the release came then."""
    share = _delivered()
    share.refused(0.1, share.claims(0.1, "m", [(0, 1, bytes([ACCEPT]))]), certain=False)
    share.deliver(4.0, 4.0, "m", [(0, 1, 2)])
    claims = share.claims(4.1, "m", [(0, 1, bytes([RELEASE]))])
    assert share.answered(4.1, 4.2, "m", claims) == []
    share.loosen(restarted=True)
    assert [share.may_be_over(offset) for offset in range(3)] == [True, True, False]


def test_one_of_two_acknowledgements_under_way_is_refused() -> None:
    share = _delivered()
    claims = [share.claims(at, "m", [(0, 0, bytes([ACCEPT]))]) for at in (0.1, 0.2)]
    share.refused(0.2, claims[1], certain=True)
    assert share.may_be_over(0), "the other may have taken effect"
    share.refused(0.1, claims[0], certain=True)
    assert not share.may_be_over(0)


def test_what_is_settled_behind_its_last_lock_may_be_passed_over() -> None:
    share = SharePartition("g t-0", lock_s=3.0, limits=(4, 4))
    for count in range(1, 4):
        assert share.deliver(0.0, 0.0, "m", [(0, 0, count)]) == []
        assert share.answered(0.0, 0.0, "m", share.claims(0.0, "m", [(0, 0, bytes([RELEASE]))])) == []
    assert share.deliver(0.0, 0.0, "m", [(0, 0, 4), (1, 1, 1)]) == []
    for at, offset in ((4.0, 0), (4.0, 1)):
        claims = share.claims(at, "m", [(offset, offset, bytes([ACCEPT]))])
        assert share.answered(at, at, "m", claims) == []
    assert [bool(share.entries[offset].settled) for offset in range(2)] == [False, True]
    assert share.may_be_over(0)
    share.loosen(restarted=True)
    assert share.deliver(5.0, 5.0, "m", [(0, 0, 4)]) == [], "it was given up, and that was not written"


def test_an_acknowledgement_behind_a_lock_may_be_of_an_expired_record() -> None:
    """The leader archived the record without a dead letter when its lock ran out."""
    share = SharePartition("g t-0", lock_s=3.0, limits=(4, 4), may_have_expired=lambda offset: offset < 2)
    assert share.deliver(0.0, 0.0, "m", [(0, 2, 1)]) == []
    for at, offset in ((2.0, 0), (4.0, 1), (4.0, 2)):
        claims = share.claims(at, "m", [(offset, offset, bytes([REJECT]))])
        assert share.answered(at, at, "m", claims) == []
    assert [offset for offset, _ in share.given_up()] == [0, 2], "only a lock that lasts keeps the record"
    assert share.may_be_over(1)


def test_who_began_to_lead_before_an_acknowledgement_failed_may_have_found_it_written() -> None:
    """The leader that was asked stood still, and another has read the log meanwhile."""
    share = _delivered()
    claims = [
        share.claims(at, "m", [(offset, offset, bytes([ACCEPT]))]) for offset, at in enumerate((1.0, 3.0))
    ]
    share.loosen(restarted=False)
    share.loaded_at = 2.0
    share.refused(1.0, claims[0], certain=False)
    share.refused(3.0, claims[1], certain=False)
    assert [share.may_be_over(offset) for offset in range(2)] == [True, False]
