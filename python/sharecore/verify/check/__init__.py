"""The checker: finds the errors that a history proves."""

from __future__ import annotations

from sharecore.verify.check.breach import Breach
from sharecore.verify.check.run import Result, check

__all__ = ["Breach", "Result", "check"]
