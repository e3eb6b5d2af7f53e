"""Offsets that must not go back: reader positions, committed offsets, start offsets of share groups."""

from __future__ import annotations

from sharecore.verify.check.world import World
from sharecore.verify.history import Op


class Offsets:
    """Positions, committed offsets and start offsets."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._positions: dict[tuple[str, str, int], tuple[int, int]] = {}
        self._confirmed: dict[tuple[str, str, int], list[tuple[int, int, float]]] = {}
        self._tried: dict[tuple[str, str, int], set[int]] = {}
        self._log_ends: dict[tuple[str, int], tuple[int, int, float]] = {}
        self.handlers = {
            "seek": self._seek,
            "read": self._read,
            "ends": self._ends,
            "commit": self._commit,
            "committed": self._committed,
            "offsets": self._offsets,
        }

    def _seek(self, line: int, op: Op) -> None:
        """Forget the position of a reader that seeks."""
        self._positions.pop((op["client"], op["topic"], op["partition"]), None)

    def _read(self, line: int, op: Op) -> None:
        """Check that a reader continues at its position, and that offsets increase."""
        if op["outcome"] != "ok":
            return
        key = (op["client"], op["topic"], op["partition"])
        first, end = op["from"], op["next"]
        known = self._positions.get(key)
        if known is not None and first != known[0]:
            word = "back" if first < known[0] else "forward"
            text = f"{key[0]} at {key[1]}-{key[2]} went {word} from offset {known[0]} to {first}"
            self._world.breaches.add("position", text, (known[1], line), op["end"])
        self._positions[key] = (end, line)
        last = first - 1
        for offset, _ in op["records"]:
            if offset <= last or offset >= end:
                text = (
                    f"{key[0]} read offset {offset} of {key[1]}-{key[2]} out of order, from {first} to {end}"
                )
                self._world.breaches.add("position", text, (line,), op["end"])
                return
            last = offset

    def _ends(self, line: int, op: Op) -> None:
        """Check that the end of a log does not go back."""
        if op["outcome"] != "ok":
            return
        key = (op["topic"], op["partition"])
        known = self._log_ends.get(key)
        if known is not None and op["offset"] < known[0] and known[2] < op["start"]:
            text = f"the end of {key[0]}-{key[1]} went back from {known[0]} to {op['offset']}"
            self._world.breaches.add("position", text, (known[1], line), op["end"])
        if known is None or op["offset"] >= known[0]:
            self._log_ends[key] = (op["offset"], line, op["end"])

    def _commit(self, line: int, op: Op) -> None:
        """Record an offset that a plain group committed, or may have."""
        if op["outcome"] == "failed":
            return
        key = (op["group"], op["topic"], op["partition"])
        self._tried.setdefault(key, set()).add(op["offset"])
        if op["outcome"] == "ok":
            kept = self._confirmed.setdefault(key, [])
            kept.append((op["offset"], line, op["end"]))
            del kept[:-8]

    def _committed(self, line: int, op: Op) -> None:
        """Check that the offset was confirmed last, or attempted since."""
        if op["outcome"] != "ok":
            return
        key = (op["group"], op["topic"], op["partition"])
        offset = op["offset"]
        confirmed = [each for each in self._confirmed.get(key, ()) if each[2] < op["start"]]
        name = f"group {key[0]}, {key[1]}-{key[2]}"
        if confirmed and offset < (best := max(confirmed))[0]:
            text = f"{name}: offset {best[0]} was committed, and later it was {offset}"
            self._world.breaches.add("committed", text, (best[1], line), op["end"])
        elif offset >= 0 and offset not in self._tried.get(key, ()):
            self._world.breaches.add(
                "committed", f"{name}: nobody committed offset {offset}", (line,), op["end"]
            )

    def _offsets(self, line: int, op: Op) -> None:
        """Check that a start offset does not go back."""
        if op["outcome"] != "ok":
            return
        share = self._world.share(op)
        if op["start_offset"] < share.start_offset:
            text = (
                f"{share.name}: the start offset went back from {share.start_offset} to {op['start_offset']}"
            )
            self._world.breaches.add("start", text, (share.start_line, line), op["end"])

    def finish(self) -> None:
        """Do nothing: all breaches are reported at once."""
