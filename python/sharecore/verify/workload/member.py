"""A share consumer that records every delivery and every acknowledgement result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sharecore._core import Record, decode_records
from sharecore.client.fetching.host import Host, Source
from sharecore.client.fetching.intake import take_in
from sharecore.client.fetching.lease import AcknowledgeType, Lease, Span
from sharecore.client.keeping import KeepingConsumer
from sharecore.client.wire.cluster import TopicIdPartition
from sharecore.errors import ErrorCode, KafkaError
from sharecore.verify.workload.journal import Journal

if TYPE_CHECKING:
    from sharecore.protocol.received import ShareFetchPartitionData

_KINDS = {kind.value: kind.name.lower() for kind in AcknowledgeType}
_REFUSED = (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)


class Member(KeepingConsumer):
    """A member of the share group.

    Args:
        journal: where calls are recorded.
        name: of this client in the history.
        group: the group's name in the history.
        labels: names of topics in the history, where they differ.
    """

    def __init__(
        self,
        journal: Journal,
        name: str,
        group: str,
        settings: Mapping[str, object],
        labels: dict[str, str] | None = None,
    ) -> None:
        self._journal, self.name, self._label = journal, name, group
        self._topics = labels or {}
        self._begun: dict[tuple[str, int, int], float] = {}
        super().__init__(settings)
        self._runtime.take_in = self._taken
        self._runtime.on_lost = self._lost
        self.when_answered(self._answered)

    def _place(self, topic: str, partition: int) -> dict[str, object]:
        return {
            "client": self.name,
            "group": self._label,
            "topic": self._topics.get(topic, topic),
            "partition": partition,
        }

    def _taken(self, key: TopicIdPartition, answer: ShareFetchPartitionData, link: Source, host: Host) -> int:
        """Record the records of a fetch, before anyone sees them."""
        topic = host.cluster.topics[key.topic_id].name
        count = take_in(key, answer, link, host)
        records, *_ = decode_records(
            answer.records or b"", answer.acquired_records, topic, key.partition, None
        )
        ident = self._journal.ident
        self._journal.taken += len(records)
        self._journal.write(
            "take",
            link.fetch_began_ms,
            **self._place(topic, key.partition),
            lock_ms=host.lock_ms,
            records=[[each.offset, ident(each.value), each.delivery_count] for each in records],
        )
        return count

    def decide(self, records: Sequence[Record], kind: AcknowledgeType) -> None:
        """Acknowledge records, and note the start time."""
        now = self._journal.now_ms()
        for each in records:
            self._begun.setdefault((each.topic, each.partition, each.offset), now)
        if not self._is_taken(records, kind):
            # a record no longer held would fail the whole call
            for each in records:
                self._is_taken([each], kind)

    def _is_taken(self, records: Sequence[Record], kind: AcknowledgeType) -> bool:
        """Acknowledge records; return False if one of them is no longer held."""
        try:
            self.acknowledge(records, kind)
        except KafkaError as error:
            if error.code not in _REFUSED:
                raise
            return False
        return True

    def _answered(self, lease: Lease, spans: Sequence[Span], error: KafkaError | None) -> None:
        outcome = "ok" if error is None else "failed" if error.code in _REFUSED else "unknown"
        runs: dict[tuple[int, float], list[list[int]]] = {}
        taken_ms = lease.deadline_ms - self._runtime.lock_ms
        for span in spans:
            for at in range(span.last - span.first + 1):
                kind = span.types[at]
                if kind not in _KINDS:
                    continue
                offset = span.first + at
                # the client released this by itself, some time after it was acquired
                begun = self._begun.pop((lease.topic, lease.partition, offset), taken_ms)
                several = runs.setdefault((kind, begun), [])
                if several and several[-1][1] == offset - 1:
                    several[-1][1] = offset
                else:
                    several.append([offset, offset])
        for (kind, begun), offsets in runs.items():
            self._journal.settled += sum(last - first + 1 for first, last in offsets) if error is None else 0
            more = {"lock_ms": self._runtime.lock_ms} if kind == AcknowledgeType.RENEW else {}
            place = self._place(lease.topic, lease.partition)
            self._journal.write(
                "settle",
                min(begun, self._journal.now_ms()),
                outcome,
                **place,
                kind=_KINDS[kind],
                offsets=offsets,
                **more,
            )

    def _lost(self, lease: Lease) -> None:
        self._journal.write("lost", self._journal.now_ms(), "ok", **self._place(lease.topic, lease.partition))

    async def leave(self) -> None:
        """Leave the group, as a member that ends normally."""
        began = self._journal.now_ms()
        await self.close(10)
        self._journal.write("leave", began, client=self.name, group=self._label)

    async def vanish(self) -> None:
        """Stop like a killed process: no broker is notified."""
        began = self._journal.now_ms()
        await self._runtime.vanish()
        self._closed = True
        self._journal.write("leave", began, "unknown", client=self.name, group=self._label)
