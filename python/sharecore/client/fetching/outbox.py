"""Acknowledgements on their way to one leader: what is marked, grouped into requests, and settled."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

from sharecore.client.fetching.acknowledgements import Results
from sharecore.client.fetching.lease import AcknowledgeType, Lease, Span
from sharecore.client.wire.cluster import TopicIdPartition
from sharecore.errors import ErrorCode, KafkaError

Entry = tuple[Lease, Span]


class Parcel:
    """The acknowledgements of one request, by share partition, in the order of their offsets."""

    def __init__(self, entries: dict[TopicIdPartition, list[Entry]]) -> None:
        self.entries = entries

    def __bool__(self) -> bool:
        return bool(self.entries)

    @property
    def spans(self) -> dict[TopicIdPartition, list[Span]]:
        return {key: [span for _, span in entries] for key, entries in self.entries.items()}

    @property
    def renews(self) -> bool:
        """Whether a renewal is among them, which no fetch may carry."""
        return any(
            AcknowledgeType.RENEW in span.types for entries in self.entries.values() for _, span in entries
        )


class Outbox:
    """Leases with something to send to one leader.

    A leader takes all of a request's acknowledgements of a share partition or none. What is refused for the
    state of its records is therefore sent again in halves until the one that is wrong stands alone, and what
    may have run out goes apart from the rest from the start.

    Args:
        results: notified of each answer.
        now_ms: the consumer's clock.
    """

    def __init__(self, results: Results, now_ms: Callable[[], int]) -> None:
        self._results = results
        self._now_ms = now_ms
        self._marked: set[Lease] = set()
        self._again: deque[tuple[TopicIdPartition, list[Entry]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._marked or self._again)

    def add(self, lease: Lease) -> None:
        """Something of the lease was marked."""
        self._marked.add(lease)

    @property
    def urgent(self) -> bool:
        """Whether there is something that must not ride on a fetch."""
        return bool(self._again)

    @property
    def renews(self) -> bool:
        """Whether a renewal is marked."""
        return any(lease.renews for lease in self._marked)

    @property
    def leases(self) -> set[Lease]:
        """The leases with something to send."""
        return self._marked | {lease for _, entries in self._again for lease, _ in entries}

    def keys(self) -> set[TopicIdPartition]:
        """Return the share partitions that have something to send."""
        return {lease.key for lease in self._marked} | {key for key, _ in self._again}

    def collect(self) -> Parcel:
        """Take the acknowledgements for the next request."""
        if self._again:
            entries: dict[TopicIdPartition, list[Entry]] = {}
            for _ in range(len(self._again)):
                key, group = self._again.popleft()
                if key in entries:
                    self._again.append((key, group))
                else:
                    entries[key] = group
            return Parcel(entries)
        now = self._now_ms()
        late = {lease for lease in self._marked if lease.deadline_ms < now}
        leases = self._marked - late or late
        self._marked -= leases
        found: dict[TopicIdPartition, list[Entry]] = defaultdict(list)
        for lease in leases:
            lease.queued = False
            spans = lease.collect()
            if spans:
                found[lease.key] += [(lease, span) for span in spans]
        for key, group in found.items():
            found[key] = self._in_order(group)
        return Parcel(found)

    def _in_order(self, entries: list[Entry]) -> list[Entry]:
        if len(entries) == 1:
            return entries
        entries.sort(key=lambda entry: entry[1].first)
        taken: list[Entry] = []
        for lease, span in entries:
            # the same offset may have been acquired anew before its first acknowledgement was sent
            if taken and span.first <= taken[-1][1].last:
                lease.put_back(span)
                self._marked.add(lease)
            else:
                taken.append((lease, span))
        return taken

    def put_back(self, parcel: Parcel) -> None:
        """The request was not sent, or will be understood another time."""
        for entries in parcel.entries.values():
            for lease, span in entries:
                lease.put_back(span)
                self._marked.add(lease)

    def settle(self, parcel: Parcel, key: TopicIdPartition, error: KafkaError | None, lock_ms: int) -> int:
        """Take the leader's answer for one share partition; return how many offsets it settles."""
        entries = parcel.entries[key]
        if error is not None and error.code == ErrorCode.INVALID_RECORD_STATE and len(entries) > 1:
            half = len(entries) // 2
            self._again.append((key, entries[:half]))
            self._again.append((key, entries[half:]))
            return 0
        deadline_ms = self._now_ms() + lock_ms
        by_lease: dict[Lease, list[Span]] = defaultdict(list)
        for lease, span in entries:
            if lease.settle(span, error, deadline_ms):
                self._marked.add(lease)
            if span.types.strip(b"\0"):
                by_lease[lease].append(span)
        for lease, spans in by_lease.items():
            self._results.settled(lease, spans, error)
        return sum(len(span.types) for _, span in entries)

    def drop(self, lease: Lease) -> None:
        """The lease is lost; nothing of it is sent any more."""
        self._marked.discard(lease)
        lease.queued = False
        self._again = deque(
            (key, rest)
            for key, entries in self._again
            if (rest := [entry for entry in entries if entry[0] is not lease])
        )
