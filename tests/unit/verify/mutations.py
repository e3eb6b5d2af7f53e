"""Breaches planted in a clean history: each function changes lines and names the expected finding."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

from tests.unit.verify.model import LIMIT, LOCK_MS, Op

Mutation = Callable[[list[Op], random.Random], bool]
"""Changes the lines in place; returns False if the history has no suitable place."""
MUTATIONS: dict[str, tuple[Mutation, str]] = {}


def plants(kind: str) -> Callable[[Mutation], Mutation]:
    """Register a mutation under its name, with the kind of breach that it plants."""

    def register(mutation: Mutation) -> Mutation:
        MUTATIONS[mutation.__name__] = (mutation, kind)
        return mutation

    return register


def find(lines: list[Op], op: str, **fields: object) -> list[Op]:
    return [line for line in lines if line["op"] == op and all(line.get(k) == v for k, v in fields.items())]


def last(lines: list[Op]) -> float:
    end: float = lines[-1]["end"]
    return end


def sights(lines: list[Op], ident: int, *ops: str) -> list[tuple[Op, list[int]]]:
    """Return where records were seen: lines with the entries of their records."""
    return [
        (line, entry)
        for line in lines
        if line["op"] in (ops or ("read", "take"))
        for entry in line["records"]
        if entry[1] == ident
    ]


def confirmed(lines: list[Op], rng: random.Random, *, txn: bool | None = None) -> Op | None:
    """Return a record whose write was confirmed and that was read."""
    sends = [
        line
        for line in find(lines, "send", outcome="ok")
        if txn is None or (line.get("txn") is not None) == txn
        if sights(lines, line["id"], "read")
    ]
    return rng.choice(sends) if sends else None


@plants("lost")
def a_confirmed_record_is_gone(lines: list[Op], rng: random.Random) -> bool:
    send = confirmed(lines, rng)
    if send is None:
        return False
    for line, entry in sights(lines, send["id"]):
        line["records"].remove(entry)
    return True


@plants("lost")
def a_confirmed_record_is_behind_the_end(lines: list[Op], rng: random.Random) -> bool:
    send = confirmed(lines, rng)
    if send is None:
        return False
    for line in find(lines, "ends", partition=send["partition"]):
        line["offset"] = send["offset"]
    return True


@plants("lost")
def committed_readers_miss_a_record(lines: list[Op], rng: random.Random) -> bool:
    send = confirmed(lines, rng, txn=False)
    if send is None:
        return False
    for line, entry in sights(lines, send["id"]):
        if line["op"] == "take" or line["isolation"] == "read_committed":
            line["records"].remove(entry)
    return True


@plants("failed")
def a_failed_write_is_read(lines: list[Op], rng: random.Random) -> bool:
    send = confirmed(lines, rng)
    if send is None:
        return False
    send["outcome"] = "failed"
    return True


@plants("foreign")
def a_record_that_nobody_sent(lines: list[Op], rng: random.Random) -> bool:
    send = confirmed(lines, rng)
    if send is None:
        return False
    lines.remove(send)
    return True


@plants("foreign")
def a_record_that_is_garbled(lines: list[Op], rng: random.Random) -> bool:
    send = confirmed(lines, rng)
    if send is None:
        return False
    sights(lines, send["id"])[0][1][1] = -1
    return True


@plants("duplicate")
def a_record_is_there_twice(lines: list[Op], rng: random.Random) -> bool:
    send = confirmed(lines, rng)
    if send is None:
        return False
    for line in find(lines, "ends", partition=send["partition"]):
        read = find(lines, "read", client="r", partition=send["partition"])[-1]
        read["records"].append([read["next"], send["id"]])
        read["next"] += 1
        line["offset"] += 1
    return True


@plants("order")
def two_records_change_places(lines: list[Op], rng: random.Random) -> bool:
    sends = find(lines, "send", outcome="ok", client="p0", partition=0)
    if len(sends) < 2:
        return False
    one, two = rng.sample(sends, 2)
    a, b = sights(lines, one["id"]), sights(lines, two["id"])
    if not a or not b:
        return False
    for _, entry in a:
        entry[1] = two["id"]
    for _, entry in b:
        entry[1] = one["id"]
    one["offset"], two["offset"] = two["offset"], one["offset"]
    return True


@plants("changed")
def an_offset_changes_its_record(lines: list[Op], rng: random.Random) -> bool:
    one, two = confirmed(lines, rng), confirmed(lines, rng)
    if one is None or two is None or one["id"] == two["id"] or len(sights(lines, one["id"])) < 2:
        return False
    rng.choice(sights(lines, one["id"]))[1][1] = two["id"]
    return True


def seen_committed(lines: list[Op], rng: random.Random) -> Op | None:
    """Return a confirmed commit of a transaction seen by a reader of committed records."""
    ends = [
        line
        for line in find(lines, "end_txn", outcome="ok", commit=True)
        if any(
            read["isolation"] == "read_committed"
            for send in find(lines, "send", txn=line["txn"])
            for read, _ in sights(lines, send["id"], "read")
        )
    ]
    return rng.choice(ends) if ends else None


@plants("aborted")
def an_aborted_record_is_read(lines: list[Op], rng: random.Random) -> bool:
    end = seen_committed(lines, rng)
    if end is None:
        return False
    end["commit"] = False
    return True


@plants("aborted")
def a_record_of_a_failed_commit_is_read(lines: list[Op], rng: random.Random) -> bool:
    end = seen_committed(lines, rng)
    if end is None:
        return False
    end["outcome"] = "failed"
    return True


@plants("aborted")
def a_record_of_an_open_transaction_is_read(lines: list[Op], rng: random.Random) -> bool:
    end = seen_committed(lines, rng)
    if end is None:
        return False
    lines.remove(end)
    return True


@plants("aborted")
def a_record_is_read_before_its_commit(lines: list[Op], rng: random.Random) -> bool:
    end = seen_committed(lines, rng)
    if end is None:
        return False
    lines.remove(end)
    end["start"], end["end"] = last(lines) + 1, last(lines) + 2
    lines.append(end)
    return True


@plants("torn")
def a_transaction_is_torn(lines: list[Op], rng: random.Random) -> bool:
    ends = [
        line
        for line in find(lines, "end_txn", commit=True)
        if len([1 for send in find(lines, "send", txn=line["txn"]) if seen_by_c(lines, send["id"])]) > 1
    ]
    if not ends:
        return False
    sends = find(lines, "send", txn=rng.choice(ends)["txn"])
    for line, entry in sights(lines, rng.choice(sends)["id"]):
        if line["op"] == "take" or line["isolation"] == "read_committed":
            line["records"].remove(entry)
    return True


def seen_by_c(lines: list[Op], ident: int) -> bool:
    return any(line["isolation"] == "read_committed" for line, _ in sights(lines, ident, "read"))


@plants("circle")
def transactions_read_in_a_circle(lines: list[Op], rng: random.Random) -> bool:
    sends = [send for send in find(lines, "send") if send.get("txn") and seen_by_c(lines, send["id"])]
    pairs = [(one, two) for one in sends for two in sends if one["txn"] != two["txn"]]
    if not pairs:
        return False
    one, two = rng.choice(pairs)
    for number, (reader, read) in enumerate(((one, two), (two, one))):
        place = {"topic": "t", "partition": read["partition"], "isolation": "read_committed"}
        span = {"from": read["offset"], "next": read["offset"] + 1, "records": [[read["offset"], read["id"]]]}
        times = {"start": last(lines) + 1, "end": last(lines) + 2, "outcome": "ok"}
        lines.append({"op": "read", "client": f"z{number}", "txn": reader["txn"], **place, **span, **times})
    return True


@plants("position")
def a_reader_goes_back(lines: list[Op], rng: random.Random) -> bool:
    reads = [line for line in find(lines, "read") if line["from"] > 0]
    if not reads:
        return False
    rng.choice(reads)["from"] -= 1
    return True


@plants("position")
def the_end_of_a_log_goes_back(lines: list[Op], rng: random.Random) -> bool:
    end = copy.deepcopy(find(lines, "ends")[0])
    if not end["offset"]:
        return False
    lines.append(end | {"offset": end["offset"] - 1, "start": last(lines) + 1, "end": last(lines) + 2})
    return True


@plants("committed")
def a_committed_offset_goes_back(lines: list[Op], rng: random.Random) -> bool:
    commits = find(lines, "commit", outcome="ok")
    if not commits:
        return False
    fields = {"group": "plain", "topic": "t", "partition": 0, "offset": commits[-1]["offset"] - 1}
    times = {"start": last(lines) + 1, "end": last(lines) + 2, "outcome": "ok"}
    lines.append({"op": "committed", "client": "r", **fields, **times})
    return True


@plants("start")
def a_start_offset_goes_back(lines: list[Op], rng: random.Random) -> bool:
    looks = [line for line in find(lines, "offsets") if line["start_offset"] > 0]
    if not looks:
        return False
    look = copy.deepcopy(rng.choice(looks))
    look |= {"start_offset": look["start_offset"] - 1, "start": last(lines) + 1, "end": last(lines) + 2}
    look.pop("lag", None)
    lines.append(look)
    return True


def deliver(lines: list[Op], at: float, take: Op, entry: list[int], **changes: object) -> None:
    """Insert another delivery of a record."""
    times = {"start": at, "end": at + 1}
    made = copy.deepcopy(take) | {"records": [list(entry)], "client": "w9"} | times | changes
    lines.append(made)
    lines.sort(key=lambda op: op["end"])


def takes(lines: list[Op]) -> list[tuple[Op, list[int]]]:
    return [(line, entry) for line in find(lines, "take") for entry in line["records"]]


def ends_of(lines: list[Op], take: Op, entry: list[int]) -> list[Op]:
    """Return what the holder of a delivery did with it later."""
    return [
        line
        for line in lines
        if line["end"] > take["end"]
        and line.get("client") == take["client"]
        and (
            line["op"] in ("lost", "leave")
            or (
                line["op"] == "settle"
                and line["partition"] == take["partition"]
                and any(first <= entry[0] <= end for first, end in line["offsets"])
            )
        )
    ]


@plants("again")
def a_settled_record_comes_again(lines: list[Op], rng: random.Random) -> bool:
    found = [
        (line, entry)
        for line, entry in takes(lines)
        for settle in ends_of(lines, line, entry)
        if settle["op"] == "settle" and settle["outcome"] == "ok" and settle["kind"] in ("accept", "reject")
    ]
    if not found:
        return False
    line, entry = rng.choice(found)
    deliver(lines, last(lines) + 1, line, [entry[0], entry[1], min(LIMIT, entry[2] + 1)])
    return True


def undisturbed(lines: list[Op], client: str, since: float, until: float) -> bool:
    """Return whether nothing ended a client's session in that time, or within a minute after it."""
    lost = [line for op in ("lost", "leave") for line in find(lines, op, client=client)]
    faults = find(lines, "fault")
    return all(line["end"] < since or line["start"] > until + 60_000 for line in lost) and all(
        fault["end"] < since or fault["start"] > until for fault in faults
    )


