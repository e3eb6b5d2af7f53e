"""ShareAcknowledge: acknowledges acquired records without fetching more (KIP-932).

`_core.ShareAcknowledge` implements it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharecore._core import ShareAcknowledge
from sharecore.broker.share_rights import check_share_group, may_read

if TYPE_CHECKING:
    from sharecore.broker.services import Services


def begin(broker: Services) -> ShareAcknowledge:
    """Return the handler of one broker."""
    return ShareAcknowledge(check_share_group, may_read)
