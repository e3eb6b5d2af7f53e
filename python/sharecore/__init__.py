"""Kafka share groups (KIP-932) without the JVM: an engine to embed and a broker to run."""

from __future__ import annotations

try:
    from sharecore import _core as _core
except ImportError as error:  # pragma: no cover - a broken installation cannot be imported in a test
    raise ImportError(
        "sharecore's compiled engine is missing; install a wheel (pip install sharecore) "
        "or build it in the source tree (make build)"
    ) from error
