"""20,000 entries of a request cost each at most three times what 2,000 cost, in every list of every API."""

from __future__ import annotations

from tests.abuse.case import MB, Bounds, case
from tests.abuse.growth import APIS, RATIO_MAX, growing, measure
from tests.abuse.subject import NOBODY, Subject

_ENTRIES = 2_000
_STAYS = Bounds(memory_bytes=600 * MB, peak_bytes=800 * MB)
"""A super user makes topics, entries and users, which stay."""


@case()
def without_rights(subject: Subject) -> None:
    _grow(subject, NOBODY)


@case(bounds=_STAYS)
def as_super_user(subject: Subject) -> None:
    _grow(subject, None)


def _grow(subject: Subject, user: str | None) -> None:
    too_much = []
    with subject.connect(user, timeout_s=120) as peer:
        for api in APIS:
            for each in growing(subject, api):
                growth = measure(subject, peer, each, _ENTRIES)
                if growth.ratio > RATIO_MAX:
                    too_much.append(f"{each.title}: {growth}")
    assert not too_much, too_much
