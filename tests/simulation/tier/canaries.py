"""Bugs of a tier to be planted: the simulator must find each of them.

Those that other layers make up for are planted in `test_layers`, where none does: base offsets that are not
compared, batches of former owners that count, a lease without an end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from tests.simulation.canaries import CANARIES, Canary, _instead, _never, _nothing
from tests.simulation.queues.canaries import QUEUE_CANARIES, _without
from tests.simulation.queues.settings import BOUNDS, ORDER, WAITS

from sharecore.errors import KafkaError
from sharecore.partition.leader import SharePartition
from sharecore.storage import Topics
from sharecore.tier.settings.topic import SettingsCatalog
from sharecore.tier.slots import claims
from sharecore.tier.slots import log as slot_log
from sharecore.tier.slots.claims import SlotHistory
from sharecore.tier.slots.log import SlotLog
from sharecore.tier.upstream.batches import Batch, Scanned, cut_batches
from sharecore.tier.upstream.log import UpstreamLog
from sharecore.tier.upstream.replay import Reading, replay
from sharecore.tier.upstream.sources import Sources
from sharecore.tier.upstream.topics import UpstreamTopics
from sharecore.tier.upstream.window import Window
from sharecore.upstream import Membership, Upstream
from sharecore.upstream.writer import ExclusiveWriter, _Append

MEMBERS = "members,transactions"
MOVES = f"{MEMBERS},node kills,node stops,node pauses"


async def _short_of_the_end(
    reading: Reading, topic: str, partition: int, start: int, end: int
) -> AsyncIterator[bytes]:
    """The newest records are not read."""
    async for records in replay(reading, topic, partition, start, end):
        yield b"".join(batch.data for batch in cut_batches(records) if batch.last_offset < end - 3)


async def not_compared(self: ExclusiveWriter, found: int, expected: int, count: int) -> None:
    """Wherever a batch stands, it is taken for written."""
    self._sequence += count


def all_count(self: SlotHistory, records: bytes) -> list[Scanned]:
    """Batches of former owners count behind the claim of the next."""
    found = []
    for batch in cut_batches(records):
        if self.claim is not None and batch.producer != self.claim.producer:
            self.claim, self._newest = self.claim._replace(producer=batch.producer), batch.sequence - 1
        found += _take(self, batch.data)
    return found


_take = SlotHistory.take
_claim_record = claims.claim_record
_write = ExclusiveWriter._write
_delete_before = SlotLog.delete_before


def _of_an_old_epoch(slot: int, epoch: int, node_id: int, now_ms: int) -> Any:
    return _claim_record(slot, 1_000 - epoch, node_id, now_ms)


def _renewed_nowhere(self: SlotLog, offset: int) -> Any:
    """Deletes what is needed."""
    self.claims.append(self.high_watermark)
    return _delete_before(self, self.high_watermark)


def _stays_as_it_was(self: UpstreamLog, end_offset: int) -> None:
    """Does not notice that the cluster has lost records."""


def _of_whole_chunks(self: Window, first: int, end: int) -> list[tuple[int, int]]:
    """Takes what was aborted in front for aborted here."""
    found: dict[tuple[int, int], None] = {}
    while first < end and (chunk := self.find(first)) is not None:
        found |= dict.fromkeys((producer, begun) for producer, begun, _ in chunk.aborted)
        first = chunk.end
    return list(found)


def _written_at_once(self: ExclusiveWriter, appends: Sequence[_Append]) -> Any:
    """Tells that it is written before anybody has it."""
    for each in appends:
        each.done(None)
    return _write(self, [each._replace(done=_nothing) for each in appends])


def _however_late(self: Batch, sequence: int) -> bool:
    """Takes a copy of an old batch for a new one."""
    return True


async def _confirmed_by_nobody(self: Membership, connection: object) -> bool:
    """Takes any heartbeat for a good one."""
    return True


def _for_good(self: Membership, error: KafkaError) -> None:
    """A node that was refused once never joins again."""
    self.error = error
    self._lose(error)
    for task in self._tasks:
        task.cancel()


@contextmanager
def _known_by_all() -> Iterator[None]:
    """A topic that a node does not know is none, though it was made through another one a moment ago."""
    with (
        mock.patch.object(UpstreamTopics, "when_gone", Topics.when_gone),
        mock.patch.object(Upstream, "refreshed", _never),
    ):
        yield


TIER_CANARIES: dict[str, Canary] = {
    "claims that are not read up to": Canary(_instead(slot_log, "replay", _short_of_the_end), MOVES),
    "late copies that count": Canary(
        # needs a cluster that forgets a producer while a copy is pending
        _instead(Batch, "is_ahead_of", _however_late),
        "members,forgotten producers,late requests",
    ),
    "epochs that fall": Canary(_instead(slot_log, "claim_record", _of_an_old_epoch), MOVES),
    "answers before the write": replace(
        CANARIES["answers before the write"], features=f"{MOVES},leader changes,broker kills"
    ),
    "writes that nobody waits for": Canary(
        _instead(ExclusiveWriter, "_write", _written_at_once), f"{MOVES},leader changes,broker kills"
    ),
    "heartbeats that count unconfirmed": Canary(
        # needs a coordinator that does not know, and time until the group is one node smaller
        _instead(Membership, "_confirm", _confirmed_by_nobody),
        "members,coordinator moves,node pauses",
    ),
    "refusals that are final": Canary(
        _instead(Membership, "_refuse", _for_good), "members,refused members,doubles", events=6_000
    ),
    "state that is deleted too early": Canary(_instead(SlotLog, "delete_before", _renewed_nowhere), MOVES),
    "settled state that is not loaded": replace(CANARIES["settled state that is not loaded"], features=MOVES),
    "letters that a crash forgets": replace(
        # needs a crash while a dead letter is pending
        CANARIES["letters that a crash forgets"],
        features="members,letters,node kills,late requests",
    ),
    "counts that begin anew": replace(CANARIES["counts that begin anew"], features=MOVES),
    "a start offset that goes back": replace(CANARIES["a start offset that goes back"], features=MOVES),
    "records that were lost and are kept": Canary(
        _instead(UpstreamLog, "truncate", _stays_as_it_was),
        f"{MEMBERS},unclean elections",
        # needs a record that is lost before it is finished: more, shorter seeds
        events=6_000,
    ),
    "aborted transactions of others": Canary(_instead(Window, "aborted", _of_whole_chunks), MEMBERS),
    "settings that others do not hear of": Canary(_instead(SettingsCatalog, "_apply", _nothing), MOVES),
    "topics that are not known yet": Canary(_known_by_all, "slot moves,topic administrators"),
    "released records that come last": replace(
        QUEUE_CANARIES["released records that come last"], features=f"members,{ORDER}"
    ),
    "loaded records that nobody looks at": replace(
        QUEUE_CANARIES["loaded records that nobody looks at"],
        features=f"members,{ORDER},node kills,node stops",
    ),
    "back-offs that a load forgets": replace(
        QUEUE_CANARIES["back-offs that a load forgets"], features=f"members,{WAITS},node kills,node stops"
    ),
    "takeovers that nobody waits for": Canary(
        _instead(SharePartition, "takeover_left_ms", 0), f"members,{ORDER},node kills"
    ),
    "delivery times that nobody reads": Canary(_without(deliver_at_header=""), f"members,{WAITS}"),
    "records that do not expire": replace(
        QUEUE_CANARIES["records that do not expire"], features=f"members,{WAITS}"
    ),
    "times that pass others": replace(
        QUEUE_CANARIES["times that pass others"], features=f"members,{ORDER},{WAITS}"
    ),
    "members without a bound": replace(
        QUEUE_CANARIES["members without a bound"], features=f"members,{BOUNDS}"
    ),
    "rates that nobody heeds": replace(
        QUEUE_CANARIES["rates that nobody heeds"], features=f"members,{BOUNDS}"
    ),
    "nobody is woken": replace(CANARIES["nobody is woken"], features=MEMBERS),
    "limits that are never told": Canary(_instead(Sources, "_ask", _nothing), MEMBERS),
    "locks without a timer": Canary(
        _instead(SharePartition, "_expire", _nothing), "members,misfits,consumers,cuts,silence", events=9_000
    ),
}
