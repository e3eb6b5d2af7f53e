"""The auditor's model of a share partition takes for possible what the wire leaves open, and nothing else."""

from __future__ import annotations

from tests.simulation.leases import SharePartition

ACCEPT = 1


def _delivered() -> SharePartition:
    share = SharePartition("g t-0", lock_s=3.0, limits=(4, 4))
    assert share.deliver(0.0, 0.0, "m", [(0, 2, 1)]) == []
    return share


def test_what_was_settled_stays_possible_where_it_was_perhaps_begun_anew() -> None:
    share = _delivered()
    assert share.answered(0.1, 0.2, "m", share.claims(0.1, "m", [(0, 0, bytes([ACCEPT]))])) == []
    # this one failed
    share.refused(share.claims(0.1, "m", [(1, 1, bytes([ACCEPT]))]), certain=False)
    share.forget(perhaps=True)
    assert [share.may_be_over(offset) for offset in range(3)] == [True, True, False]
    share.forget()
    assert not any(share.may_be_over(offset) for offset in range(3)), "it was begun anew for certain"
