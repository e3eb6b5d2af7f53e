"""When a standby fetches sealed segments from the bucket of its home."""

from __future__ import annotations

_SEALED_S = 10.0
"""A segment is uploaded, and a checkpoint names it, about so long after the next one begins."""
_PAUSE_S = 30.0
_LONG_S = 300.0
_PLACES = 500
"""Objects of the journal after which a checkpoint may be newer, although the segment is the same."""


class FetchSchedule:
    """Decides when sealed segments are fetched, so that a takeover fetches those of the last 40 s or so."""

    def __init__(self) -> None:
        self._began_s = float("-inf")
        self._place = -_PLACES
        self._segment = 0
        self._segment_s = float("-inf")
        """Since when the journal is in this segment."""
        self._sealed_s: float | None = None
        """When the first segment ended that no fetch has fetched."""
        self._again_s: float | None = None

    def is_due(self, now_s: float, place: int, segment: int) -> bool:
        """Return whether to fetch now.

        Args:
            place: the end of the journal.
            segment: the segment there.
        """
        if segment != self._segment:
            if self._segment:
                self._segment_s = now_s
                self._sealed_s = now_s if self._sealed_s is None else self._sealed_s
            self._segment = segment
        if self._again_s is not None:
            return now_s >= self._again_s
        if now_s < self._began_s + _PAUSE_S:
            return False
        is_sealed = self._sealed_s is not None and now_s >= self._sealed_s + _SEALED_S
        is_long_ago = now_s >= self._began_s + _LONG_S
        return is_sealed or (is_long_ago and place >= self._place + _PLACES)

    def begin(self, now_s: float, place: int) -> None:
        """Note that a fetch begins, at this end of the journal."""
        self._began_s, self._place = now_s, place
        self._again_s = None
        # a segment that ended just now may not be uploaded yet: the next fetch fetches it
        self._sealed_s = self._segment_s if now_s < self._segment_s + _SEALED_S else None

    def fail(self, again_s: float) -> None:
        """Note that the fetch failed; the next one is due at `again_s`."""
        self._again_s = again_s
