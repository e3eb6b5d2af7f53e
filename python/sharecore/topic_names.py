"""Which names topics may have."""

from __future__ import annotations

import re

NAME_LENGTH_MAX = 249
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics of the broker's own coordinators."""
LEGAL_NAME = re.compile(rf"[a-zA-Z0-9._-]{{1,{NAME_LENGTH_MAX}}}")
"""Characters and length alone: `.` and `..` match as well."""


def is_legal_name(name: str) -> bool:
    """Return whether a topic name is valid."""
    return LEGAL_NAME.fullmatch(name) is not None and name not in (".", "..")
