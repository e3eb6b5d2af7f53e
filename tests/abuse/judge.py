"""Runs a case while a witness waits, and holds its cost against its bounds."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from tests.abuse.case import MB, Case
from tests.abuse.peer import Closed
from tests.abuse.subject import Subject
from tests.abuse.witness import Waits, Witness

SETTLE_S = 3.0
"""What is given back after an attack is given back by then."""


class Cost(NamedTuple):
    """What an attack has cost; bytes are growth."""

    waits: Waits
    seconds: float
    peak_bytes: int
    memory_bytes: int
    log_bytes: int
    disk_bytes: int
    faults: list[str]


def judge(case: Case, subject: Subject, wait_s: float) -> Cost:
    """Attack a broker.

    Args:
        case: the attack.
        subject: the broker, which runs.
        wait_s: the longest wait allowed, where the case does not name its own.
    """
    witness = Witness(subject.port)
    subject.forget_peak()
    before = subject.memory_bytes()
    log_bytes, disk_bytes = subject.log_bytes(), subject.disk_bytes()
    faults = []
    began = time.monotonic()
    try:
        case.attack(subject)
    except AssertionError as error:
        faults.append(f"wrong answer: {error}"[:500])
    except (OSError, EOFError, Closed) as error:
        faults.append(f"the attack broke off: {type(error).__name__} {error}"[:500])
    except BaseException:
        witness.kill()
        raise
    seconds = time.monotonic() - began
    waits = witness.waits()
    if not subject.is_running():
        return Cost(waits, seconds, 0, 0, 0, 0, [*faults, "the broker has died"])
    _settle(subject, before + case.bounds.memory_bytes)
    cost = Cost(
        waits,
        seconds,
        max(subject.memory_peak_bytes() - before, 0),
        subject.memory_bytes() - before,
        subject.log_bytes() - log_bytes,
        subject.disk_bytes() - disk_bytes,
        faults,
    )
    bounds = case.bounds
    allowed = bounds.wait_s or wait_s
    if waits.error:
        faults.append(f"the witness was not served: {waits.error}")
    if waits.longest > allowed:
        faults.append(f"others waited {waits.longest:.2f} s, {allowed} s are allowed")
    for what, found, most in (
        ("memory grew by", cost.peak_bytes, bounds.peak_bytes),
        ("memory stayed", cost.memory_bytes, bounds.memory_bytes),
        ("the log grew by", cost.log_bytes, bounds.log_bytes),
        ("the data directory grew by", cost.disk_bytes, bounds.disk_bytes),
    ):
        if found > most:
            faults.append(f"{what} {found / MB:.1f} MB, {most / MB:.1f} MB are allowed")
    return cost


def _settle(subject: Subject, enough_bytes: int) -> None:
    """Wait until memory is given back."""
    end = time.monotonic() + SETTLE_S
    while subject.memory_bytes() > enough_bytes and time.monotonic() < end:
        time.sleep(0.1)


def at_once(count: int, attack: object, seconds: float = 60.0) -> None:
    """Call a function in so many threads at a time, with 0, 1, ...; an attack that is cut off has ended."""
    assert callable(attack)

    def run(number: int) -> None:
        try:
            attack(number)
        except Exception as error:
            if isinstance(error, AssertionError):
                wrong.append(error)

    wrong: list[AssertionError] = []
    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))
    if wrong:
        raise wrong[0]