@plants("overlap")
def two_members_hold_a_record(lines: list[Op], rng: random.Random) -> bool:
    found = []
    for line, entry in takes(lines):
        at = line["end"] + 2
        later = ends_of(lines, line, entry)
        begins = min((each["start"] for each in later), default=at + 100)
        inside = at + 3 < min(line["start"] + LOCK_MS, begins)
        if inside and undisturbed(lines, line["client"], line["start"], at + 1):
            found.append((line, entry, at))
    if not found:
        return False
    line, entry, at = rng.choice(found)
    deliver(lines, at, line, [entry[0], entry[1], min(LIMIT, entry[2] + 1)])
    return True


@plants("overlap")
def an_accept_is_confirmed_after_another_got_the_record(lines: list[Op], rng: random.Random) -> bool:
    found = [
        (line, entry, settle)
        for line, entry in takes(lines)
        for settle in ends_of(lines, line, entry)[:1]
        if settle["op"] == "settle" and settle["outcome"] == "ok" and settle["start"] > line["end"] + 4
    ]
    if not found:
        return False
    line, entry, settle = rng.choice(found)
    deliver(lines, settle["start"] - 2, line, [entry[0], entry[1], entry[2] + 1])
    return True


@plants("count")
def a_count_repeats_after_a_release(lines: list[Op], rng: random.Random) -> bool:
    found = [
        (before, after)
        for before, entry in takes(lines)
        for settle in ends_of(lines, before, entry)[:1]
        if settle["op"] == "settle" and settle["outcome"] == "ok" and settle["kind"] == "release"
        for line, after in takes(lines)
        if line["partition"] == before["partition"]
        and after[0] == entry[0]
        and line["start"] > settle["end"]
        and after[2] == entry[2] + 1
    ]
    if not found:
        return False
    rng.choice(found)[1][2] -= 1
    return True


