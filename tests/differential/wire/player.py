"""Plays scripts on both brokers in lock step."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.differential.wire.aliases import bind
from tests.differential.wire.compare import Difference, differences, same_order
from tests.differential.wire.known import NOTHING_MORE, ORDER, Exchange, Known, explain
from tests.differential.wire.masks import learn_producers, learn_topics, own_only, plain
from tests.differential.wire.names import Names
from tests.differential.wire.script import Answer, Ask, Close, Restart, Scenario, Sleep, Step, to_line
from tests.differential.wire.settle import (
    settle_configs,
    settle_groups,
    settle_releases,
    settle_states,
    settle_topics,
    settle_transaction,
)
from tests.differential.wire.side import SILENT, Side
from tests.differential.wire.world import World, to_broker

_TOPICS_CHANGE = {"CREATE_TOPICS", "DELETE_TOPICS", "CREATE_PARTITIONS"}
_CONFIGS_CHANGE = {"INCREMENTAL_ALTER_CONFIGS", "ALTER_CONFIGS"}
_TRANSACTIONS_END = {"END_TXN", "INIT_PRODUCER_ID"}
_OF_CLASSIC_GROUPS = {"JOIN_GROUP", "SYNC_GROUP"}
"""They wait for other members."""
_RECORDS_COME = {"PRODUCE", "END_TXN"}
_LAST_EPOCH = -1
_PATIENCE_SECONDS = 60
_SOON_SECONDS = 10
"""Shorter than what waits for something may wait for it."""
_READ_SECONDS = 0.1
"""A node has read by then what the cluster behind it has."""
_BEGAN_MS = 60_000
"""How long ago producers wrote, so that no clock of a broker says the same."""


@dataclass
class Played:
    """What was seen while a script was played.

    Attributes:
        steps: what was played; where there is a difference the last one showed it.
        differences: the fields that differ and have no name.
        known: names of the differences that are kept, with counts.
    """

    steps: list[Step] = field(default_factory=list)
    requests: int = 0
    apis: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)

    def signature(self) -> tuple[str, ...]:
        """What kind of difference this is: the API and the first field."""
        last = self.steps[-1]
        return (last.api if isinstance(last, Ask) else "", *(found.path for found in self.differences[:1]))


class Player:
    """Two brokers that have been started; scripts get names of their own on them.

    Args:
        more: differences that are known beyond those of every broker.
    """

    def __init__(self, apache: Side, ours: Side, salt: str = "w", more: Known = NOTHING_MORE) -> None:
        self._sides = (apache, ours)
        self._more = more
        self._prefixes = (f"{salt}{number:06}-" for number in itertools.count(1))

    def play(self, scenario: Scenario, watch: Callable[[str], None] | None = None) -> Played:
        """Plays what a generator yields, up to the first difference without a name.

        Args:
            scenario: yields steps.
            watch: told each step and what Apache Kafka answered.
        """
        played = Played()
        script = _Script(self._sides, next(self._prefixes), self._more)
        try:
            step = next(scenario)
            while True:
                played.steps.append(step)
                answer = script.do(step, played)
                if watch is not None:
                    watch(f"{to_line(step)}\n  {json.dumps(answer)}")
                if played.differences:
                    break
                step = scenario.send(answer)
        except StopIteration:
            pass
        finally:
            script.end()
        return played

    def replay(self, steps: Iterable[Step], watch: Callable[[str], None] | None = None) -> Played:
        """Plays steps that were written down."""

        def scenario() -> Scenario:
            for step in steps:  # noqa: UP028 (a list cannot be sent answers)
                yield step

        return self.play(scenario(), watch)


class _Script:
    """One playing of a script."""

    def __init__(self, sides: tuple[Side, Side], prefix: str, more: Known) -> None:
        self._sides = sides
        self._more = more
        began_ms = int(time.time() * 1000) - _BEGAN_MS
        self._names = (Names(prefix, began_ms), Names(prefix, began_ms))
        self._world = World()
        self._connections: set[str] = set()
        self._waiting: dict[str, tuple[Ask, dict[str, Any]]] = {}
        self._looks_up = False

    def do(self, step: Step, played: Played) -> Any:
        """Do one step on both brokers; give Apache Kafka's masked answer."""
        match step:
            case Sleep(milliseconds):
                time.sleep(milliseconds / 1000)
            case Close(connection):
                self._close(connection)
                self._released()
            case Restart():
                with ThreadPoolExecutor(2) as both:
                    list(both.map(Side.restart, self._sides))
                self._world.reopen()
                self._waiting.clear()
            case Answer(connection):
                return self._answer(connection, played)
            case Ask():
                return self._ask(step, played)
        return None

    def end(self) -> None:
        """Close the script's share sessions and connections, and delete its topics."""
        for group, member in self._world.sessions():
            last = {"group_id": group, "member_id": member, "share_session_epoch": -1, "topics": []}
            self._exchange(Ask("SHARE_ACKNOWLEDGE", 1, last, "end"), last)
        for connection in sorted(self._connections):
            self._close(connection)
        self._released()
        names = [f"~{name}" for name in self._names[0].topics()]
        if names:
            fields = {"topics": [{"name": name} for name in names], "timeout_ms": 10_000}
            self._exchange(Ask("DELETE_TOPICS", 6, fields, "end"), fields)
        self._close("end")

    def _close(self, connection: str) -> None:
        self._waiting.pop(connection, None)
        for side in self._sides:
            side.close(connection)
        self._world.close(connection)

    def _released(self) -> None:
        topics = self._names[0].topics()
        settle_releases(self._sides, self._names[0].prefix + topics[0] if topics else None)

    def _ask(self, ask: Ask, played: Played) -> Any:
        literal = self._world.literal(ask.fields)
        if ask.on in self._waiting:
            self._close(ask.on)
        self._send(ask, literal)
        if ask.later:
            for side in self._sides:
                side.rest()
            self._waiting[ask.on] = ask, literal
            return None
        return self._compare(ask, literal, self._receive(ask), played)

    def _answer(self, connection: str, played: Played) -> Any:
        if connection not in self._waiting:
            return None
        ask, literal = self._waiting[connection]
        if ask.api not in _OF_CLASSIC_GROUPS:
            del self._waiting[connection]
            return self._compare(ask, literal, self._receive_soon(ask), played)
        if not self._is_answered(connection):
            settle_groups(self._sides, self._names[0].to_broker(literal["group_id"]))
            if not self._is_answered(connection):
                return None
        del self._waiting[connection]
        return self._compare(ask, literal, self._receive(ask), played)

    def _receive_soon(self, ask: Ask) -> Sequence[Any]:
        """Both answers to a request that waits; none of a broker that still waits long after the other has
        answered.
        """
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until and not self._is_answered(ask.on):
            pass
        until = time.monotonic() + _SOON_SECONDS
        while time.monotonic() < until and not all(side.is_answered(ask.on) for side in self._sides):
            pass
        return [side.receive(ask) if side.is_answered(ask.on) else SILENT for side in self._sides]

    def _is_answered(self, connection: str) -> bool:
        return any(side.is_answered(connection) for side in self._sides)

    def _compare(self, ask: Ask, literal: dict[str, Any], raw: Sequence[Any], played: Played) -> Any:
        for answer, names in zip(raw, self._names, strict=True):
            learn_topics(answer, names)
            learn_producers(ask, answer, names)
        apache, ours = self._masked(ask, raw)
        if bind(apache, ours, self._names):
            apache, ours = self._masked(ask, raw)
        found = differences(apache, ours)
        played.requests += 1
        played.apis[ask.api] += 1
        if not found and not same_order(apache, ours):
            played.known[ORDER] += 1
        exchange = Exchange(ask, literal, apache, ours, self._world.members(literal.get("group_id")))
        for difference in found:
            name = explain(exchange, difference, self._more)
            if name is None:
                played.differences.append(difference)
            else:
                played.known[name] += 1
        self._world.observe(ask, literal, apache)
        self._settle(ask, apache)
        return apache

    def _exchange(self, ask: Ask, literal: dict[str, Any]) -> Sequence[Any]:
        self._send(ask, literal)
        return self._receive(ask)

    def _send(self, ask: Ask, literal: dict[str, Any]) -> None:
        self._connections.add(ask.on)
        for side, names in zip(self._sides, self._names, strict=True):
            side.send(ask, to_broker(ask, literal, names))

    def _receive(self, ask: Ask) -> Sequence[Any]:
        return [side.receive(ask) for side in self._sides]

    def _masked(self, ask: Ask, raw: Sequence[Any]) -> tuple[Any, Any]:
        apache, ours = (
            answer
            if isinstance(answer, str)
            else plain(own_only(ask, answer, names.prefix), names, side.port)
            for side, names, answer in zip(self._sides, self._names, raw, strict=True)
        )
        return apache, ours

    def _settle(self, ask: Ask, answer: Any) -> None:
        """Wait until Apache Kafka knows of a change that it answered before all its parts did."""
        if ask.api in _RECORDS_COME and self._sides[1].reads_behind:
            time.sleep(_READ_SECONDS)
        if ask.api in _TOPICS_CHANGE:
            known_before = [self._names[0].prefix + name for name in self._names[0].topics()]
            names = list(dict.fromkeys([*known_before, *map(self._names[0].to_broker, _made(ask, answer))]))
            settle_topics(*self._sides, names)
            for side, known in zip(self._sides, self._names, strict=True):
                wanted = [{"topic_id": None, "name": name} for name in names]
                learn_topics(side.ask(Ask("METADATA", 13, {"topics": wanted}, "settle")), known)
        if ask.api == "SHARE_GROUP_HEARTBEAT" and isinstance(answer, dict) and answer["error_code"] == 0:
            subscribed = ask.fields["subscribed_topic_names"] if answer["member_epoch"] > 0 else None
            group, *topics = map(self._names[0].to_broker, [ask.fields["group_id"], *(subscribed or ())])
            settle_states(self._sides, group, topics)
        if ask.api == "CONSUMER_GROUP_HEARTBEAT":
            self._looks_up = self._looks_up or bool(ask.fields["subscribed_topic_regex"])
            if self._looks_up:
                self._sides[0].rest()  # it matches expressions in the background
        if ask.fields.get("share_session_epoch") == _LAST_EPOCH:
            self._released()
        if ask.api in _TRANSACTIONS_END and ask.fields["transactional_id"]:
            settle_transaction(self._sides, self._names[0].to_broker(ask.fields["transactional_id"]))
        if ask.api in _CONFIGS_CHANGE and not ask.fields["validate_only"]:
            settle_configs(self._sides[0])


def _made(ask: Ask, answer: Any) -> list[str]:
    """Return the topics that an answer of CreateTopics says are made; older versions tell no ids of them."""
    if ask.api != "CREATE_TOPICS" or ask.fields.get("validate_only") or not isinstance(answer, dict):
        return []
    return [topic["name"] for topic in answer["topics"] if topic["error_code"] == 0]
