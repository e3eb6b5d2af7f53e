"""Why records of a share group are not delivered, as its brokers report it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sharecore.admin.pausing import SETTINGS, Pause, time_text
from sharecore.client.configs import ResourceKind
from sharecore.client.wire.cluster import TopicPartition
from sharecore.client.wire.refusals import accept, on_settings
from sharecore.client.wire.transport import Transport
from sharecore.errors import KafkaError
from sharecore.plural import counted
from sharecore.protocol import ApiKey, calls

if TYPE_CHECKING:
    from sharecore.protocol.received import DescribeConfigsResult

_WAITING = "sharecore.waiting."
_HELD_BACK = "sharecore.held.back"
"""Settings of a group in which brokers of sharecore report it."""
_RULES = {"share.ordering": "none", "share.retry.backoff.ms": "0", "share.deliver.at.header": ""} | {
    "share.record.ttl.ms": "-1",
    "share.record.ttl.header": "",
}
"""Settings with which records wait, and the values with which they do not."""
_KEEP, _BREAKER = "share.record.lock.keep", "share.breaker.percent"
_OF_GROUP = (*SETTINGS, *_RULES, _KEEP, _BREAKER, _HELD_BACK)
_NAMES_A_REQUEST = 1_000
NOT_REPORTED = "the brokers do not report it, as they are not sharecore's, or older"
_NOT_ANSWERED = "broker {} does not answer for this group"
_NOT_UNDERSTOOD = "broker {} reports it in a form that this version of sharecore does not know"

Reason = Mapping[str, Any]


@dataclass(slots=True)
class Waiting:
    """Why records of a share group do not come.

    Args:
        pause: whether the group is paused.
        fetches: why fetches wait although there are records.
        partitions: why records of a share partition wait.
        has_rules: whether records may wait for an order, a back-off, delivery times or their expiry.
        keeps_locks: whether members that are connected keep records longer than a lock lasts.
        has_breaker: whether too many failures stop delivery to the group.
        is_answered: whether a broker has reported if the group is paused; Apache Kafka's do not.
        missing: why reasons may be missing, in one line; empty if every broker has reported its own.
    """

    pause: Pause = field(default_factory=Pause)
    fetches: list[Reason] = field(default_factory=list)
    partitions: dict[TopicPartition, list[Reason]] = field(default_factory=dict)
    has_rules: bool = False
    keeps_locks: bool = False
    has_breaker: bool = False
    is_answered: bool = False
    missing: str = ""

    @property
    def paused(self) -> str:
        """The pause in words; empty if the group is not paused now."""
        return self.pause.describe(round(time.time() * 1000))

    def of_group(self) -> list[str]:
        """Return in words the reasons of the whole group, its pause first."""
        return [*filter(None, [self.paused]), *map(describe_reason, self.fetches)]

    def of_partitions(self) -> list[str]:
        """Return in words the reasons of share partitions."""
        return [
            f"{partition}: {describe_reason(reason)}"
            for partition, reasons in sorted(self.partitions.items())
            for reason in reasons
        ]

    def gaps(self) -> list[str]:
        """Return a line for each cause of missing reasons."""
        return [f"why records wait is not known: {self.missing}"] if self.missing else []

    def take(self, entries: Mapping[str, str | None], places: Mapping[str, TopicPartition]) -> None:
        """Add the report of one broker; raise ValueError if it is malformed."""
        if (pause := Pause.of(entries)) != Pause():
            self.pause = pause
        self.is_answered |= not entries.keys().isdisjoint((*SETTINGS, _HELD_BACK))
        self.keeps_locks |= (entries.get(_KEEP) or "none") != "none"
        self.has_breaker |= (entries.get(_BREAKER) or "0") != "0"
        self.has_rules |= any((entries.get(name) or off) != off for name, off in _RULES.items())
        for name, value in entries.items():
            if name == _HELD_BACK:
                self.fetches += _reasons(value)
            elif name in places:
                self.partitions.setdefault(places[name], []).extend(_reasons(value))

    def keep_only(self, names: Container[str]) -> None:
        """Forget the reasons of share partitions other than these."""
        for partition, reasons in self.partitions.items():
            self.partitions[partition] = [each for each in reasons if each["reason"] in names]


async def waiting_of(transport: Transport, group_id: str, partitions: Iterable[TopicPartition]) -> Waiting:
    """Ask every broker, as only a share partition's leader knows; `missing` has the failures."""
    return (await waiting_of_groups(transport, {group_id: partitions}))[group_id]