@plants("count")
def a_count_repeats_after_a_lock_ran_out(lines: list[Op], rng: random.Random) -> bool:
    found = [
        after
        for before, entry in takes(lines)
        for line, after in takes(lines)
        if line["partition"] == before["partition"]
        and after[0] == entry[0]
        and line["start"] > before["end"] + 1
        and after[2] == entry[2] + 1
        and undisturbed(lines, before["client"], before["start"], line["end"])
    ]
    if not found:
        return False
    rng.choice(found)[2] -= 1
    return True


@plants("count")
def a_count_passes_the_limit(lines: list[Op], rng: random.Random) -> bool:
    found = takes(lines)
    if not found:
        return False
    rng.choice(found)[1][2] = LIMIT + 1
    return True


def unsettle(lines: list[Op], rng: random.Random) -> tuple[int, int] | None:
    """Remove the acknowledgement of a record delivered less often than the limit; return its position."""
    if find(lines, "fault") or find(lines, "lost") or find(lines, "leave"):
        return None
    found = [
        (line["partition"], entry[0])
        for line, entry in takes(lines)
        if max(e[2] for t, e in takes(lines) if t["partition"] == line["partition"] and e[0] == entry[0])
        < LIMIT
    ]
    if not found:
        return None
    partition, offset = rng.choice(found)
    for line in find(lines, "settle", partition=partition):
        line["offsets"] = [each for each in line["offsets"] if each[0] != offset]
    return partition, offset


