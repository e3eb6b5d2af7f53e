"""The wheel that was installed is the one that was built, and holds what it should."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tarfile
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
    assert "-cp311-abi3-" in wheel.name


def test_contents(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert "sharecore/py.typed" in names
    assert "sharecore/_core.pyi" in names
    assert any(name.startswith("sharecore/_core.") and name.endswith(".so") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    tree = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python").rglob("*.py")}
    assert tree <= set(names)
    assert {f"sharecore/page/assets/{name}" for name in assets()} <= set(names)
    assert [name for name in names if name.startswith(("tests/", "benches/"))] == []


def assets() -> set[str]:
    """What the page is made of."""
    found = {path.name for path in (ROOT / "python/sharecore/page/assets").iterdir()}
    assert {Path(name).suffix for name in found} == {".css", ".html", ".js", ".svg"}
    return found


def test_the_sources_as_pip_takes_them_hold_the_page(tmp_path: Path) -> None:
    maturin = ROOT / ".venv/bin/maturin"
    subprocess.run([maturin, "sdist", "--out", tmp_path], cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("sharecore-*.tar.gz")
    with tarfile.open(archive) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    assert {f"python/sharecore/page/assets/{name}" for name in assets()} <= names
    assert {"pyproject.toml", "Cargo.lock", "rust/binding/src/lib.rs"} <= names


def test_metadata() -> None:
    metadata = importlib.metadata.metadata("sharecore")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra") or []) == {
        "broker", "celery", "dramatiq", "keda", "page", "schedules", "spark", "taskiq",
    }  # fmt: skip


def test_the_engine_alone_has_commands_that_say_what_they_need() -> None:
    code = "import sys; sys.modules['typer'] = None; from sharecore.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    told = "sharecore: typer is missing; run: pip install 'sharecore'\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", told)


def test_the_engine_alone_imports_no_third_party() -> None:
    code = (
        "import sys, sharecore._core;"
        "print([m for m in ('kio', 'typer', 'rich', 'uvloop', 'hypothesis') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-I", "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "[]"
