"""Whether two verdicts are the same, and the names of those that are different on purpose."""

from __future__ import annotations

from typing import NamedTuple

from tests.differential.configs.case import Case, Verdict, judge

_READ_WHEN_USED = ("ssl.", "sasl.", "authorizer.", "allow.everyone.")
"""Keys of which Apache finds out when it opens a listener or lets somebody in that their values are wrong."""


_PAST_APACHE = "partition.max.record.locks"
_NEWER = "errors.deadletterqueue."
"""Settings that came with 4.4.0, and one of ours beside them."""


class Found(NamedTuple):
    """`same`, `differs`, or the name of a difference that is kept; and both verdicts for a person."""

    name: str
    text: str


def compare(case: Case, apache: Verdict) -> Found:
    """What this broker says of a case beside what Apache said."""
    ours = judge(case)
    text = f"{case.scope} {case.settings} {case.broker or ''}\n  ours: {ours}\n  Apache: {apache}"
    if bool(ours.refused) == bool(apache.refused) and ours.retention_ms == apache.retention_ms:
        return Found("same", text)
    return Found(_kept(case, ours, apache) or "differs", text)


def _kept(case: Case, ours: Verdict, apache: Verdict) -> str:
    names = case.settings.keys() | case.broker.keys()
    if ours.refused and not apache.refused and any(name.startswith(_READ_WHEN_USED) for name in names):
        return "read when used"
    if ours.refused and not apache.refused and "NaN" in {*case.settings.values(), *case.broker.values()}:
        return "not a number"
    if any(name.startswith(_NEWER) for name in names):
        return "dead letters are newer"
    if apache.refused and _PAST_APACHE in apache.refused and "no more than" in apache.refused:
        return "more record locks"
    return ""
