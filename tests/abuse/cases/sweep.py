"""Every field of every API, of who has not logged in, who has no rights, and a super user."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from functools import partial

from tests.abuse.case import MB, Bounds, Case, add
from tests.abuse.subject import Subject
from tests.abuse.sweep import APIS, USERS, Part, parts

_SEED = int(os.environ.get("ABUSE_SEED", "1"))
_SLOW_ON_APACHE = ("100000 same protocols",)
"""Apache Kafka's group coordinator takes minutes for it, and serves nobody meanwhile."""
_BOUNDS = {
    # a super user may also fill memory and disk with lasting data
    "super-user": Bounds(memory_bytes=300 * MB, peak_bytes=600 * MB, disk_bytes=500 * MB),
}


def _run(attacks: Sequence[Part], subject: Subject) -> None:
    for name, attack in attacks:
        if subject.is_node and name in _SLOW_ON_APACHE:
            continue
        # a request that takes the upstream cluster a minute costs the node nothing
        with contextlib.suppress(*[TimeoutError] if subject.is_node else []):
            attack(subject)


for _api in APIS:
    for _name, _user in USERS.items():
        _parts = tuple(parts(_api, _user, _SEED))
        add(
            Case(
                kind="sweep",
                name=f"{_api.name.lower()}/{_name}",
                attack=partial(_run, _parts),
                bounds=_BOUNDS.get(_name, Bounds()),
                quick=False,
                secure=True,
                parts=_parts,
                fresh=_name == "super-user",
            )
        )
