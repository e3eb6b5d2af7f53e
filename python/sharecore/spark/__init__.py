"""Share groups in PySpark: the streaming source `sharegroup` and the batch source `sharestate`.

Needs the extra `sharecore[spark]`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharecore.spark.outcomes import settle
    from sharecore.spark.reader import ShareGroupSource
    from sharecore.spark.register import register
    from sharecore.spark.state_reader import ShareStateSource

__all__ = ["ShareGroupSource", "ShareStateSource", "register", "settle"]

_HOMES = {
    "ShareGroupSource": "reader",
    "ShareStateSource": "state_reader",
    "register": "register",
    "settle": "outcomes",
}


def __getattr__(name: str) -> object:
    """Import pyspark when it is needed; raise ImportError if it is missing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import pyarrow  # noqa: F401
        import pyspark.sql.streaming.datasource  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"sharecore.spark needs pyspark 4.2 or later and pyarrow in this Python ({error}): "
            'pip install "sharecore[spark]"; on a cluster also where PYSPARK_PYTHON points to'
        ) from error
    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
