"""What distinguishes one kind of trace from another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace


def _weights(**weights: float) -> Mapping[str, float]:
    return weights


@dataclass(frozen=True, slots=True)
class Profile:
    """Weights of the operations, and what their arguments are drawn from.

    Attributes:
        ours_only: Apache Kafka takes no part, so that nothing needs to be left out for its sake.
    """

    weights: Mapping[str, float]
    ours_only: bool = False
    members: int = 3
    max_delivery_count: Sequence[int] = (5,)
    max_inflight: Sequence[int] = (2000,)
    lock_ms: Sequence[int] = (30000,)
    batch_records: Sequence[int] = (10,)
    fetch_batches: int = 4
    hole_chance: Sequence[float] = (0.0,)
    loaded_chance: float = 0.0
    no_renew_chance: float = 0.0
    wild_chance: float = 0.05
    failed_expiry_chance: float = 0.0
    max_fetch_chance: float = 0.3
    max_fetch_records: Sequence[int] = (1, 3, 10, 25, 500)
    batch_size_chance: float = 0.3
    batch_size: Sequence[int] = (1, 5, 10, 30)
    record_limit_chance: float = 0.0
    stranger_chance: float = 0.03
    forget_chance: float = 0.8
    sub_range_chance: float = 0.4
    single_chance: float = 0.4
    stray_chance: float = 0.05
    each_type_chance: float = 0.2
    dead_letters_chance: float = 0.0
    ack_types: Mapping[int, float] = field(default_factory=lambda: {0: 1, 1: 10, 2: 4, 3: 2})
    advance_ms: Sequence[int] = (0, 1, 10, 1000, 15000, 29999, 30000, 60000)


_MIXED = Profile(
    weights=_weights(
        acquire=30,
        ack=40,
        drain=3,
        release=3,
        advance=4,
        expire=3,
        lso=1,
        compact=3,
        fail=1,
        hold_writes=1,
        complete=4,
        answer_writes=2,
        reload=1,
    ),
    max_delivery_count=(2, 3, 4, 5, 10),
    max_inflight=(15, 50, 200, 2000),
    lock_ms=(15000, 30000),
    batch_records=(1, 4, 10, 40),
    hole_chance=(0.0, 0.2),
    loaded_chance=0.3,
    no_renew_chance=0.1,
    record_limit_chance=0.2,
    ack_types={0: 1, 1: 8, 2: 6, 3: 2, 4: 1},
)

PROFILES: Mapping[str, Profile] = {
    "steady": Profile(
        weights=_weights(acquire=10, drain=4, ack=2),
        batch_records=(5, 30),
        fetch_batches=6,
        max_inflight=(100, 500),
        ack_types={1: 1},
        max_fetch_chance=0.1,
        sub_range_chance=0.05,
    ),
    "outoforder": Profile(
        weights=_weights(acquire=10, ack=25, drain=1),
        members=8,
        batch_records=(10, 30),
        max_inflight=(60, 300),
        sub_range_chance=0.8,
        single_chance=0.2,
    ),
    "gaps": Profile(
        weights=_weights(acquire=12, ack=20, drain=2, release=2, compact=6),
        hole_chance=(0.3, 0.6),
        max_inflight=(60, 400),
        stray_chance=0.2,
        loaded_chance=0.4,
    ),
    "release": Profile(
        weights=_weights(acquire=12, ack=10, release=6, drain=1),
        max_delivery_count=(2, 3, 5, 10),
        max_inflight=(100, 400),
        ack_types={2: 1, 1: 0.2},
    ),
    "timeout": Profile(
        weights=_weights(acquire=12, ack=6, advance=4, expire=6, drain=1),
        max_delivery_count=(2, 3, 5),
        max_inflight=(100, 400),
        lock_ms=(1000, 15000, 30000),
    ),
    "offsets": Profile(
        weights=_weights(acquire=4, ack=30),
        max_inflight=(100, 400),
        sub_range_chance=1.0,
        single_chance=0.9,
        forget_chance=0.1,
    ),
    "writes": Profile(
        weights=_weights(
            acquire=12,
            ack=25,
            release=2,
            expire=3,
            fail=4,
            hold_writes=3,
            complete=10,
            answer_writes=2,
            reload=2,
        ),
        max_delivery_count=(2, 3, 5),
        max_inflight=(60, 400),
    ),
    "record_limit": Profile(
        weights=_weights(acquire=14, ack=16, release=2, expire=2, drain=2),
        max_delivery_count=(2, 3, 5),
        max_inflight=(40, 400),
        record_limit_chance=0.8,
        max_fetch_chance=0.9,
    ),
    "near_the_limit": Profile(
        weights=_weights(acquire=20, ack=8, release=10, expire=4),
        max_delivery_count=(2, 3, 4, 5, 6, 10),
        max_inflight=(30, 100, 400),
        batch_records=(1, 8, 33),
        loaded_chance=0.5,
        ack_types={2: 5, 1: 1, 3: 1},
        record_limit_chance=0.2,
    ),
    "log_start": Profile(
        weights=_weights(acquire=14, ack=20, release=2, expire=2, lso=6, drain=3, compact=1),
        hole_chance=(0.0, 0.2),
        max_inflight=(60, 400),
        loaded_chance=0.3,
    ),
    "renew": Profile(
        weights=_weights(acquire=12, ack=25, advance=10, expire=8, release=1),
        no_renew_chance=0.1,
        advance_ms=(0, 1, 5000, 10000, 14999, 15000, 29999),
        ack_types={4: 6, 1: 4, 2: 1},
    ),
    "full": Profile(
        weights=_weights(acquire=20, ack=12, release=3, expire=2, compact=3, drain=1),
        max_inflight=(5, 10, 20),
        hole_chance=(0.0, 0.3),
        record_limit_chance=0.2,
        wild_chance=0.15,
    ),
    "dead_letters": replace(
        _MIXED,
        weights={**_MIXED.weights, "letters": 8, "expire": 5, "release": 5, "lso": 2},
        dead_letters_chance=1.0,
        ack_types={0: 1, 1: 4, 2: 6, 3: 6, 4: 1},
    ),
    "loaded": replace(_MIXED, loaded_chance=1.0, hole_chance=(0.0, 0.4)),
    "mixed": _MIXED,
    "anything": replace(
        _MIXED,
        ours_only=True,
        weights={
            **_MIXED.weights,
            "lso": 4,
            "archive": 2,
            "configure": 1,
            "hold_writes": 3,
            "fail": 2,
            "letters": 4,
        },
        dead_letters_chance=0.3,
        max_inflight=(5, 15, 50, 200),
        loaded_chance=0.5,
        wild_chance=0.2,
        stray_chance=0.2,
    ),
}
