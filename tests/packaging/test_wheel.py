"""The wheel that was installed is the one that was built, and holds what it should."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import sharecore

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel() -> Path:
    (wheel,) = (ROOT / "dist").glob("sharecore-*.whl")
    return wheel


def test_tests_run_on_the_wheel_and_not_on_the_tree() -> None:
    assert ROOT / "python" not in Path(sharecore.__file__).parents


def test_one_wheel_for_every_cpython(wheel: Path) -> None:
    assert "-cp310-abi3-" in wheel.name


def test_contents(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert "sharecore/py.typed" in names
    assert "sharecore/_core.pyi" in names
    assert any(name.startswith("sharecore/_core.") and name.endswith(".so") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    tree = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python").rglob("*.py")}
    assert tree <= set(names)
    assert [name for name in names if name.startswith(("tests/", "benches/"))] == []


def test_metadata() -> None:
    metadata = importlib.metadata.metadata("sharecore")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.10"
    assert set(metadata.get_all("Provides-Extra") or []) >= {"broker", "clients", "top"}


def test_the_engine_alone_imports_no_third_party() -> None:
    code = (
        "import sys, sharecore._core;"
        "print([m for m in ('kio', 'typer', 'rich', 'uvloop', 'hypothesis') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"
