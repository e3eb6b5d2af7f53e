"""The quick cases of `make abuse`, with room for a busy machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.abuse.case import Case, cases
from tests.abuse.judge import judge
from tests.abuse.subject import Subject

WAIT_S = 5.0
"""What was unbounded took longer; a machine that does everything else beside it does not."""
QUICK = [each for each in cases() if each.quick]


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[object, Subject]]:
    started: dict[object, Subject] = {}
    yield started
    for subject in started.values():
        subject.stop()


@pytest.mark.parametrize("case", QUICK, ids=[each.title for each in QUICK])
def test_what_an_attack_costs(case: Case, subjects: dict[object, Subject], tmp_path: Path) -> None:
    subject = subjects.get(case.subject)
    if subject is None or not subject.is_running():
        subject = subjects[case.subject] = Subject(tmp_path / "broker", case.settings, secure=case.secure)
        subject.start()
    assert judge(case, subject, WAIT_S).faults == []
