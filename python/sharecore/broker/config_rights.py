"""Whose settings may be read and altered: topics' and groups' each by name, all others as the cluster's."""

from __future__ import annotations

from sharecore.broker.context import RequestContext
from sharecore.security.acl import CLUSTER_NAME
from sharecore.security.acl import ResourceType as Protected
from sharecore.storage import ResourceType

_PROTECTED = {
    ResourceType.TOPIC: Protected.TOPIC,
    ResourceType.GROUP: Protected.GROUP,
    ResourceType.BROKER: Protected.CLUSTER,
    ResourceType.BROKER_LOGGER: Protected.CLUSTER,
    ResourceType.CLIENT_METRICS: Protected.CLUSTER,
}


def require_config(
    context: RequestContext, operation: int, resource_type: int, name: str, *, said: bool = True
) -> None:
    """Raises KafkaError unless the client may do it with the settings of a resource.

    Args:
        context: whose request it is.
        operation: DESCRIBE_CONFIGS or ALTER_CONFIGS.
        resource_type: as requests about settings number it.
        name: of the resource.
        said: the refusal has its message.
    """
    protected = _PROTECTED.get(ResourceType(resource_type)) if resource_type in set(ResourceType) else None
    if protected is not None:
        resource = CLUSTER_NAME if protected is Protected.CLUSTER else name
        context.require(operation, protected, resource, said=said)
