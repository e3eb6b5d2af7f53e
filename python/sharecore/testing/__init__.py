"""Help for tests of applications: a broker that starts quickly and whose locks expire on command.

pytest finds the fixtures `sharecore_broker`, `sharecore_topic` and `sharecore_group` by itself; unittest and
asyncio code use `EphemeralBroker`.
"""

from __future__ import annotations

from sharecore.testing.broker import EphemeralBroker

__all__ = ["EphemeralBroker"]
