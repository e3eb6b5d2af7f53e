"""The checker: what a history proves to be wrong."""

from __future__ import annotations

from sharecore.verify.check.breach import Breach
from sharecore.verify.check.run import Result, check

__all__ = ["Breach", "Result", "check"]
