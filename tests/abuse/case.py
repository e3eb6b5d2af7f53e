"""What a case is: an attack on a broker, and what it may cost others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from tests.abuse.subject import Subject

Attack = Callable[[Subject], None]
"""Attacks; raises AssertionError where the broker answers wrongly."""

MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an attack may cost.

    Args:
        wait_s: the longest wait of a client that means well; None for what the machine is good for.
        peak_bytes: growth of resident memory while it lasts.
        memory_bytes: growth of resident memory that stays.
        log_bytes: growth of the log.
        disk_bytes: growth of the data directory.
    """

    wait_s: float | None = None
    peak_bytes: int = 300 * MB
    memory_bytes: int = 100 * MB
    log_bytes: int = MB
    disk_bytes: int = 100 * MB


@dataclass(frozen=True, slots=True)
class Case:
    """One attack.

    Args:
        kind: the file that it is in.
        name: the function's.
        attack: the function.
        bounds: what it may cost.
        quick: whether `make test` runs it: it takes a second or two.
        secure: whether the broker has users and rights.
        settings: of the broker, beyond those of every subject; a broker serves all cases with the same.
        parts: what the attack consists of, by name: each is tried alone where the whole costs too much.
        fresh: whether the broker serves no other case.
    """

    kind: str
    name: str
    attack: Attack
    bounds: Bounds
    quick: bool
    secure: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[tuple[str, Attack]] = ()
    fresh: bool = False

    @property
    def title(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def subject(self) -> tuple[bool, tuple[tuple[str, str], ...], str]:
        """What distinguishes the broker that the case needs."""
        return self.secure, tuple(sorted(self.settings.items())), self.title if self.fresh else ""


_cases: list[Case] = []


def case(
    *,
    bounds: Bounds | None = None,
    quick: bool = False,
    secure: bool = True,
    settings: Mapping[str, str] | None = None,
) -> Callable[[Attack], Attack]:
    """Register a function as a case."""

    def register(attack: Attack) -> Attack:
        kind = attack.__module__.rpartition(".")[2]
        name = attack.__name__
        _cases.append(Case(kind, name, attack, bounds or Bounds(), quick, secure, settings or {}))
        return attack

    return register


def add(case: Case) -> None:
    """Register a case that was made from something else than a function."""
    _cases.append(case)


def cases() -> list[Case]:
    """Return every case of `tests/abuse/cases`; those that share a broker follow each other."""
    if not _cases:
        for path in sorted((Path(__file__).parent / "cases").glob("*.py")):
            import_module(f"tests.abuse.cases.{path.stem}")
    first = {each.subject: number for number, each in reversed(list(enumerate(_cases)))}
    return sorted(_cases, key=lambda each: first[each.subject])
