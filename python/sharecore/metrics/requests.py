"""Request durations, measured around the dispatcher."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter_ns

from sharecore.metrics.durations import Durations
from sharecore.network import Answer, Connection, Pending

_VERSIONS_MAX = 1000

OnFrame = Callable[[Connection, bytes], Answer]


class RequestFigures:
    """Durations of one API version."""

    __slots__ = ("count", "local_ns", "request_bytes", "response_bytes", "times")

    def __init__(self) -> None:
        self.count = self.local_ns = self.request_bytes = self.response_bytes = 0
        self.times = Durations()


class RequestTimes:
    """Count requests by API and version.

    Args:
        serve: handles the frames.
    """

    def __init__(self, serve: OnFrame) -> None:
        self._serve = serve
        self.by_api: dict[bytes, RequestFigures] = {}
        """By the first four bytes of a request (API and version), or by two if there are too many."""

    def on_frame(self, connection: Connection, frame: bytes) -> Answer:
        """Handle a frame and measure its duration.

        An invalid request closes its connection before it is counted, so that foreign clients add no series.
        """
        began = perf_counter_ns()
        answer = self._serve(connection, frame)
        took = perf_counter_ns() - began
        figures = self.by_api.get(frame[:4])
        if figures is None:
            figures = self._first(frame[:4])
        figures.count += 1
        figures.request_bytes += len(frame)
        figures.local_ns += took
        if type(answer) is Pending:
            return Pending(answer.future, _Ended(figures, began, answer.finish))
        figures.times.add(took)
        if answer is not None:
            figures.response_bytes += sum(map(len, answer))
        return answer

    def _first(self, head: bytes) -> RequestFigures:
        # ApiVersions accepts any version: limit the versions that a client can add
        known = head if len(self.by_api) < _VERSIONS_MAX else head[:2]
        return self.by_api.setdefault(known, RequestFigures())


class _Ended:
    """Completion of a deferred answer."""

    __slots__ = ("_began", "_figures", "_finish")

    def __init__(
        self,
        figures: RequestFigures,
        began: int,
        finish: Callable[[asyncio.Future[object]], list[bytes] | None],
    ) -> None:
        self._figures = figures
        self._began = began
        self._finish = finish

    def __call__(self, done: asyncio.Future[object]) -> list[bytes] | None:
        parts = self._finish(done)
        self._figures.times.add(perf_counter_ns() - self._began)
        if parts is not None:
            self._figures.response_bytes += sum(map(len, parts))
        return parts
