"""Access control lists, on Apache Kafka as on sharecore."""

from __future__ import annotations

from collections.abc import Iterable

from sharecore.admin.administration import Administration
from sharecore.client.wire.refusals import accept, on_cluster
from sharecore.protocol import ApiKey, calls
from sharecore.security.acl import Acl, AclFilter


class AclAdmin(Administration):
    """Lists, creates and deletes entries.

    Settings are an administrator's (`sharecore.admin.Admin`); `async with` closes it.
    """

    async def list(self, wanted: AclFilter) -> list[Acl]:
        """Return the entries that a filter means; raise KafkaError when the broker refuses."""
        answer = await self._transport.any(calls.DESCRIBE_ACLS, _filter(wanted))
        return sorted(
            Acl(
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for resource in answer.resources
            for acl in resource.acls
        )

    async def create(self, acls: Iterable[Acl]) -> None:
        """Add entries; raise KafkaError when the broker refuses one."""
        creations = [
            {
                "resource_type": acl.resource_type,
                "resource_name": acl.name,
                "resource_pattern_type": acl.pattern_type,
                "principal": acl.principal,
                "host": acl.host,
                "operation": acl.operation,
                "permission_type": acl.permission,
            }
            for acl in acls
        ]
        answer = await self._transport.any(calls.CREATE_ACLS, {"creations": creations})
        for each in answer.results:
            accept(each, on_cluster(ApiKey.CREATE_ACLS))

    async def delete(self, wanted: AclFilter) -> int:
        """Delete the entries that a filter means; give how many, raise KafkaError."""
        answer = await self._transport.any(calls.DELETE_ACLS, {"filters": [_filter(wanted)]})
        missing = on_cluster(ApiKey.DELETE_ACLS)
        return sum(len(accept(each, missing).matching_acls) for each in answer.filter_results)


def _filter(wanted: AclFilter) -> dict[str, object]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }
