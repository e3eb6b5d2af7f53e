"""Where a job writes: a directory with Parquet and the report."""

from __future__ import annotations

import shutil
from pathlib import Path

from sharecore.errors import ConfigError


def parquet_path(out: str, name: str, *, overwrite: bool) -> str:
    """Where rows of a name go: `out/name`, which is not there yet or is replaced.

    Args:
        out: a directory; one with a scheme (`hdfs://`, `s3a://`) is left to Spark.

    Raises:
        ConfigError: there is one already.
    """
    if "://" in out:
        return f"{out.rstrip('/')}/{name}"
    path = Path(out) / name
    if path.exists():
        if not overwrite:
            raise ConfigError(f"{path} is there already: --overwrite replaces it")
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return str(path.absolute())


def report_path(out: str | None, report: str | None) -> Path | None:
    """Return the report's path: the given one, or beside the Parquet files; None without either.

    Raises:
        ConfigError: Parquet goes to another file system, and no path was given.
    """
    if report is not None:
        return Path(report)
    if out is None:
        return None
    if "://" in out:
        raise ConfigError(f"--out {out}: --report FILE.html is needed as well, the report is a local file")
    return Path(out) / "report.html"
