"""A consumer whose records are kept and acknowledged outside of the polling task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sharecore.client.consumer import ShareConsumer
from sharecore.client.fetching.batch import Part
from sharecore.client.fetching.lease import AcknowledgeType, Lease, Span
from sharecore.client.keeper import Kept
from sharecore.errors import KafkaError


class KeepingConsumer(ShareConsumer):
    """A member in explicit mode that renews locks until it is stopped, and reports every response."""

    def when_answered(self, notify: Callable[[Lease, Sequence[Span], KafkaError | None], None]) -> None:
        """Call `notify` in the event loop with each result of an acknowledgement or renewal."""
        self._runtime.results.answered = notify

    def trouble(self) -> str:
        """Return why the member cannot work now, or an empty string; thread-safe."""
        return self._runtime.membership.trouble()

    def settle(self, part: Part, kind: AcknowledgeType) -> None:
        """Acknowledge a part of a lease; sent with the next fetch or commit."""
        part.lease.owner.mark(part.lease, part.low, part.high, kind)

    def keep(self, parts: Iterable[Part]) -> Kept:
        """Renew the locks of these parts until `drop`, for at most `lease.max.ms`."""
        kept = Kept(
            self._runtime.keeper, list(parts), self.settings.lease_max_ms, AcknowledgeType.RELEASE, False
        )
        self.keep_on(kept)
        self._runtime.keeper.keep(kept)
        return kept

    def keep_on(self, kept: Kept) -> None:
        """Restart `lease.max.ms`."""
        kept.until_ms = self._runtime.now_ms() + self.settings.lease_max_ms

    def drop(self, kept: Kept) -> None:
        """Stop the renewals that `keep` started."""
        self._runtime.keeper.drop(kept)

    def release_fetched(self) -> None:
        """Release the fetched records that were not polled."""
        runtime = self._runtime
        parts = runtime.buffer.drop(lambda _: True)
        if parts:
            runtime.acknowledge_parts(parts, AcknowledgeType.RELEASE)
            runtime.commit()
