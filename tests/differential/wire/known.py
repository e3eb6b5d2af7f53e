"""What is kept different on purpose (docs/decisions/differences-from-apache.md, "On the wire")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.differential.wire.compare import MISSING, Difference
from tests.differential.wire.families.share import acknowledges
from tests.differential.wire.script import Ask
from tests.harness.kafka_versions import HIGHEST

from sharecore.protocol import ApiKey

ORDER = "order of a list"
_SERVER_ERROR = -1
_UNKNOWN_TOPIC_OR_PARTITION = 3
_STATELESS = (_SERVER_ERROR, _UNKNOWN_TOPIC_OR_PARTITION)
_OUT_OF_ORDER = 45
_CORRUPT_MESSAGE = 2
_INVALID_RECORD = 87
_UNKNOWN_TOPIC_ID = 100
_INVALID_RECORD_STATE = 121
_DEFAULTS_FROM_ELSEWHERE = ("segment.ms", "min.insync.replicas")
_NEWER_SETTINGS = {
    "errors.deadletterqueue.group.enable",
    "max.decompressed.message.bytes",
    "remote.copy.lag.bytes",
    "remote.copy.lag.ms",
}
_OF_QUORUMS = (
    ".leader_epoch",
    ".high_watermark",
    ".log_end_offset",
    ".replica_directory_id",
    ".last_fetch_timestamp",
    ".last_caught_up_timestamp",
)
_NEWEST = -3
"""ListOffsets asks for the record with the latest time."""
_BATCH_HEAD = 12
"""Bytes of a record batch up to and with its length."""


class Exchange(NamedTuple):
    """A request, its references filled in, and both masked answers."""

    ask: Ask
    request: dict[str, Any]
    apache: Any
    ours: Any
    members: int
    """How many members the request's group has had."""


def _wording(exchange: Exchange, difference: Difference) -> bool:
    """Both say why they refuse, each in words of its own."""
    both = difference.apache, difference.ours
    return difference.path.endswith("error_message") and all(isinstance(text, str) and text for text in both)


def _reason(exchange: Exchange, difference: Difference) -> bool:
    """Ours says why a batch is refused."""
    return (
        exchange.ask.api == "PRODUCE"
        and difference.path.endswith("error_message")
        and difference.apache is None
        and isinstance(difference.ours, str)
    )


def _long_transactions(exchange: Exchange, difference: Difference) -> bool:
    """Transactions that run for longer than a time: ours are those that run."""
    return (
        exchange.ask.api == "LIST_TRANSACTIONS"
        and exchange.request["duration_filter"] >= 0
        and difference.ours == MISSING
        and difference.apache["transaction_state"] != "Ongoing"
    )


def _repeated(exchange: Exchange, difference: Difference) -> bool:
    """The time of a batch that is sent again: after a restart that of its producer's last one or marker."""
    return (
        exchange.ask.api == "PRODUCE"
        and difference.path.endswith("log_append_time_ms")
        and -1 not in (difference.apache, difference.ours)
        and isinstance(difference.ours, int)
    )


def _forgotten(exchange: Exchange, difference: Difference) -> bool:
    """Return a batch that is sent again: after a restart Apache Kafka knows a producer's last one alone."""
    fields = {"error_code": (_OUT_OF_ORDER, 0), "base_offset": (-1,), "log_append_time_ms": (-1,)}
    name = difference.path.rpartition(".")[2]
    if exchange.ask.api != "PRODUCE" or name not in fields:
        return False
    apache, ours = (
        [part for topic in answer["responses"] for part in topic["partition_responses"]]
        for answer in (exchange.apache, exchange.ours)
    )
    return any(
        theirs["error_code"] == _OUT_OF_ORDER
        and own["log_append_time_ms"] != -1
        and fields[name] == (theirs[name], own[name])[: len(fields[name])]
        and (difference.apache, difference.ours) == (theirs[name], own[name])
        for theirs, own in zip(apache, ours, strict=True)
    )


