"""Python imports this as it starts, in each process that a test starts: see `tests.harness.blocking`."""

from __future__ import annotations

import os
import sys

if os.environ.get("BLOCKING_CALLS_DIRECTORY"):
    _root = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3)
    sys.path.append(_root)
    from tests.harness.blocking import watch_this_process

    sys.path.remove(_root)
    watch_this_process()
