"""Users of SCRAM, on Apache Kafka as on sharecore (KIP-554)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import NamedTuple

from sharecore.admin.administration import Administration
from sharecore.client.wire.refusals import accept, on_cluster
from sharecore.protocol import ApiKey, calls

ITERATIONS = 4096
MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Names and Kafka's numbers."""
_NAMES = {number: name for name, number in MECHANISMS.items()}


class User(NamedTuple):
    """A user's mechanisms, and the iterations of each."""

    name: str
    mechanisms: dict[str, int]


class Users(Administration):
    """Lists, sets and deletes the credentials of users.

    Settings are an administrator's (`sharecore.admin.Admin`); `async with` closes it.
    """

    async def list(self) -> list[User]:
        """Return all users; raise KafkaError if the broker refuses."""
        answer = await self._transport.any(calls.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": None})
        return [
            User(
                accept(each).user,
                {_NAMES.get(info.mechanism, "?"): info.iterations for info in each.credential_infos},
            )
            for each in sorted(answer.results, key=lambda result: str(result.user))
        ]

    async def put(self, name: str, mechanism: str, password: str, *, iterations: int = ITERATIONS) -> None:
        """Set a user's password for a mechanism; only its salted form leaves this process.

        Raises:
            KafkaError: the broker refuses.
        """
        digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        salt = secrets.token_bytes(24)
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
        await self._alter(
            upsertions=[
                {
                    "name": name,
                    "mechanism": MECHANISMS[mechanism],
                    "iterations": iterations,
                    "salt": salt,
                    "salted_password": salted,
                }
            ]
        )

    async def delete(self, name: str, mechanism: str) -> None:
        """Delete a user's password for a mechanism; raise KafkaError (RESOURCE_NOT_FOUND)."""
        await self._alter(deletions=[{"name": name, "mechanism": MECHANISMS[mechanism]}])

    async def _alter(self, **changes: Sequence[object]) -> None:
        message: dict[str, object] = {"deletions": [], "upsertions": [], **changes}
        answer = await self._transport.any(calls.ALTER_USER_SCRAM_CREDENTIALS, message)
        for each in answer.results:
            accept(each, on_cluster(ApiKey.ALTER_USER_SCRAM_CREDENTIALS))