@plants("given up")
def a_record_is_given_up_early(lines: list[Op], rng: random.Random) -> bool:
    return unsettle(lines, rng) is not None


@plants("stuck")
def a_record_is_stuck(lines: list[Op], rng: random.Random) -> bool:
    place = unsettle(lines, rng)
    if place is None:
        return False
    for line in find(lines, "offsets", partition=place[0]):
        line["start_offset"] = min(line["start_offset"], place[1])
        line.pop("lag", None)
    return True


@plants("stuck")
def records_are_stuck_that_may_have_been_given_up_unseen(lines: list[Op], rng: random.Random) -> bool:
    """Vanished members may have used up its deliveries; the cluster reports it in the lag."""
    if lines[0]["groups"]["g"]["isolation"] == "read_committed":
        return False
    place = unsettle(lines, rng)
    if place is None:
        return False
    partition, offset = place
    quiet = find(lines, "quiet", partition=partition)
    at = lines.index(quiet[-1])
    for _ in range(LIMIT + 1):
        lines.insert(at, {**quiet[-1], "op": "lost", "client": "w-gone", "outcome": "ok"})
    for line in find(lines, "offsets", partition=partition):
        line["start_offset"] = min(line["start_offset"], offset)
        line.pop("lag", None)
    find(lines, "offsets", partition=partition)[-1]["lag"] = 1
    return True


@plants("lag")
def a_lag_is_too_high(lines: list[Op], rng: random.Random) -> bool:
    look = rng.choice([line for line in find(lines, "offsets") if "lag" in line])
    look["lag"] += 1000
    return True


@plants("lag")
def a_lag_is_too_low(lines: list[Op], rng: random.Random) -> bool:
    if not a_record_is_stuck(lines, rng):
        return False
    for line in find(lines, "offsets")[-2:]:
        line["lag"] = 0
    return True