def _aborted_behind(exchange: Exchange, difference: Difference) -> bool:
    """Aborted transactions that begin behind the records of a Fetch."""
    if exchange.ask.api != "FETCH" or not difference.path.endswith(".aborted_transactions[]"):
        return False
    return difference.ours == MISSING and any(
        difference.apache in (partition["aborted_transactions"] or ())
        and difference.apache["first_offset"] > _last_offset(bytes.fromhex(partition["records"]["hex"]))
        for topic in exchange.apache["responses"]
        for partition in topic["partitions"]
    )


def _last_offset(records: bytes) -> int:
    """Return the last offset of whole record batches; -1 where there are none."""
    batches = _batches(records)
    if not batches:
        return -1
    return int.from_bytes(batches[-1][:8], "big") + int.from_bytes(batches[-1][23:27], "big")


def _own_apis(exchange: Exchange, difference: Difference) -> bool:
    """APIs and features of parts that are not here, versions for brokers alone, the count of updates."""
    if exchange.ask.api != "API_VERSIONS":
        return False
    if difference.path == "api_keys[].max_version":
        key = ApiKey(int(difference.where.partition("[api_key=")[2].partition("]")[0]))
        return HIGHEST.get(key) == (difference.apache, difference.ours)
    return difference.path == "api_keys[]" or "_features" in difference.path


def _newer_settings(exchange: Exchange, difference: Difference) -> bool:
    """Settings of topics that came with Apache Kafka 4.4.0."""
    entry = difference.ours
    return (
        difference.path in ("results[].configs[]", "topics[].configs[]")
        and difference.apache == MISSING
        and entry["name"] in _NEWER_SETTINGS
    )


def _defaults_of_topics(exchange: Exchange, difference: Difference) -> bool:
    """Two settings of topics whose defaults come from elsewhere."""
    if exchange.ask.api not in ("DESCRIBE_CONFIGS", "CREATE_TOPICS"):
        return False
    return any(f"[name={name}]" in difference.where for name in _DEFAULTS_FROM_ELSEWHERE)


def _quorum(exchange: Exchange, difference: Difference) -> bool:
    """Where the log of the cluster's metadata ends, and who keeps it: there is none here."""
    return exchange.ask.api == "DESCRIBE_QUORUM" and (
        difference.path.endswith(_OF_QUORUMS) or difference.path.startswith("nodes[].listeners[]")
    )


def _documentation(exchange: Exchange, difference: Difference) -> bool:
    """What a setting is for, said by each in words of its own."""
    return difference.path.endswith(".documentation") and bool(difference.apache and difference.ours)


def _streams(exchange: Exchange, difference: Difference) -> bool:
    """Settings of streams groups among those of every group."""
    entry = difference.apache
    return (
        difference.path == "results[].configs[]"
        and difference.ours == MISSING
        and entry["name"].startswith("streams.")
    )


def _dead_letters(exchange: Exchange, difference: Difference) -> bool:
    """Settings of dead letters, which came with Apache Kafka 4.4.0."""
    entry = difference.ours
    return (
        difference.path == "results[].configs[]"
        and difference.apache == MISSING
        and entry["name"].startswith("errors.deadletterqueue.")
    )


def _offload(exchange: Exchange, difference: Difference) -> bool:
    """Kafka 4.4.0 has a setting of groups for where its assignor runs."""
    return (
        difference.path == "results[].configs[]"
        and difference.ours == MISSING
        and difference.apache["name"].endswith(".assignor.offload.enable")
    )


def _empty_group(exchange: Exchange, difference: Difference) -> bool:
    """The last member has left: Kafka 4.4.0 raises the assignment epoch with the group's."""
    return (
        difference.path == "groups[].assignment_epoch"
        and difference.apache > difference.ours
        and any(
            group["group_state"] == "Empty" and group["group_epoch"] == difference.apache
            for group in exchange.apache["groups"]
        )
    )


def _comes_back(exchange: Exchange, difference: Difference) -> bool:
    """A member that waits for its assignment is told to come back when it is due."""
    return difference.path == "heartbeat_interval_ms" and 0 < difference.ours < difference.apache