async def waiting_of_groups(
    transport: Transport, wanted: Mapping[str, Iterable[TopicPartition]]
) -> dict[str, Waiting]:
    """Return as `waiting_of`, for several groups with some of their share partitions."""
    found = {group_id: Waiting() for group_id in wanted}
    missing: dict[str, dict[str, None]] = {group_id: {} for group_id in wanted}
    reporting: set[str] = set()
    places = {
        group_id: {f"{_WAITING}{each.topic}.{each.partition}": each for each in partitions}
        for group_id, partitions in wanted.items()
    }

    def take(node: int, group_id: str, result: DescribeConfigsResult) -> None:
        try:
            accept(result, on_settings(ApiKey.DESCRIBE_CONFIGS, group_id))
            entries = {entry.name: entry.value for entry in result.configs}
            if _HELD_BACK in entries:
                reporting.add(group_id)
            found[group_id].take(entries, places[group_id])
        except KafkaError as error:
            missing[group_id][str(error)] = None
        except ValueError:
            missing[group_id][_NOT_UNDERSTOOD.format(node)] = None

    async def ask(node: int) -> None:
        left = dict.fromkeys(places)
        for some in _portions(places):
            try:
                answer = await transport.node(node, calls.DESCRIBE_CONFIGS, _request(some))
            except (KafkaError, OSError) as error:
                # the next request would wait as long for a broker that hangs
                for group_id in left:
                    missing[group_id][str(error)] = None
                return
            results = {result.resource_name: result for result in answer.results}
            for group_id in some:
                del left[group_id]
                if group_id in results:
                    take(node, group_id, results[group_id])
                else:
                    missing[group_id][_NOT_ANSWERED.format(node)] = None

    try:
        await asyncio.gather(*map(ask, await transport.nodes()))
    except (KafkaError, OSError) as error:
        for each in missing.values():
            each[str(error)] = None
    for group_id, waiting in found.items():
        if group_id not in reporting and not missing[group_id]:
            missing[group_id][NOT_REPORTED] = None
        waiting.missing = "; ".join(missing[group_id])
    return found


_Places = Mapping[str, TopicPartition]
"""Share partitions, by the setting with their reasons."""


def _portions(places: Mapping[str, _Places]) -> Iterator[dict[str, _Places]]:
    """Divide groups among requests of bounded size."""
    portion: dict[str, _Places] = {}
    size = 0
    for group_id, names in places.items():
        if portion and size + len(names) > _NAMES_A_REQUEST:
            yield portion
            portion, size = {}, 0
        portion[group_id] = names
        size += len(names) + len(_OF_GROUP)
    if portion:
        yield portion


def _request(places: Mapping[str, _Places]) -> dict[str, object]:
    resources = [
        {
            "resource_type": ResourceKind.GROUP,
            "resource_name": group_id,
            "configuration_keys": [*_OF_GROUP, *names],
        }
        for group_id, names in places.items()
    ]
    return {"resources": resources, "include_synonyms": False, "include_documentation": False}


def _reasons(text: str | None) -> list[Reason]:
    """Parse the reasons of a broker, except unnamed ones; raise ValueError if they are not understood."""
    try:
        found = json.loads(text or "[]")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(found, list) or not all(isinstance(each, dict) and "reason" in each for each in found):
        raise ValueError(text)
    return [each for each in found if isinstance(each["reason"], str)]


def describe_reason(reason: Reason) -> str:
    """Return a reason in a few words; of another version's reasons only the name."""
    try:
        return _words(reason)
    except (KeyError, TypeError):
        return str(reason["reason"])


def _words(reason: Reason) -> str:
    records = counted(reason.get("records", 0), "record")
    due = f" until {time_text(reason['dueMs'])}" if reason.get("dueMs") is not None else ""
    match reason["reason"]:
        case "backoff":
            return f"{records} in back-off{', the first' if due else ''}{due}"
        case "delivery":
            whose = "its" if reason["records"] == 1 else "their"
            return f"{records} before {whose} delivery time{', the first' if due else ''}{due}"
        case "unread":
            return f"{records} not read yet since the partition was loaded"
        case "order" if "leased" in reason:
            return f"{records} behind {reason['leased']} in flight, in the order of the partition"
        case "order":
            most = f"; a key has {reason['most']}, from offset {reason['first']} on" if reason["most"] else ""
            return f"{records} behind others of their key{most}"
        case "idle":
            returned = reason.get("returned", 0)
            then = f"; a back-off begins then for {counted(returned, 'record')} delivered before"
            wait = "waits" if reason.get("records") == 1 else "wait"
            which = records if "records" in reason else "its records"
            return f"{which} {wait} for a member that fetches{then if returned else ''}"
        case "window":
            return f"no new records: {reason['setting']}={reason['limit']} is reached"
        case "kept":
            return f"{records} held longer than a lock lasts, by members that are connected"
        case "takeover":
            return f"no records{due}, as members may hold some since before a takeover: {reason['setting']}"
        case "breaker":
            open_ = f"open{due}" if due else "half open, 10 records at a time"
            return f"the breaker of {reason['setting']} is {open_}"
        case "rate" | "member":
            return f"{counted(reason['fetches'], 'fetch')} held back by {reason['setting']}"
    return str(reason["reason"])
