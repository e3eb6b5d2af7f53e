"""Pauses of share groups: read and set them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sharecore.client.configs import ResourceKind, describe_configs
from sharecore.client.wire.transport import Transport
from sharecore.errors import ErrorCode, KafkaError

PAUSED, PAUSED_UNTIL = "share.paused", "share.paused.until.ms"
SETTINGS = (PAUSED, PAUSED_UNTIL)


@dataclass(frozen=True, slots=True)
class Pause:
    """Whether a share group gets records.

    Args:
        lasting: it gets none until it is resumed.
        until_ms: it gets none before this time, in milliseconds since the epoch; 0 without such a time.
    """

    lasting: bool = False
    until_ms: int = 0

    @classmethod
    def of(cls, settings: Mapping[str, str | None]) -> Pause:
        """Return the pause in a group's settings; none if the broker has no such settings."""
        text = settings.get(PAUSED_UNTIL) or ""
        return cls(settings.get(PAUSED) == "true", int(text) if text.isascii() and text.isdigit() else 0)

    def describe(self, now_ms: int) -> str:
        """Return the pause in a few words; empty if the group gets records at `now_ms`."""
        if self.lasting:
            return "paused until it is resumed"
        if self.until_ms <= now_ms:
            return ""
        return f"paused until {time_text(self.until_ms)}"


async def pause_of(transport: Transport, group_id: str) -> Pause:
    """Return a group's pause; none if its settings are not readable or the broker has no pauses.

    Raises:
        KafkaError: the broker did not answer.
    """
    try:
        found = await describe_configs(transport, ResourceKind.GROUP, group_id, SETTINGS)
        return Pause.of({name: entry.value for name, entry in found.items()})
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_AUTHORIZATION_FAILED:
            raise
        return Pause()


def time_text(at_ms: int) -> str:
    """Return a time in milliseconds since the epoch as people read it, in UTC."""
    try:
        text = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms after the epoch"
    return text.replace("+00:00", "Z")
