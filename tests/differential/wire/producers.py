"""Ids, epochs and sequence numbers of producers.

A producer is named by its transactional id, or by the connection that it asked for an id on. A script says
`{"producer": "~ann"}` for its id (`~ann/1` for the first that it had), `{"epoch_of": "~ann", "plus": 0}` for
the epoch that it was answered last, and `{"next": "~ann orders 0", "plus": 0}` for the sequence number that
comes next in a partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.differential.wire.script import Ask

_NOBODY = 1 << 40
"""Ids from here on are nobody's."""
_SEQUENCES = 2**31


def name_of(ask: Ask) -> str:
    """Whose id a request is about."""
    return ask.fields.get("transactional_id") or ask.on


class Ids:
    """Producer ids on one broker."""

    def __init__(self) -> None:
        self._ids: dict[str, list[int]] = {}
        self._aliases: dict[int, str] = {}

    def learn(self, name: str, producer_id: int) -> None:
        """A producer was given this id."""
        if producer_id >= 0 and producer_id not in self._aliases:
            ids = self._ids.setdefault(name, [])
            ids.append(producer_id)
            self._aliases[producer_id] = f"{name}/{len(ids)}"

    def id_of(self, reference: str) -> int:
        """Return the id behind `name` or `name/1`; nobody's where there is no such producer."""
        name, _, number = reference.partition("/")
        ids = self._ids.get(name, [])
        at = int(number) - 1 if number else len(ids) - 1
        return ids[at] if 0 <= at < len(ids) else _NOBODY + len(reference)

    def alias(self, producer_id: int) -> str | int:
        """What a script calls an id."""
        return self._aliases.get(producer_id, producer_id)

    def number(self, producer_id: int) -> int:
        """Return the same number on both brokers for an id that has an alias."""
        if producer_id not in self._aliases:
            return _NOBODY + producer_id
        return list(self._aliases).index(producer_id)


class Sequences:
    """Epochs of producers, and the sequence number that each partition wants next, by a broker's answers."""

    def __init__(self) -> None:
        self._epochs: dict[str, int] = {}
        self._next: dict[str, int] = {}
        self._ends: dict[str, int] = {}

    def epoch(self, name: str) -> int:
        return self._epochs.get(name, 0)

    def following(self, name: str) -> int:
        """`name` is that of a producer, a topic and a partition."""
        return self._next.get(name, 0)

    def observe(self, ask: Ask, literal: dict[str, Any], answer: Any) -> None:
        """Takes note of what a broker answered to a producer."""
        if ask.api in ("INIT_PRODUCER_ID", "END_TXN"):
            epoch = answer.get("producer_epoch", -1)
            if answer["error_code"] == 0 and epoch >= 0:
                self._begins(name_of(ask), epoch)
        elif ask.api == "PRODUCE":
            for name, batch, base in _appended(literal, answer):
                if base > self._ends.get(name, -1):
                    self._ends[name] = base
                    self._next[name] = (batch["sequence"] + len(batch["values"])) % _SEQUENCES

    def _begins(self, producer: str, epoch: int) -> None:
        if self._epochs.get(producer) != epoch:
            self._epochs[producer] = epoch
            for name in [each for each in self._next if each.startswith(producer + " ")]:
                del self._next[name]


def _appended(literal: dict[str, Any], answer: Any) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Each batch of a producer that was appended, by producer and partition, with its offset."""
    for topic, responses in zip(literal["topic_data"], answer["responses"], strict=True):
        for part in topic["partition_data"]:
            told = [each for each in responses["partition_responses"] if each["index"] == part["index"]]
            batch = part["records"]
            if told and told[0]["error_code"] == 0 and "producer" in (batch or {}):
                name = f"{batch['producer']['producer']} {topic['name'].lstrip('~')} {part['index']}"
                yield name, batch, told[0]["base_offset"]
