"""A small correct cluster that writes histories: the possible clean runs, with faults."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

LOCK_MS, LIMIT, BOUND_MS = 500, 5, 2000
Op = dict[str, Any]


@dataclass
class Entry:
    """An entry of a log: a record, or a marker (ID -1)."""

    ident: int
    txn: Txn | None = None


@dataclass
class Txn:
    name: str
    client: str
    state: str = "open"
    sends: list[tuple[int, int]] = field(default_factory=list)
    """Partition and offset."""


@dataclass
class Held:
    """An in-flight record of the share group."""

    count: int = 0
    durable: int = 0
    owner: str = ""
    until: float = 0
    state: str = "available"


class Model:
    """One topic, producers, readers, and a share group with its members.

    Args:
        seed: determines everything.
        steps: the number of events.
        committed: whether the share group reads only committed records.
    """

    def __init__(self, seed: int, steps: int = 150, *, committed: bool = False, faults: bool = True) -> None:
        self.random = random.Random(seed)
        self.committed, self.faults = committed, faults
        self.lines: list[Op] = []
        self.now = 100.0
        self.free: dict[str, float] = {}
        self.logs: list[list[Entry]] = [[], []]
        self.held: list[dict[int, Held]] = [{}, {}]
        self.spso = [0, 0]
        self.next_id = 0
        self.positions: dict[tuple[str, int], int] = {}
        self.mine: dict[str, dict[tuple[int, int], int]] = {}
        self.open: list[Txn] = []
        self.committed_offset = -1
        acts = [self.send, self.send, self.transact, self.end_txn, self.read, self.take, self.take]
        acts += [self.settle, self.settle, self.pause, self.look, self.commit, self.leave]
        if faults:
            acts += [self.kill]
        for _ in range(steps):
            self.now += self.random.randrange(5, 40)
            self.random.choice(acts)()
        self.finish()
        self.lines.sort(key=lambda op: op["end"])
        group = {
            "delivery_limit": LIMIT,
            "isolation": "read_committed" if committed else "read_uncommitted",
            "from": "earliest",
        }
        self.lines.insert(
            0,
            {
                "op": "history",
                "format": 1,
                "start": 0,
                "end": 0,
                "groups": {"g": group},
                "bound_ms": BOUND_MS,
            },
        )

    # calls

    def idle(self, client: str) -> bool:
        return self.free.get(client, 0.0) < self.now

    def call(self, op: str, client: str, outcome: str = "ok", /, **fields: Any) -> None:
        """Record a call that takes effect now."""
        start = max(self.free.get(client, 0.0), self.now - self.random.randrange(30))
        end = self.now + self.random.randrange(30)
        self.free[client] = end
        self.lines.append(
            {"op": op, "client": client, "start": start, "end": end, "outcome": outcome, **fields}
        )

    def place(self, partition: int) -> Op:
        return {"topic": "t", "partition": partition}

    # producers

    def write(self, client: str, txn: Txn | None) -> None:
        partition = self.random.randrange(2)
        ident, self.next_id = self.next_id, self.next_id + 1
        outcome = self.random.choices(["ok", "unknown", "failed"], [8, 1, 1])[0]
        if txn is not None:
            outcome = "ok"
        fields = {"id": ident, **self.place(partition)} | ({"txn": txn.name} if txn else {})
        if outcome == "ok" or (outcome == "unknown" and self.random.random() < 0.5):
            self.logs[partition].append(Entry(ident, txn))
            if outcome == "ok":
                fields["offset"] = len(self.logs[partition]) - 1
            if txn is not None:
                txn.sends.append((partition, len(self.logs[partition]) - 1))
        self.call("send", client, outcome, **fields)

    def send(self) -> None:
        client = self.random.choice(["p0", "p1"])
        if self.idle(client):
            self.write(client, None)

    def transact(self) -> None:
        client = self.random.choice(["x0", "x1"])
        if not self.idle(client):
            return
        mine = [txn for txn in self.open if txn.client == client]
        if not mine:
            mine = [Txn(f"{client}-{self.next_id}", client)]
            self.open.append(mine[0])
        self.write(client, mine[0])

    def end_txn(self, *, never: bool = False) -> None:
        ready = [txn for txn in self.open if self.idle(txn.client)]
        if not ready:
            return
        txn = self.random.choice(ready)
        self.open.remove(txn)
        commit = self.random.random() < 0.6
        outcome = self.random.choice(["ok", "ok", "unknown"])
        done = commit and (outcome == "ok" or self.random.random() < 0.5) and not never
        txn.state = "committed" if done else "aborted"
        for partition in {partition for partition, _ in txn.sends}:
            self.logs[partition].append(Entry(-1))
        if not never:
            self.call("end_txn", txn.client, outcome, txn=txn.name, commit=commit)

    # readers

    def stable_end(self, partition: int) -> int:
        log = self.logs[partition]
        return next((at for at, each in enumerate(log) if each.txn and each.txn.state == "open"), len(log))

    def read(self) -> None:
        client, isolation = self.random.choice([("r", "read_uncommitted"), ("c", "read_committed")])
        if self.idle(client):
            self.read_on(client, isolation, self.random.randrange(2))

    def read_on(self, client: str, isolation: str, partition: int) -> None:
        first = self.positions.get((client, partition), 0)
        log = self.logs[partition]
        end = len(log) if isolation == "read_uncommitted" else self.stable_end(partition)
        records = [
            [at, log[at].ident]
            for at in range(first, end)
            if log[at].ident >= 0 and self.is_visible(log[at], isolation == "read_committed")
        ]
        self.positions[client, partition] = end
        fields = {"isolation": isolation, "from": first, "next": end, "records": records}
        self.call("read", client, **self.place(partition), **fields)

    def is_visible(self, entry: Entry, committed: bool) -> bool:
        return not committed or entry.txn is None or entry.txn.state == "committed"

    def commit(self) -> None:
        if self.idle("r"):
            if self.random.random() < 0.5:
                offset = self.committed_offset + self.random.randrange(1, 5)
                outcome = self.random.choice(["ok", "ok", "unknown"])
                if outcome == "ok" or self.random.random() < 0.5:
                    self.committed_offset = offset
                self.call("commit", "r", outcome, group="plain", offset=offset, **self.place(0))
            else:
                self.call("committed", "r", group="plain", offset=self.committed_offset, **self.place(0))

    # the share group

    def expire(self) -> None:
        for held in self.held:
            for each in held.values():
                if each.state == "acquired" and each.until <= self.now:
                    self.free_one(each)

    def free_one(self, each: Held) -> None:
        each.owner = ""
        each.state = "archived" if each.count >= LIMIT else "available"
        each.durable = max(each.durable, each.count)

    def drop_session(self, client: str) -> None:
        """Release a session's records, as not delivered."""
        for held in self.held:
            for each in held.values():
                if each.owner == client:
                    each.owner, each.state, each.count = "", "available", each.count - 1
        self.mine[client] = {}

    def advance(self, partition: int) -> None:
        log, held = self.logs[partition], self.held[partition]
        end = self.stable_end(partition) if self.committed else len(log)
        at = self.spso[partition]
        while at < end:
            gone = log[at].ident < 0 or not self.is_visible(log[at], self.committed)
            if not gone and held.get(at, Held()).state not in ("acknowledged", "archived"):
                break
            at += 1
        self.spso[partition] = at

    def take(self, client: str = "", most: int = 6) -> None:
        client = client or self.random.choice(["w0", "w1", "w2"])
        if self.idle(client):
            self.take_from(client, self.random.randrange(2), most)

    def take_from(self, client: str, partition: int, most: int) -> None:
        self.expire()
        log, held = self.logs[partition], self.held[partition]
        end = self.stable_end(partition) if self.committed else len(log)
        got: list[list[int]] = []
        for at in range(self.spso[partition], end):
            if log[at].ident < 0 or not self.is_visible(log[at], self.committed) or len(got) >= most:
                continue
            each = held.setdefault(at, Held())
            if each.state == "available":
                each.state, each.owner, each.until = "acquired", client, self.now + LOCK_MS
                each.count += 1
                got.append([at, log[at].ident, each.count])
        if self.faults and self.random.random() < 0.1:
            # the response is lost, and the session with it
            self.drop_session(client)
            self.call("lost", client, group="g")
            return
        fields = {"group": "g", "lock_ms": LOCK_MS, "records": got}
        self.call("take", client, **self.place(partition), **fields)
        self.mine.setdefault(client, {}).update({(partition, at): count for at, _, count in got})

    def settle(self, client: str = "", kind: str = "") -> None:
        client = client or self.random.choice(["w0", "w1", "w2"])
        mine = self.mine.get(client)
        if not mine or not self.idle(client):
            return
        self.expire()
        kind = kind or self.random.choice(["accept", "accept", "release", "reject", "renew"])
        partition = self.random.choice([partition for partition, _ in mine])
        offsets = [at for part, at in mine if part == partition]
        chosen = self.random.sample(offsets, self.random.randrange(1, len(offsets) + 1))
        for at in sorted(chosen):
            self.settle_one(client, partition, at, kind)
            self.now += 1 + self.random.randrange(2)
            if self.free[client] >= self.now:
                self.now = self.free[client] + 1

    def settle_one(self, client: str, partition: int, at: int, kind: str) -> None:
        self.expire()
        each = self.held[partition].setdefault(at, Held())
        valid = each.owner == client and each.state == "acquired"
        # brokers confirm any acknowledgement of records before the start offset
        outcome = "ok" if valid or at < self.spso[partition] else "failed"
        applied = valid
        if valid and self.random.random() < 0.1:
            outcome, applied = "unknown", self.random.random() < 0.5
        if applied and kind == "renew":
            each.until = self.now + LOCK_MS
        elif applied and kind == "release":
            self.free_one(each)
        elif applied:
            each.owner, each.state = "", "acknowledged" if kind == "accept" else "archived"
        if kind != "renew" or not valid:
            self.mine[client].pop((partition, at), None)
        self.advance(partition)
        fields: Op = {"group": "g", "kind": kind, "offsets": [[at, at]]}
        if kind == "renew":
            fields["lock_ms"] = LOCK_MS
        self.call("settle", client, outcome, **self.place(partition), **fields)

    def leave(self) -> None:
        client = self.random.choice(["w0", "w1", "w2"])
        if self.idle(client) and self.random.random() < 0.3:
            self.drop_session(client)
            self.call("leave", client, self.random.choice(["ok", "unknown"]), group="g")

    def pause(self) -> None:
        self.now += self.random.choice([10, LOCK_MS + 50])

    def kill(self) -> None:
        if self.random.random() < 0.2:
            for held in self.held:
                for each in held.values():
                    if each.state == "acquired":
                        each.owner, each.state, each.count = "", "available", each.durable
            self.lines.append({"op": "fault", "start": self.now - 20, "end": self.now + 60, "kind": "kill"})
            self.mine.clear()
            for client in ("w0", "w1", "w2"):
                self.now += 1
                if self.idle(client):
                    self.call("lost", client, group="g")

    def look(self) -> None:
        if self.idle("a"):
            partition = self.random.randrange(2)
            self.look_at(partition)

    def look_at(self, partition: int, *, lag: bool = False) -> None:
        self.expire()
        self.advance(partition)
        fields: Op = {"group": "g", "start_offset": self.spso[partition]}
        if lag:
            held = self.held[partition]
            done = sum(
                each.state in ("acknowledged", "archived")
                for at, each in held.items()
                if at >= self.spso[partition]
            )
            fields["lag"] = len(self.logs[partition]) - self.spso[partition] - done
        self.call("offsets", "a", **self.place(partition), **fields)

    # the end

    def finish(self) -> None:
        """Acknowledge all remaining records, and read everything."""
        while self.open:
            self.now += 60
            self.end_txn(never=self.random.random() < 0.2)
        for _ in range(12):
            self.now += LOCK_MS + 100
            for partition in range(2):
                self.now += 100
                self.take_from("w0", partition, 10_000)
                for at in [at for part, at in self.mine.get("w0", {}) if part == partition]:
                    self.now += 61
                    self.settle_one("w0", partition, at, "accept")
        for partition in range(2):
            for client, isolation in (("r", "read_uncommitted"), ("c", "read_committed")):
                self.now += 70
                self.read_on(client, isolation, partition)
            self.now += 70
            self.call("ends", "a", offset=len(self.logs[partition]), **self.place(partition))
        start = self.now + 100
        self.now = start + BOUND_MS * 2
        for partition in range(2):
            quiet = {"op": "quiet", "group": "g", "start": start, "end": self.now}
            self.lines.append(quiet | self.place(partition))
        for partition in range(2):
            self.now += 70
            self.look_at(partition, lag=True)