def _leader_epoch(exchange: Exchange, difference: Difference) -> bool:
    """A restart raises the leader epochs of Apache Kafka's partitions; ours have had one leader ever."""
    apis = ("METADATA", "LIST_OFFSETS", "DESCRIBE_PRODUCERS", "DESCRIBE_TOPIC_PARTITIONS")
    names = (".leader_epoch", ".coordinator_epoch")
    return exchange.ask.api in apis and difference.path.endswith(names) and difference.ours == 0


def _which_member(exchange: Exchange, difference: Difference) -> bool:
    """Which of equal members gets which partition follows from hash tables there; each that gets some has as
    many, give or take one: of a topic, or of all topics where the members want the same.
    """
    if exchange.ask.api not in ("SHARE_GROUP_HEARTBEAT", "SHARE_GROUP_DESCRIBE"):
        return False  # groups with several consumers use the range assignor
    if difference.path == "assignment":  # a member gets its assignment if it has changed
        return exchange.members > 1 and None in (difference.apache, difference.ours)
    if ".topic_partitions[" not in difference.path:
        return False
    apache, ours = _assigned(exchange.apache), _assigned(exchange.ours)
    return _as_many(apache, ours) or all(
        _as_many(*([each for each in side if each[0] == topic] for side in (apache, ours)))
        for topic, _ in apache + ours
    )


def _as_many(apache: list[tuple[str, int]], ours: list[tuple[str, int]]) -> bool:
    counts = [sum(count for _, count in side) for side in (apache, ours)]
    return abs(counts[0] - counts[1]) <= max(1, len(apache), len(ours))


def _assigned(answer: Any) -> list[tuple[str, int]]:
    """Of which topics an answer assigns how many partitions, member by member."""
    found: list[tuple[str, int]] = []
    if isinstance(answer, dict):
        found = [
            (topic["topic_id"], len(topic["partitions"])) for topic in answer.get("topic_partitions") or ()
        ]
    inner = answer.values() if isinstance(answer, dict) else answer if isinstance(answer, list) else ()
    return found + [each for value in inner for each in _assigned(value)]


def _grown(exchange: Exchange, difference: Difference) -> bool:
    """Partitions that a topic has grown by are read from their start, so that nothing in them is missed."""
    field = difference.path.rpartition(".")[2]
    return (
        exchange.ask.api in ("DESCRIBE_SHARE_GROUP_OFFSETS", "READ_SHARE_GROUP_STATE_SUMMARY")
        and field in ("start_offset", "lag", "delivery_complete_count")
        and difference.apache == -1
        and difference.ours >= 0
    )


def _negative_lag(exchange: Exchange, difference: Difference) -> bool:
    """The start offset was set behind the end of the partition."""
    return difference.path.endswith(".lag") and difference.ours == 0 and difference.apache < 0


def _not_acquired(exchange: Exchange, difference: Difference) -> bool:
    """Records come with all that was read, batches of which nothing is acquired and part of a batch too."""
    if exchange.ask.api != "SHARE_FETCH" or not difference.path.endswith(".records.hex"):
        return False
    if MISSING in (difference.apache, difference.ours):
        return False
    wanted = iter(_batches(bytes.fromhex(difference.apache)))
    return all(batch in wanted for batch in _batches(bytes.fromhex(difference.ours)))


def _part_of_a_batch(exchange: Exchange, difference: Difference) -> bool:
    """A limit of bytes ends in the middle of a batch: its first part comes as well."""
    if exchange.ask.api != "FETCH" or not difference.path.endswith(".records.hex"):
        return False
    apache, ours = bytes.fromhex(difference.apache), bytes.fromhex(difference.ours)
    return apache.startswith(ours) and not _batches(apache[len(ours) :])


def _batches(records: bytes) -> list[bytes]:
    """Return the whole record batches."""
    found = []
    while len(records) > _BATCH_HEAD:
        size = _BATCH_HEAD + int.from_bytes(records[8:_BATCH_HEAD], "big")
        if size <= len(records):
            found.append(records[:size])
        records = records[size:]
    return found


