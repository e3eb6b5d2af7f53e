"""Outgoing acknowledgements to one leader: collected from marks, grouped into requests, and completed."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

from sharecore.client.fetching.acknowledgements import Results
from sharecore.client.fetching.lease import AcknowledgeType, Lease, Span
from sharecore.client.wire.cluster import TopicIdPartition
from sharecore.errors import ErrorCode, KafkaError

Entry = tuple[Lease, Span]


class PendingAcks:
    """The acknowledgements of one request, by share partition, in offset order."""

    def __init__(self, entries: dict[TopicIdPartition, list[Entry]]) -> None:
        self.entries = entries

    def __bool__(self) -> bool:
        return bool(self.entries)

    @property
    def spans(self) -> dict[TopicIdPartition, list[Span]]:
        return {key: [span for _, span in entries] for key, entries in self.entries.items()}

    @property
    def renews(self) -> bool:
        """Whether it contains a renewal, which a fetch may not carry."""
        return any(
            AcknowledgeType.RENEW in span.types for entries in self.entries.values() for _, span in entries
        )


class Outbox:
    """Leases with something to send to one leader.

    A leader accepts all of a request's acknowledgements of a share partition or none. A request refused for
    the state of its records is therefore resent in halves until the offending one is isolated, and
    acknowledgements of possibly expired locks are sent separately from the start.

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
        """Record that the lease has marks."""
        self._marked.add(lease)

    @property
    def urgent(self) -> bool:
        """Whether something must not be sent with a fetch."""
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

    def collect(self) -> PendingAcks:
        """Collect the acknowledgements for the next request."""
        if self._again:
            entries: dict[TopicIdPartition, list[Entry]] = {}
            for _ in range(len(self._again)):
                key, group = self._again.popleft()
                if key in entries:
                    self._again.append((key, group))
                else:
                    entries[key] = group
            return PendingAcks(entries)
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
        return PendingAcks(found)

    def _in_order(self, entries: list[Entry]) -> list[Entry]:
        if len(entries) == 1:
            return entries
        entries.sort(key=lambda entry: entry[1].first)
        taken: list[Entry] = []
        for lease, span in entries:
            # the same offset may have been acquired again before its first acknowledgement was sent
            if taken and span.first <= taken[-1][1].last:
                lease.put_back(span)
                self._marked.add(lease)
            else:
                taken.append((lease, span))
        return taken

    def put_back(self, acks: PendingAcks) -> None:
        """Restore the acknowledgements of a request that was not sent, or must be sent again."""
        for entries in acks.entries.values():
            for lease, span in entries:
                lease.put_back(span)
                self._marked.add(lease)

    def settle(self, acks: PendingAcks, key: TopicIdPartition, error: KafkaError | None, lock_ms: int) -> int:
        """Apply the leader's response for one share partition; return the number of completed offsets."""
        entries = acks.entries[key]
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
        """Drop a lost lease; none of its marks is sent."""
        self._marked.discard(lease)
        lease.queued = False
        self._again = deque(
            (key, rest)
            for key, entries in self._again
            if (rest := [entry for entry in entries if entry[0] is not lease])
        )
