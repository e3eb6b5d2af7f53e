"""What holds for every test."""

from __future__ import annotations

import os
from importlib.util import find_spec

if find_spec("hypothesis"):  # the environment of the Spark tests does without
    from hypothesis import settings

    # every change is judged by the same examples, and none is too slow: HYPOTHESIS_PROFILE=fresh draws others
    settings.register_profile("same", deadline=None, derandomize=True)
    settings.register_profile("fresh", deadline=None)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