def _no_state(exchange: Exchange, difference: Difference) -> bool:
    """A fetch for a group that has no state of the partition, or no id, is told so at once."""
    if exchange.ask.api != "SHARE_FETCH":
        return False
    if difference.apache == MISSING:
        told = set(codes(difference.ours))
        return exchange.request["max_wait_ms"] == 0 and told == {_UNKNOWN_TOPIC_OR_PARTITION}
    field = difference.path.removeprefix("responses[].partitions[].")
    return (field == "error_code" and (difference.apache, difference.ours) == _STATELESS) or (
        field == "error_message" and _server_error(exchange) and not difference.apache
    )


def _batch_size(exchange: Exchange, difference: Difference) -> bool:
    """With a batch size below 1 there are runs among what is acquired that end before they begin."""
    field = "responses[].partitions[].acquired_records[]"
    return difference.path.startswith(field) and exchange.request["batch_size"] < 1


def _server_error(exchange: Exchange) -> bool:
    """Apache Kafka stumbles over the request; ours says what is wrong with it."""
    ours = codes(exchange.ours)
    return _SERVER_ERROR in codes(exchange.apache) and any(ours) and _SERVER_ERROR not in ours


def _topic_not_there(exchange: Exchange, difference: Difference) -> bool:
    """A share session has a topic that is not there: Kafka 4.3.1 refuses all of its fetches, and 4.4.0 says
    of one that was deleted meanwhile what it says of a partition.
    """
    if exchange.ask.api != "SHARE_FETCH":
        return False
    both = difference.apache, difference.ours
    return both == (_UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN_TOPIC_ID) or (
        exchange.apache["error_code"] == _SERVER_ERROR and _UNKNOWN_TOPIC_ID in codes(exchange.ours)
    )


def _null_pointer(exchange: Exchange, difference: Difference) -> bool:
    """Return an acknowledgement of records below the start offset, with nothing in flight at it."""
    return (
        exchange.ask.api in ("SHARE_FETCH", "SHARE_ACKNOWLEDGE")
        and exchange.apache["error_code"] == _SERVER_ERROR
        and acknowledges(exchange.request)
        and _INVALID_RECORD_STATE in codes(exchange.ours) + _each(exchange.ours, "acknowledge_error_code")
    )


def _limits(exchange: Exchange, difference: Difference) -> bool:
    """Return a fetch in an acquire mode that there is not, or of fewer than no bytes."""
    if exchange.ask.api != "SHARE_FETCH" or not _server_error(exchange):
        return False
    request = exchange.request
    return difference.path.endswith("error_code") and (
        not 0 <= request["share_acquire_mode"] <= 1 or request["max_bytes"] < 0
    )


def _stumbles(api: str) -> Callable[[Exchange, Difference], bool]:
    """Apache Kafka stumbles over a request of this API, the whole of it."""
    return lambda exchange, difference: exchange.ask.api == api and _server_error(exchange)


def _deleted(exchange: Exchange, difference: Difference) -> bool:
    """The newest record by its time has been deleted."""
    if exchange.ask.api != "LIST_OFFSETS":
        return False
    newest = {
        (topic["name"], each["partition_index"])
        for topic in exchange.request["topics"]
        for each in topic["partitions"]
        if each["timestamp"] == _NEWEST
    }
    offsets = [_offsets(answer) for answer in (exchange.apache, exchange.ours)]
    return any(
        f"[name={name}].partitions[partition_index={index}]." in difference.where
        and offsets[0][name, index] >= 0
        and not 0 <= offsets[1][name, index] <= offsets[0][name, index]
        for name, index in newest
    )


def _offsets(answer: Any) -> dict[tuple[str, int], int]:
    """Return the offset of each partition of an answer to ListOffsets."""
    return {
        (topic["name"], each["partition_index"]): each["offset"]
        for topic in answer["topics"]
        for each in topic["partitions"]
    }


def _no_batch(exchange: Exchange, difference: Difference) -> bool:
    """Return a batch that Apache Kafka stumbles over."""
    ours = (_CORRUPT_MESSAGE, _INVALID_RECORD)
    return exchange.ask.api == "PRODUCE" and difference.apache == _SERVER_ERROR and difference.ours in ours


