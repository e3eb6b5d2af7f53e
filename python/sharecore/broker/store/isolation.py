"""A leader of a home that does not reach the bucket: another broker may lead, and clients should ask it."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sharecore.waiting import PeriodicLook

logger = logging.getLogger("sharecore.broker")

UNHEARD_MS = 8000
"""A standby claims after 6.5 s of silence, and leads within a second."""
_LOOK_MS = 500


class Isolation(PeriodicLook):
    """Sends clients away while another broker may lead.

    Nothing is answered that the bucket does not confirm, so clients of an isolated leader would wait for
    their own timeouts, and some would then ask it again, for ever.

    Args:
        is_heard: whether the bucket has confirmed a write in the last `UNHEARD_MS`.
        has_others: whether another broker of the home is known.
        send_away: closes the connections of all clients, and new ones.
        welcome: serves new connections again.
    """

    def __init__(
        self,
        is_heard: Callable[[], bool],
        has_others: Callable[[], bool],
        send_away: Callable[[], object],
        welcome: Callable[[], object],
    ) -> None:
        self._is_heard, self._has_others = is_heard, has_others
        self._send_away, self._welcome = send_away, welcome
        self._was_heard = False
        self.is_isolated = False
        """Clients are sent away."""
        super().__init__(_LOOK_MS, "the look whether the bucket is reached")

    def look(self) -> None:
        """Look once; clients are served again as soon as the bucket is heard, or no other broker is left.

        Clients ask the broker that they are connected to, who leads and who coordinates their group, as long
        as it answers: so none is served meanwhile.
        """
        is_heard = self._is_heard()
        self._was_heard |= is_heard
        isolated = self._was_heard and not is_heard and self._has_others()
        if isolated and not self.is_isolated:
            logger.warning(
                "the bucket has not been heard for %d s: clients are sent to the other brokers",
                UNHEARD_MS // 1000,
            )
            self._send_away()
        elif self.is_isolated and not isolated:
            logger.warning("clients are served again")
            self._welcome()
        self.is_isolated = isolated
