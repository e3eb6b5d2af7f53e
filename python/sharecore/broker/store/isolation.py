"""A leader of a home that cannot reach the bucket: another broker may lead, so clients go there."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sharecore.waiting import PeriodicLook

logger = logging.getLogger("sharecore.broker")

SILENT_MS = 8000
"""A standby claims after 6.5 s of silence, and leads within a second."""
_LOOK_MS = 500


class Isolation(PeriodicLook):
    """Sends clients away while another broker may lead.

    Nothing is answered that the bucket does not confirm, so clients of an isolated leader would wait for
    their own timeouts, and some would then ask it again, for ever.

    Args:
        has_answered: whether the bucket has confirmed a write in the last `SILENT_MS`.
        has_others: whether another broker of the home is known.
        send_away: closes the connections of all clients, and new ones.
        welcome: serves new connections again.
    """

    def __init__(
        self,
        has_answered: Callable[[], bool],
        has_others: Callable[[], bool],
        send_away: Callable[[], object],
        welcome: Callable[[], object],
    ) -> None:
        self._has_answered, self._has_others = has_answered, has_others
        self._send_away, self._welcome = send_away, welcome
        self._had_answered = False
        self.is_isolated = False
        """Clients are sent away."""
        super().__init__(_LOOK_MS, "the look whether the bucket is reached")

    def look(self) -> None:
        """Look once; clients are served again as soon as the bucket answers, or no other broker is left.

        Clients ask the broker that they are connected to, who leads and who coordinates their group, as long
        as it answers: so none is served meanwhile.
        """
        has_answered = self._has_answered()
        self._had_answered |= has_answered
        isolated = self._had_answered and not has_answered and self._has_others()
        if isolated and not self.is_isolated:
            logger.warning(
                "the bucket has not answered for %d s: clients are sent to the other brokers",
                SILENT_MS // 1000,
            )
            self._send_away()
        elif self.is_isolated and not isolated:
            logger.warning("clients are served again")
            self._welcome()
        self.is_isolated = isolated