def _no_such_isolation(exchange: Exchange, difference: Difference) -> bool:
    """A level of isolation that there is not is no server's fault."""
    return (
        exchange.ask.api in ("FETCH", "LIST_OFFSETS")
        and bool(exchange.ask.spoilt)
        and _SERVER_ERROR in codes(exchange.apache)
        and _SERVER_ERROR not in codes(exchange.ours)
    )


def codes(answer: Any) -> list[int]:
    """Every error code of a masked answer, those of acknowledgements in a fetch not among them."""
    return _each(answer, "error_code")


def _each(answer: Any, field: str) -> list[Any]:
    if isinstance(answer, dict):
        own = [answer[field]] if field in answer else []
        return own + [found for value in answer.values() for found in _each(value, field)]
    return [found for value in answer for found in _each(value, field)] if isinstance(answer, list) else []


def _equal_neighbors(exchange: Exchange, difference: Difference) -> bool:
    """Apache Kafka may leave equal state batches that touch apart, where it took away one between."""
    return (
        exchange.ask.api == "READ_SHARE_GROUP_STATE"
        and ".state_batches" in difference.path
        and _joined(exchange.apache) == _joined(exchange.ours)
    )


def _joined(answer: dict[str, Any]) -> dict[tuple[Any, int], list[dict[str, Any]]]:
    """Return the state batches by partition, with equal neighbors joined."""
    found = {}
    for topic in answer["results"]:
        for part in topic["partitions"]:
            joined: list[dict[str, Any]] = []
            for batch in part["state_batches"]:
                last = joined[-1] if joined else None
                same = last and batch | {"first_offset": last["first_offset"]} == last | {
                    "last_offset": batch["last_offset"]
                }
                if last and same and batch["first_offset"] == last["last_offset"] + 1:
                    joined[-1] = last | {"last_offset": batch["last_offset"]}
                else:
                    joined.append(batch)
            found[topic["topic_id"], part["partition"]] = joined
    return found


Known = Mapping[str, Callable[[Exchange, Difference], bool]]
NOTHING_MORE: Known = MappingProxyType({})
_KNOWN: Known = {
    "wording of an error message": _wording,
    "reason of a refusal": _reason,
    "documentation of a setting": _documentation,
    "what is on offer": _own_apis,
    "newer settings of topics": _newer_settings,
    "defaults of two settings": _defaults_of_topics,
    "quorum of one": _quorum,
    "no streams groups": _streams,
    "dead letters are newer": _dead_letters,
    "where the assignor runs": _offload,
    "assignment epoch of an empty group": _empty_group,
    "member comes back sooner": _comes_back,
    "leader epoch": _leader_epoch,
    "negative lag": _negative_lag,
    "start of new partitions": _grown,
    "which of equal members": _which_member,
    "records not acquired": _not_acquired,
    "part of a batch": _part_of_a_batch,
    "no state": _no_state,
    "batch size below 1": _batch_size,
    "topic that is not there": _topic_not_there,
    "null pointer in acknowledge": _null_pointer,
    "limits that make no sense": _limits,
    "transactions that run for long": _long_transactions,
    "aborted behind the records": _aborted_behind,
    "time of a repeated batch": _repeated,
    "repeated after a restart": _forgotten,
    "no such operation": _stumbles("INCREMENTAL_ALTER_CONFIGS"),
    "neither name nor id": _stumbles("METADATA"),
    "negative index": _stumbles("DESCRIBE_SHARE_GROUP_OFFSETS"),
    "no name": _stumbles("DESCRIBE_TOPIC_PARTITIONS"),
    "no member": _stumbles("OFFSET_FETCH"),
    "newest record is deleted": _deleted,
    "equal neighbors": _equal_neighbors,
    "no batch at all": _no_batch,
    "no such isolation": _no_such_isolation,
}


def explain(exchange: Exchange, difference: Difference, more: Known = NOTHING_MORE) -> str | None:
    """Return the name of the difference, None where it has none.

    Args:
        more: differences of what is compared, beyond those of every broker.
    """
    if isinstance(exchange.apache, str) or isinstance(exchange.ours, str):
        return None  # one side does not answer
    named = [*more.items(), *_KNOWN.items()]
    return next((name for name, shows in named if shows(exchange, difference)), None)
