"""What the tables of `sharecore top` show: rows out of two looks at a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sharecore.admin.overview import GroupOverview

Cell = str | int | float | None
"""A value to sort by; None is not known, and sorts as the least."""

GROUP_COLUMNS = (
    "GROUP",
    "STATE",
    "MEMBERS",
    "PARTITIONS",
    "LAG",
    "SETTLED/S",
    "NEW/S",
    "CAME BACK",
    "IN FLIGHT",
)
PARTITION_COLUMNS = ("PARTITION", "START OFFSET", "LAG", "SETTLED/S", "NEW/S", "IN FLIGHT", "OLDEST LEASE")


@dataclass(frozen=True, slots=True)
class Look:
    """A cluster at one moment.

    Args:
        at_s: when, on any clock.
        came_back: records that were given back and wait, by group; None where share state is not readable.
        in_flight, oldest_s: by group, topic and partition, of a broker that tells it in its metrics.
    """

    at_s: float
    groups: Mapping[str, GroupOverview]
    came_back: Mapping[str, int] | None = None
    in_flight: Mapping[tuple[str, str, int], int] = field(default_factory=dict)
    oldest_s: Mapping[tuple[str, str, int], float] = field(default_factory=dict)


def group_rows(now: Look, before: Look | None) -> list[tuple[Cell, ...]]:
    """A row a group, in the order of the columns."""
    rows: list[tuple[Cell, ...]] = []
    for name, group in now.groups.items():
        settled, new = _group_rates(name, now, before)
        partitions = [each for positions in group.positions.values() for each in positions.values()]
        in_flight = [count for (of, _, _), count in now.in_flight.items() if of == name]
        rows.append(
            (
                name,
                group.state if group.error is None else group.error.code.name,
                len(group.members),
                len(partitions),
                sum(max(0, each.lag) for each in partitions),
                settled,
                new,
                None if now.came_back is None else now.came_back.get(name, 0),
                sum(in_flight) if in_flight else None,
            )
        )
    return rows


def partition_rows(group_id: str, now: Look, before: Look | None) -> list[tuple[Cell, ...]]:
    """A row a share partition of a group."""
    group = now.groups.get(group_id)
    rows: list[tuple[Cell, ...]] = []
    for topic, positions in (group.positions if group else {}).items():
        for partition, position in positions.items():
            key = (group_id, topic, partition)
            settled, new = _rates([(topic, partition)], group_id, now, before)
            rows.append(
                (
                    f"{topic}-{partition}",
                    position.start_offset,
                    max(0, position.lag) if position.lag >= 0 else None,
                    settled,
                    new,
                    now.in_flight.get(key),
                    now.oldest_s.get(key),
                )
            )
    return rows


def arranged(
    rows: Iterable[tuple[Cell, ...]], column: int, *, descending: bool, wanted: str = ""
) -> list[tuple[Cell, ...]]:
    """The rows whose name contains `wanted`, sorted by a column."""
    chosen = [row for row in rows if wanted.lower() in str(row[0]).lower()]
    chosen.sort(key=lambda row: str(row[0]))
    chosen.sort(key=lambda row: _key(row[column]), reverse=descending)
    return chosen


def shown(cell: Cell) -> str:
    """A cell as it is printed."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.1f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def _key(cell: Cell) -> tuple[int, float, str]:
    if cell is None:
        return (0, 0.0, "")
    return (1, 0.0, cell) if isinstance(cell, str) else (1, float(cell), "")


def _group_rates(name: str, now: Look, before: Look | None) -> tuple[float | None, float | None]:
    keys = [(topic, each) for topic, positions in now.groups[name].positions.items() for each in positions]
    return _rates(keys, name, now, before)


def _rates(
    keys: Iterable[tuple[str, int]], group_id: str, now: Look, before: Look | None
) -> tuple[float | None, float | None]:
    """Records settled and records new, a second; None until there are two looks."""
    if before is None or group_id not in before.groups or now.at_s <= before.at_s:
        return None, None
    settled = new = 0
    for topic, partition in keys:
        then = before.groups[group_id].positions.get(topic, {}).get(partition)
        position = now.groups[group_id].positions[topic][partition]
        if then is None or then.lag < 0 or position.lag < 0:
            continue
        # what is not settled any more, whether the start offset has passed it or not
        new_here = (position.start_offset + position.lag) - (then.start_offset + then.lag)
        moved = position.start_offset - then.start_offset
        new += max(0, new_here)
        settled += max(0, moved)
    seconds = now.at_s - before.at_s
    return settled / seconds, new / seconds
