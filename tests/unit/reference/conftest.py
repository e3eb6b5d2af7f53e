"""Runs each test with both engines."""

from __future__ import annotations

import pytest

from sharecore.trace.engines import Engine, EngineName
from sharecore.trace.engines import engine as engine_named


@pytest.fixture(params=["rust", "reference"])
def engine(request: pytest.FixtureRequest) -> Engine:
    name: EngineName = request.param
    return engine_named(name)
