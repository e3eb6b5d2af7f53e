"""What holds for every test."""

from __future__ import annotations

import gc
import os
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
from tests.harness import blocking

if find_spec("hypothesis"):  # not installed for the Spark tests
    from hypothesis import settings

    # every change is tested with the same examples, without a deadline; HYPOTHESIS_PROFILE=fresh draws others
    settings.register_profile("same", deadline=None, derandomize=True)
    settings.register_profile("fresh", deadline=None)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# tests that share brokers of Apache Kafka name each broker by a parameter
_SHARING = ("tests/interop/client/", "tests/interop/upstream/")
_SHARED = re.compile(r"(?<=[\[-])(sharecore|apache|3\.9\.1|4\.3\.1)(?=[\]-])")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the event loops of brokers, in this process and in those that tests start."""
    config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
    directory = blocking.watch_processes()


# collected items live to the end, so the garbage collector need not visit them
gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the file that takes longest: one process runs all of it, beside the others."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/packaging/test_install.py"))


def pytest_collection_finish() -> None:
    """Collect garbage from here on, as seldom as a broker's process does."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


@pytest.fixture(autouse=True)
def _no_loop_is_blocked() -> Iterator[None]:
    """Fail the test during which a call has blocked the event loop of a broker."""
    yield
    if reports := blocking.take_reports():
        pytest.fail("\n".join(reports), pytrace=False)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Run all tests of a file in one process (--dist=loadfile), and so all of a broker of Apache Kafka, which
    takes about four seconds to start, and all of the tree's text.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    scheduling = LoadFileScheduling(config, log)
    scheduling._split_scope = _runs_with
    return scheduling


def _runs_with(nodeid: str) -> str:
    file, _, test = nodeid.partition("::")
    if file.startswith("tests/tidy/"):
        return "tests/tidy"  # each file of the tree is read and parsed once
    shared = _SHARED.search(test) if file.startswith(_SHARING) else None
    return f"{file.rpartition('/')[0]} on {shared[0]}" if shared else file
