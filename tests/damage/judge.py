"""One damaged copy: what doctor says of it, and what a broker does with it."""

from __future__ import annotations

import logging
import random
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.damage.directory import DAMAGES, SETTINGS, broken, load, small_segments
from tests.harness.running import RunningBroker

from sharecore.admin.doctor import data_directory

_PLACE = re.compile(r"[0-9a-f]{16}\.\w+|meta\.properties|\bformat\b|\.journal|\.lock|offset \d+")
_REMEDY = re.compile(r"sharecore store|salvage|restore|backup|remove|put .* back|delete", re.IGNORECASE)


class Outcome(NamedTuple):
    """What became of a damaged directory.

    Args:
        kind: whole, told (a client or the log is told of the damage), refused, or what is wrong.
        text: where the damage is, and what was said.
    """

    damage: str
    kind: str
    text: str


def judge(base: str, seed: int) -> Outcome:
    """Damage a copy, ask doctor, and start a broker on it."""
    logging.disable()
    rng = random.Random(seed)
    name = rng.choice(list(DAMAGES))
    with tempfile.TemporaryDirectory(prefix="damage-") as directory:
        copy = Path(directory) / "data"
        shutil.copytree(Path(base) / "data", copy)
        where = DAMAGES[name](copy, rng)
        promise = load(Path(base) / "promise.json")
        bad = [each for each in data_directory(copy) if each.level == "bad"]
        doctor = "; ".join(f"{each.what} {each.advice}" for each in bad)
        with small_segments():
            broker = RunningBroker(copy, SETTINGS)
            try:
                broker.start()
            except Exception as refusal:
                return _refused(name, where, str(refusal), doctor)
            try:
                missing = broken(broker, promise)
            finally:
                broker.stop()
    said = f"{where}; missing: {missing[:3]}; doctor: {doctor or 'good'}"
    silent = [each for each in missing if "told" not in each]
    if silent and not bad:
        return Outcome(name, "LOST IN SILENCE", said)
    if missing and not bad:
        return Outcome(name, "DOCTOR SAYS GOOD", said)
    return Outcome(name, "told" if missing else "whole", said)


def _refused(name: str, where: str, refusal: str, doctor: str) -> Outcome:
    said = f"{where}; refused: {refusal}; doctor: {doctor or 'good'}"
    if not doctor:
        return Outcome(name, "DOCTOR SAYS GOOD", said)
    if not _PLACE.search(refusal):
        return Outcome(name, "REFUSED WITHOUT A PLACE", said)
    if not _REMEDY.search(refusal):
        return Outcome(name, "REFUSED WITHOUT A REMEDY", said)
    return Outcome(name, "refused", said)
