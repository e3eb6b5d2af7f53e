"""The types of the public interface, as an application's type checkers see them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.harness.broker import ROOT

APPLICATION = Path(__file__).with_name("application.py")
WRONG = """

def wrong(order: Order) -> None:
    Record(value=order).value.nothing_of_it
    assert_type(bill.name, int)
"""


def test_an_application_is_right_for_mypy_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    """One run for both, as most of its time goes into the package."""
    wrong = tmp_path / "wrong_application.py"
    wrong.write_text(APPLICATION.read_text() + WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run(
        [*command, str(APPLICATION), str(wrong)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 2, done.stdout + done.stderr
    assert all("wrong_application.py" in line for line in errors)
    assert '"Order" has no attribute "nothing_of_it"' in errors[0]


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed: make pyright")
def test_an_application_is_right_for_pyright(tmp_path: Path) -> None:
    command = ["pyright", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, str(APPLICATION)], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
