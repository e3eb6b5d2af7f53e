"""Permissions on settings: per name for topics and groups, on the cluster for all others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable
from typing import NamedTuple

from sharecore.broker.requests.context import REFUSALS, RequestContext
from sharecore.errors import DENIED, KafkaError
from sharecore.security.acl import CLUSTER_NAME
from sharecore.security.acl import ResourceType as Protected
from sharecore.storage import ResourceType
from sharecore.waiting import Steps

_PROTECTED: dict[int, Protected] = {
    ResourceType.TOPIC: Protected.TOPIC,
    ResourceType.GROUP: Protected.GROUP,
    ResourceType.BROKER: Protected.CLUSTER,
    ResourceType.BROKER_LOGGER: Protected.CLUSTER,
    ResourceType.CLIENT_METRICS: Protected.CLUSTER,
}


class ConfigRights(NamedTuple):
    """Permissions of a client on the settings of a request.

    Args:
        allowed: permitted names by resource type.
    """

    allowed: dict[Protected, Container[str]]

    def require(self, resource_type: int, name: str, *, said: bool = True) -> None:
        """Raise KafkaError if the client lacks the permission; unknown types have none.

        Args:
            resource_type: the number in configuration requests.
            name: the resource's name.
            said: whether the refusal has a message.
        """
        protected = _PROTECTED.get(resource_type)
        if protected is None:
            return
        resource = CLUSTER_NAME if protected is Protected.CLUSTER else name
        if resource not in self.allowed[protected]:
            code = REFUSALS[protected]
            raise KafkaError(code, DENIED[code] if said else "")


def config_rights(
    context: RequestContext, operation: int, resources: Iterable[tuple[int, str]]
) -> Steps[ConfigRights]:
    """Return the client's permissions on the settings of resources.

    Args:
        context: the request.
        operation: DESCRIBE_CONFIGS or ALTER_CONFIGS.
        resources: types, numbered as in configuration requests, and names.
    """
    named = defaultdict[Protected, dict[str, None]](dict)
    for resource_type, name in resources:
        protected = _PROTECTED.get(resource_type)
        if protected is not None:
            named[protected][CLUSTER_NAME if protected is Protected.CLUSTER else name] = None
        yield
    allowed: dict[Protected, Container[str]] = {}
    for protected, names in named.items():
        allowed[protected] = yield from context.may_each(operation, protected, names)
    return ConfigRights(allowed)
