"""Random traces: what a share partition may be asked, weighted by profile."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import cast

from tests.differential.log import Log
from tests.differential.profiles import PROFILES, Profile
from tests.differential.step import Operation, Recorder, Step
from tests.differential.switches import ALL_FAIL, Switches

from sharecore.reference import Partition

_FAILURES = [-1, 3, 7, 14, 15, 16, 69, 74, 124]
_ACCEPT = 1
# without renewal, the oracle needs a group configuration, which has narrower limits
_GROUP_CONFIG = {"max_inflight": 200, "lock_ms": 15000}


class Generator:
    """One partition's trace; the reference runs along, so that what is asked mostly has a meaning.

    Args:
        seed: the same seed and profile give the same trace.
        profile: a name in PROFILES.
    """

    def __init__(self, seed: int, profile: str) -> None:
        self._random = Random(f"{profile} {seed}")
        self._profile: Profile = PROFILES[profile]
        self._recorder = Recorder()
        self._driver = self._recorder.driver
        self._switches = Switches()
        self._held: list[tuple[str, int, int]] = []
        self._members = [f"m{i}" for i in range(self._profile.members)]
        self._log = Log(self._random, 1, 0.0)

    def run(self, operations: int) -> Iterator[Step]:
        """At least `operations` operations, the first an init, each with the reference's answer."""
        yield self._apply(self._init())
        names, weights = zip(*self._profile.weights.items(), strict=True)
        done = 1
        while done < operations:
            name = self._random.choices(names, weights)[0]
            for operation in getattr(self, f"_{name}")():
                if self._profile.ours_only or self._switches.forbid(operation, self._driver) is None:
                    yield self._apply(operation)
                    done += 1

    def _apply(self, operation: Operation) -> Step:
        step = self._recorder.take(operation)
        result = step.result
        for first, last, _ in result.get("acquired", ()):
            self._held.append((operation["member"], first, last))
        self._held = self._held[-64:]
        if operation["op"] in ("init", "reload"):
            self._held.clear()
        self._switches.observe(operation, result)
        return step

    @property
    def partition(self) -> Partition:
        return cast(Partition, self._driver.partition)

    def _init(self) -> Operation:
        pick, profile = self._random.choice, self._profile
        start = pick([0, 0, 0, 7, 1000])
        self._log = Log(self._random, pick(profile.batch_records), pick(profile.hole_chance), start)
        operation: Operation = {
            "op": "init",
            "max_delivery_count": pick(profile.max_delivery_count),
            "max_inflight": pick(profile.max_inflight),
            "lock_ms": pick(profile.lock_ms),
        }
        if start:
            operation["start_offset"] = start
        if profile.dead_letters_chance and self._random.random() < profile.dead_letters_chance:
            operation["dead_letters"] = True
        if self._random.random() < profile.loaded_chance:
            states = [0, 0, 2, 3, 4] if profile.dead_letters_chance else [0, 0, 2, 4]
            operation["state_batches"] = self._state_batches(start, operation["max_delivery_count"], states)
        if self._random.random() < profile.no_renew_chance:
            operation.update(_GROUP_CONFIG, renew_enabled=False)
        return operation

    def _state_batches(self, start: int, limit: int, states: list[int]) -> list[dict[str, int]]:
        batches = []
        offset = start + self._random.choice([0, 0, 1, 5])
        for _ in range(self._random.randint(1, 8)):
            last = offset + self._random.choice([0, 0, 2, 9])
            state = self._random.choice(states)
            count = self._random.randint(0 if state == 4 else 1, limit)
            batches.append({"first": offset, "last": last, "state": state, "delivery_count": count})
            offset = last + 1 + self._random.choice([0, 0, 0, 1, 4, 12])
        return batches

    def _acquire(self) -> Iterator[Operation]:
        random, profile = self._random, self._profile
        partition = self.partition
        offset = partition.next_fetch_offset
        wild = random.random() < profile.wild_chance
        if wild:
            offset = max(0, random.randint(partition.start_offset - 3, partition.end_offset + 3))
        batches = self._log.read(offset, random.randint(1, profile.fetch_batches))
        operation: Operation = {
            "op": "acquire",
            "member": random.choice(self._members),
            "batches": [list(batch) for batch in batches],
        }
        if wild and random.random() < 0.5:
            operation["fetch_offset"] = offset
        if random.random() < profile.max_fetch_chance:
            operation["max_fetch_records"] = random.choice(profile.max_fetch_records)
        if random.random() < profile.batch_size_chance:
            operation["batch_size"] = random.choice(profile.batch_size)
        if random.random() < profile.record_limit_chance:
            operation["mode"] = "record_limit"
        yield operation

    def _ack(self) -> Iterator[Operation]:
        random = self._random
        if not self._held:
            return
        member = random.choice(self._held)[0]
        if random.random() < self._profile.stranger_chance:
            member = random.choice([*self._members, "stranger"])
        batches = [self._ack_batch(member) for _ in range(random.choice([1, 1, 1, 2, 3]))]
        if random.random() < 0.8:
            batches.sort(key=lambda b: b["first"])
        yield {"op": "ack", "member": member, "batches": batches}

    def _ack_batch(self, member: str) -> Operation:
        random, profile = self._random, self._profile
        start = self.partition.start_offset
        own = [h for h in self._held if h[0] == member] or self._held or [(member, start, start)]
        held = random.choice(own)
        if held in self._held and random.random() < profile.forget_chance:
            self._held.remove(held)
        _, first, last = held
        shape = random.random()
        if shape < profile.sub_range_chance:
            first = random.randint(first, last)
            last = first if random.random() < profile.single_chance else random.randint(first, last)
        elif shape < profile.sub_range_chance + profile.stray_chance:
            first = max(0, first + random.randint(-6, 6))
            last = max(first, last + random.randint(-6, 12))
        kinds, weights = zip(*profile.ack_types.items(), strict=True)
        if last - first < 64 and random.random() < profile.each_type_chance:
            types = random.choices(kinds, weights, k=last - first + 1)
        else:
            types = random.choices(kinds, weights)
        if random.random() < 0.002:
            types[0] = random.choice([5, 127])
        return {"first": first, "last": last, "types": types}

    def _drain(self) -> Iterator[Operation]:
        """Accept what one member was given, lease by lease."""
        member = self._random.choice(self._members)
        for held in [h for h in self._held if h[0] == member]:
            self._held.remove(held)
            yield {
                "op": "ack",
                "member": member,
                "batches": [{"first": held[1], "last": held[2], "types": [_ACCEPT]}],
            }

    def _release(self) -> Iterator[Operation]:
        yield {"op": "release", "member": self._random.choice(self._members)}

    def _advance(self) -> Iterator[Operation]:
        yield from self._pass_time(self._random.choice(self._profile.advance_ms))

    def _expire(self) -> Iterator[Operation]:
        """Pass just enough time for the next lock to run out, or just not enough."""
        deadline_ms = self.partition.next_deadline_ms
        if deadline_ms is not None:
            yield from self._pass_time(
                max(0, deadline_ms - self._driver.now_ms - self._random.choice([0, 0, 1]))
            )

    def _pass_time(self, ms: int) -> Iterator[Operation]:
        yield from self._with_writes_alike({"op": "advance", "ms": ms})

    def _with_writes_alike(self, operation: Operation) -> Iterator[Operation]:
        if not self._switches.hold:
            failing = self._random.random() < self._profile.failed_expiry_chance
            if failing:
                code = self._random.choice(_FAILURES)
                yield {"op": "writes", "fail_next": ALL_FAIL, "error_code": code}
            elif self._switches.fail_next:
                yield {"op": "writes"}
        yield operation
        if self._switches.fail_next == ALL_FAIL:
            yield {"op": "writes"}

    def _lso(self) -> Iterator[Operation]:
        partition, random = self.partition, self._random
        span = max(1, partition.end_offset - partition.start_offset + 1)
        step = random.choice([-1, 0, 1, 2, random.randint(0, span), span + random.randint(0, 9)])
        yield {"op": "lso", "offset": max(0, partition.start_offset + step)}

    def _archive(self) -> Iterator[Operation]:
        partition, random = self.partition, self._random
        first = random.randint(partition.start_offset, partition.end_offset + 3)
        yield {"op": "archive", "first": first, "last": first + random.randint(0, 12)}

    def _configure(self) -> Iterator[Operation]:
        pick, profile = self._random.choice, self._profile
        limits: Operation = {
            "max_delivery_count": pick(profile.max_delivery_count),
            "max_inflight": pick(profile.max_inflight),
            "lock_ms": pick(profile.lock_ms),
            "renew_enabled": pick([True, True, False]),
        }
        name = pick(list(limits))
        yield {"op": "configure", name: limits[name]}

    def _compact(self) -> Iterator[Operation]:
        self._log.compact()
        yield from ()

    def _fail(self) -> Iterator[Operation]:
        yield {
            "op": "writes",
            "fail_next": self._random.randint(1, 3),
            "error_code": self._random.choice(_FAILURES),
        }

    def _hold_writes(self) -> Iterator[Operation]:
        yield {"op": "writes", "hold": True}

    def _complete(self) -> Iterator[Operation]:
        operation: Operation = {"op": "complete"}
        if not self._switches.complete_all and self._random.random() < 0.5:
            operation["n"] = self._random.randint(1, 3)
        if self._random.random() < 0.4:
            operation["error_code"] = self._random.choice(_FAILURES)
        yield operation

    def _answer_writes(self) -> Iterator[Operation]:
        yield {"op": "writes"}

    def _letters(self) -> Iterator[Operation]:
        """Some of the dead letters that are due are written; as with locks, all writes of it end alike."""
        operation: Operation = {"op": "letters"}
        if self._random.random() < 0.6:
            operation["n"] = self._random.randint(1, 2)
        yield from self._with_writes_alike(operation)

    def _reload(self) -> Iterator[Operation]:
        yield {"op": "reload"}
