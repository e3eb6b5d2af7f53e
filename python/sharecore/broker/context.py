"""What a handler knows about the request besides its body."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Container, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sharecore._core import ShareAnswer
from sharecore.errors import DENIED, ErrorCode, KafkaError
from sharecore.security.acl import CLUSTER_NAME, SUPPORTED, ResourceType
from sharecore.waiting import Later, Steps

if TYPE_CHECKING:
    from sharecore.broker.services import Services
    from sharecore.network import Connection
    from sharecore.quotas import Mutations

Answer = TypeVar("Answer")


class _EveryName(Container[str]):
    """Every name: what a client may use without an authorizer."""

    def __contains__(self, name: object) -> bool:
        return True


EVERY_NAME: Container[str] = _EveryName()

Result = dict[str, Any] | ShareAnswer | Awaitable[dict[str, Any] | ShareAnswer | None] | None
"""What a handler returns (see `sharecore.broker.handlers`)."""


def refusal(resource_type: int, *, said: bool = False) -> KafkaError:
    """Return the error of a client that may not do something with a resource.

    Args:
        said: whether Kafka says so in words too, where it refuses this.
    """
    code = REFUSALS[resource_type]
    return KafkaError(code, DENIED[code] if said else "")


class RequestContext(NamedTuple):
    """One request's surroundings."""

    broker: Services
    connection: Connection
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None

    def may(
        self, operation: int, resource_type: int, name: str = CLUSTER_NAME, *, quiet: bool = False
    ) -> bool:
        """Whether the client may do something with a resource; always without an authorizer.

        Args:
            operation: a `sharecore.security.acl.Operation`.
            resource_type: a `sharecore.security.acl.ResourceType`.
            name: of the resource.
            quiet: nobody asked for this resource by its name, as where a list leaves out what it must.
        """
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.allows(
            self.connection.principal,
            self.connection.peer_host,
            operation,
            resource_type,
            name,
            quiet=quiet,
        )

    def may_each(
        self, operation: int, resource_type: int, names: Iterable[str], *, quiet: bool = False
    ) -> Steps[Container[str]]:
        """Return those of the resources that the client may do something with; all without an authorizer.

        Each name is decided and audited once, however often the request has it. The work is steps of a
        generator, as `sharecore.waiting.Turns` runs them.

        Args:
            operation, resource_type, quiet: as for `may`.
            names: of the resources.
        """
        authorizer = self.broker.authorizer
        if authorizer is None:
            return EVERY_NAME
        connection = self.connection
        return (
            yield from authorizer.allows_each(
                connection.principal, connection.peer_host, operation, resource_type, names, quiet=quiet
            )
        )

    def run(self, steps: Steps[Any]) -> dict[str, Any] | Awaitable[Any]:
        """Run the work for the answer, in turns of the event loop if there is much of it; see `Turns.run`.

        Until it has ended, no later request of the connection begins: a client may count on the order. The
        answer to much work may be large, so that a thread writes it.
        """
        answer = self.broker.turns.run(steps, self.hold)
        return self.broker.large_requests.written(self, answer) if isinstance(answer, Later) else answer

    async def finish(self, steps: Steps[Answer]) -> Answer:
        """As `run`, and wait for the result."""
        return await self.broker.turns.finish(steps, self.hold)

    def hold(self, later: Later[Any]) -> None:
        """Begin no later request of the connection until something has ended."""
        self.connection.hold()
        later.add_done_callback(lambda _: self.connection.go_on())

    def end_turn(self) -> None:
        """Begin no later request of the connection before others have been served."""
        later: Later[None] = Later()
        self.hold(later)
        asyncio.get_running_loop().call_soon(later.set_result, None)

    def require(
        self, operation: int, resource_type: int, name: str = CLUSTER_NAME, *, said: bool = False
    ) -> None:
        """Raise the KafkaError of the resource's type unless the client may do it.

        Args:
            operation, resource_type, name: as for `may`.
            said: whether Kafka says so in words too, where it refuses this.
        """
        if not self.may(operation, resource_type, name):
            raise refusal(resource_type, said=said)

    def may_some(self, operation: int, resource_type: int) -> bool:
        """Whether the client may do something with at least one resource of a type."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.allows_some(
            self.connection.principal, self.connection.peer_host, operation, resource_type
        )

    def operations(self, resource_type: int, name: str = CLUSTER_NAME) -> int:
        """Return what the client may do with a resource, as the bits that answers carry (KIP-430)."""
        authorizer = self.broker.authorizer
        if authorizer is None:
            return sum(1 << operation for operation in SUPPORTED[resource_type])
        connection = self.connection
        return authorizer.operations(connection.principal, connection.peer_host, resource_type, name)

    def mutations(self, *, strict_since: int) -> Mutations:
        """Return what the request may make and delete (controller_mutation_rate).

        Args:
            strict_since: the version from which on a client is refused what is beyond its quota.
        """
        return self.broker.throttles.mutations(
            self.connection.principal.name, self.client_id or "", strict=self.api_version >= strict_since
        )

    def records_room(self) -> int:
        """Bytes of records that the answer may carry at most (consumer_byte_rate)."""
        return self.broker.throttles.room(self.connection.principal.name, self.client_id or "")


NOT_REQUESTED = -2147483648
"""What answers carry instead where nobody asked for it."""

REFUSALS: dict[int, ErrorCode] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""What a client is told that may not do what it asks, by type of the resource."""
