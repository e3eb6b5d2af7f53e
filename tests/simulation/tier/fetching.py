"""Fetch of the simulated brokers: sessions, waiting, what is readable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from tests.simulation.tier.cluster import Broker, Cluster
from tests.simulation.tier.log import Log

from sharecore.errors import ErrorCode

Reply = Callable[[Mapping[str, Any]], None]
_BY_ID = 13


@dataclass
class _Session:
    """What a session has, by topic (name or id) and partition, and what was told of it last."""

    epoch: int = 0
    asked: dict[tuple[Any, int], Any] = field(default_factory=dict)
    told: dict[tuple[Any, int], tuple[int, int, int]] = field(default_factory=dict)


def fetch(cluster: Cluster, broker: Broker, version: int, body: Any, reply: Reply) -> None:
    """Answers once there is something to tell, or the time is over."""
    session, session_id = _session(cluster, broker, version, body)
    if session is None:
        reply({"error_code": ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "session_id": 0, "responses": []})
        return
    until = cluster.loop.now + body.max_wait_ms / 1000
    full = body.session_epoch <= 0
    over = False

    def look() -> bool:
        nonlocal over
        if over:
            return True
        if not broker.up:
            over = True
            return True
        found, tells = _found(cluster, broker, version, session, body, full=full)
        if not tells and cluster.loop.now < until:
            return False
        over = True
        reply({"error_code": 0, "session_id": session_id, "responses": found})
        return True

    if not look():
        cluster.waiting.append(look)
        cluster.later(until - cluster.loop.now, look)


def _session(cluster: Cluster, broker: Broker, version: int, body: Any) -> tuple[_Session | None, int]:
    asked = {
        (_name(version, topic), part.partition): part for topic in body.topics for part in topic.partitions
    }
    sessions = cast(dict[int, _Session], broker.sessions)
    if body.session_epoch <= 0:
        session, session_id = _Session(0, asked), 0
        if body.session_epoch == 0:
            session_id = cluster.chance.getrandbits(30) + 1
            sessions.pop(body.session_id, None)
            sessions[session_id] = session
        return session, session_id
    found = sessions.get(body.session_id)
    if found is None or body.session_epoch != found.epoch + 1:
        return None, 0
    found.epoch += 1
    found.asked |= asked
    for topic in body.forgotten_topics_data:
        for index in topic.partitions:
            found.asked.pop((_name(version, topic), index), None)
            found.told.pop((_name(version, topic), index), None)
    return found, body.session_id


def _name(version: int, topic: Any) -> Any:
    return topic.topic_id if version >= _BY_ID else topic.topic


def _found(
    cluster: Cluster, broker: Broker, version: int, session: _Session, body: Any, *, full: bool
) -> tuple[list[dict[str, Any]], bool]:
    """What there is to answer, and whether that is worth answering at once."""
    names = {topic.topic_id: topic.name for topic in cluster.topics.values()}
    topics: dict[Any, list[dict[str, Any]]] = {}
    tells = False
    for (topic, index), asked in session.asked.items():
        name = topic if isinstance(topic, str) else names.get(topic)
        if name is None:
            part: dict[str, Any] = {"error_code": ErrorCode.UNKNOWN_TOPIC_ID, "records": b""}
        else:
            part = _part(broker, cluster.log((name, index)), asked, committed=body.isolation_level)
        marks = tuple(
            part.get(each, -1) for each in ("high_watermark", "last_stable_offset", "log_start_offset")
        )
        news = bool(part["error_code"] or part["records"])
        tells |= news
        if full or news or session.told.get((topic, index)) != marks:
            session.told[topic, index] = cast(tuple[int, int, int], marks)
            topics.setdefault(topic, []).append({"partition_index": index, **part})
    found = [{"topic": topic, "topic_id": topic, "partitions": parts} for topic, parts in topics.items()]
    return found, tells


def _part(broker: Broker, log: Log | None, asked: Any, *, committed: bool) -> dict[str, Any]:
    part: dict[str, Any] = {"records": b"", "preferred_read_replica": -1, "aborted_transactions": None}
    if log is None:
        return part | {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    epoch, high, stable = log.epoch, log.shown, log.stable
    if log.leader != broker.node:
        believes = broker.leaders.get((log.topic, log.index), (-1, -1))
        if believes[0] != broker.node or broker.node not in log.deposed:
            return part | {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}
        # it does not know yet that it is no longer the leader
        epoch, high = believes[1], min(log.deposed[broker.node], log.high)
        stable = min(stable, high)
    if asked.current_leader_epoch not in (-1, epoch):
        old = asked.current_leader_epoch < epoch
        code = ErrorCode.FENCED_LEADER_EPOCH if old else ErrorCode.UNKNOWN_LEADER_EPOCH
        return part | {"error_code": code}
    offset = asked.fetch_offset
    if not log.start <= offset <= log.end:
        return part | {"error_code": ErrorCode.OFFSET_OUT_OF_RANGE}
    limit = stable if committed else high
    records = log.read(offset, limit, asked.partition_max_bytes)
    found = part | _marks(log, high, stable) | {"error_code": 0, "records": records}
    if committed:
        found["aborted_transactions"] = [
            {"producer_id": each.producer_id, "first_offset": each.first}
            for each in log.aborted
            if each.marker >= offset and each.first < limit
        ]
    return found


def _marks(log: Log, high: int, stable: int) -> dict[str, int]:
    return {"high_watermark": high, "last_stable_offset": stable, "log_start_offset": log.start}
