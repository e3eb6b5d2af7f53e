"""Context of a request for its handler."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Container, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar, cast

from sharecore._core import ShareAnswer
from sharecore.errors import DENIED, ErrorCode, KafkaError
from sharecore.security.acl import CLUSTER_NAME, SUPPORTED, ResourceType
from sharecore.waiting import Begun, Later, Steps

if TYPE_CHECKING:
    from sharecore.broker.requests.services import Services
    from sharecore.network import Connection
    from sharecore.quotas import Mutations

Answer = TypeVar("Answer")


class _EveryName(Container[str]):
    """All names: the permitted ones without an authorizer."""

    def __contains__(self, name: object) -> bool:
        return True


EVERY_NAME: Container[str] = _EveryName()

Result: TypeAlias = Answer | ShareAnswer | Awaitable[Answer | ShareAnswer | None] | None
"""Result of a handler (see `sharecore.broker.handlers`)."""


def refusal(resource_type: int, *, said: bool = False) -> KafkaError:
    """Return the authorization error for a resource type.

    Args:
        said: whether Kafka's refusal has a message.
    """
    code = REFUSALS[resource_type]
    return KafkaError(code, DENIED[code] if said else "")


class RequestContext(NamedTuple):
    """Context of one request."""

    broker: Services
    connection: Connection
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None

    def may(
        self, operation: int, resource_type: int, name: str = CLUSTER_NAME, *, quiet: bool = False
    ) -> bool:
        """Return whether the client has a permission; always without an authorizer.

        Args:
            operation: a `sharecore.security.acl.Operation`.
            resource_type: a `sharecore.security.acl.ResourceType`.
            name: the resource's name.
            quiet: the request does not name the resource, such as when a list is filtered.
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
        """Return the permitted resources; all without an authorizer.

        Each name is decided and audited once, even if repeated. The work is a generator of steps for
        `sharecore.waiting.Turns`.

        Args:
            operation, resource_type, quiet: see `may`.
            names: the resources' names.
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

    def run(self, steps: Steps[Begun[Answer]]) -> Answer | Awaitable[Answer]:
        """Run the work of an answer, in several event-loop turns if it is long; see `Turns.run`.

        Until it has ended, later requests of the connection are held, to keep their order. A thread writes
        large answers.
        """
        answer = self.broker.turns.run(steps, self.hold)
        if isinstance(answer, Later):
            # the dispatch takes an answer as it is, or encoded
            return cast("Awaitable[Answer]", self.broker.large_requests.written(self, answer))
        return answer

    async def finish(self, steps: Steps[Answer]) -> Answer:
        """Run the work as `run` does, and wait for the result."""
        return await self.broker.turns.finish(steps, self.hold)

    def hold(self, later: Later[object]) -> None:
        """Hold later requests of the connection until `later` has ended."""
        self.connection.hold()
        later.add_done_callback(lambda _: self.connection.go_on())

    def end_turn(self) -> None:
        """Serve other connections before the connection's next request."""
        later: Later[None] = Later()
        self.hold(later)
        asyncio.get_running_loop().call_soon(later.set_result, None)

    def require(
        self, operation: int, resource_type: int, name: str = CLUSTER_NAME, *, said: bool = False
    ) -> None:
        """Raise the resource type's KafkaError unless the client has the permission.

        Args:
            operation, resource_type, name: see `may`.
            said: whether Kafka's refusal has a message.
        """
        if not self.may(operation, resource_type, name):
            raise refusal(resource_type, said=said)

    def may_some(self, operation: int, resource_type: int) -> bool:
        """Return whether the client has the permission on any resource of a type."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.allows_some(
            self.connection.principal, self.connection.peer_host, operation, resource_type
        )

    def operations(self, resource_type: int, name: str = CLUSTER_NAME) -> int:
        """Return the permitted operations as a bit field (KIP-430)."""
        authorizer = self.broker.authorizer
        if authorizer is None:
            return sum(1 << operation for operation in SUPPORTED[resource_type])
        connection = self.connection
        return authorizer.operations(connection.principal, connection.peer_host, resource_type, name)

    def mutations(self, *, strict_since: int) -> Mutations:
        """Return the budget for creations and deletions (controller_mutation_rate).

        Args:
            strict_since: the version from which requests beyond the quota are refused.
        """
        return self.broker.throttles.mutations(
            self.connection.principal.name, self.client_id or "", strict=self.api_version >= strict_since
        )

    def records_room(self) -> int:
        """Return the maximum record bytes of the answer (consumer_byte_rate)."""
        return self.broker.throttles.room(self.connection.principal.name, self.client_id or "")


NOT_REQUESTED = -2147483648
"""Value in answers for a field that was not requested."""

REFUSALS: dict[int, ErrorCode] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""Authorization errors by resource type."""
