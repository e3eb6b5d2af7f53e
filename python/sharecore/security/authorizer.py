"""Authorization decisions, as in Apache Kafka's StandardAuthorizer."""

from __future__ import annotations

from collections.abc import Container, Generator, Iterable
from sys import getsizeof

from sharecore.config import BrokerConfig
from sharecore.errors import ConfigError
from sharecore.security.acl import (
    IMPLIED_BY,
    SUPPORTED,
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
)
from sharecore.security.acls import Acls
from sharecore.security.audit import Decision, audits_allowed, record, record_each
from sharecore.security.principal import USER, Principal

_EVERYBODY = str(Principal(USER, WILDCARD))
_ENTRY_BYTES = 250
"""Approximate memory size of a cached decision, without its name."""


class Authorizer:
    """Authorizer: a denial wins over a permission; without a permission, access is denied.

    Decisions are cached until an entry changes.

    Args:
        acls: the entries.
        super_users: principals with all permissions.
        open_without_acls: whether a resource without entries is open to every client.
        cache_bytes_max: approximate memory limit of cached decisions, as clients choose the names.
    """

    def __init__(
        self,
        acls: Acls,
        super_users: Iterable[Principal] = (),
        *,
        open_without_acls: bool = False,
        cache_bytes_max: int = 16 << 20,
    ) -> None:
        self.acls = acls
        self._super_users = frozenset(super_users)
        self._open_without_acls = open_without_acls
        self._decisions: dict[tuple[Principal, str, int, int, str], bool] = {}
        self._cache_bytes_max = cache_bytes_max
        self._cache_bytes = 0
        self._audit_allowed = audits_allowed()
        acls.on_change(self._forget)

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: int,
        resource_type: int,
        name: str,
        *,
        quiet: bool = False,
    ) -> bool:
        """Return whether a principal may perform an operation on a resource.

        Args:
            principal: the principal.
            host: the client's address.
            operation: an `Operation`.
            resource_type: a `ResourceType`.
            name: the resource's name.
            quiet: whether to skip the audit log, as the request does not name the resource.
        """
        key = (principal, host, operation, resource_type, name)
        allowed = self._decisions.get(key)
        if allowed is None:
            allowed = self._remember(key)
        if not quiet and (not allowed or self._audit_allowed):
            record(Decision(*key, allowed))
        return allowed

    def allows_each(
        self,
        principal: Principal,
        host: str,
        operation: int,
        resource_type: int,
        names: Iterable[str],
        *,
        quiet: bool = False,
    ) -> Generator[None, None, Container[str]]:
        """Return the permitted resources.

        A repeated name is decided and audited once. Yields after each decision.

        Args:
            principal, host, operation, resource_type, quiet: see `allows`.
            names: the resources' names.
        """
        allowed, denied = dict[str, None](), list[str]()
        for name in dict.fromkeys(names):
            key = (principal, host, operation, resource_type, name)
            known = self._decisions.get(key)
            if self._remember(key) if known is None else known:
                allowed[name] = None
            else:
                denied.append(name)
            yield
        if not quiet:
            about = (principal, host, operation, resource_type)
            if denied:
                record_each(about, denied, allowed=False)
            if allowed and self._audit_allowed:
                record_each(about, list(allowed), allowed=True)
        return allowed

    def allows_some(self, principal: Principal, host: str, operation: int, resource_type: int) -> bool:
        """Return whether a principal has a permission on any resource of a type (KIP-679)."""
        if self._decide(principal, host, operation, resource_type, "hardcode"):
            return True
        allowed: list[Acl] = []
        denied: set[tuple[int, str]] = set()
        for acl in self.acls.select(AclFilter(resource_type)):
            if not _is_for(acl, principal, host) or acl.operation not in (operation, Operation.ALL):
                continue
            if acl.permission == Permission.ALLOW:
                allowed.append(acl)
            elif (acl.pattern_type, acl.name) == (PatternType.LITERAL, WILDCARD):
                return False
            else:
                denied.add((acl.pattern_type, acl.name))
        return any(not _is_covered(acl, denied) for acl in allowed)

    def operations(self, principal: Principal, host: str, resource_type: int, name: str) -> int:
        """Return the permitted operations as a bit field (KIP-430)."""
        bits = 0
        for operation in SUPPORTED[resource_type]:
            if self.allows(principal, host, operation, resource_type, name, quiet=True):
                bits |= 1 << operation
        return bits

    def _remember(self, key: tuple[Principal, str, int, int, str]) -> bool:
        """Decide, and cache the decision."""
        allowed = self._decide(*key)
        self._cache_bytes += _ENTRY_BYTES + getsizeof(key[-1])
        if self._cache_bytes > self._cache_bytes_max:
            self._forget()
        else:
            self._decisions[key] = allowed
        return allowed

    def _forget(self) -> None:
        self._decisions.clear()
        self._cache_bytes = 0

    def _decide(self, principal: Principal, host: str, operation: int, resource_type: int, name: str) -> bool:
        if principal in self._super_users:
            return True
        allowing = IMPLIED_BY.get(operation, (operation,))
        allowed, named = False, False
        for acl in self.acls.of(resource_type, name):
            named = True
            if not _is_for(acl, principal, host):
                continue
            if acl.permission == Permission.DENY:
                if acl.operation in (operation, Operation.ALL):
                    return False
            elif acl.operation == Operation.ALL or acl.operation in allowing:
                allowed = True
        return allowed if named else self._open_without_acls


def super_users_of(config: BrokerConfig) -> frozenset[Principal]:
    """Return the principals with all permissions (`super.users`); raise ConfigError if it is invalid."""
    parts = [part for part in config.super_users.split(";") if part.strip()]
    try:
        return frozenset(map(Principal.parse, parts))
    except ValueError as error:
        raise ConfigError(f"super.users={config.super_users}: {error}") from None


def _is_for(acl: Acl, principal: Principal, host: str) -> bool:
    return acl.principal in (str(principal), _EVERYBODY) and acl.host in (host, WILDCARD)


def _is_covered(acl: Acl, denied: set[tuple[int, str]]) -> bool:
    """Return whether a denial covers everything that an entry allows."""
    if (acl.pattern_type, acl.name) == (PatternType.LITERAL, WILDCARD):
        return False
    if acl.pattern_type == PatternType.LITERAL and (PatternType.LITERAL, acl.name) in denied:
        return True
    return any((PatternType.PREFIXED, acl.name[:end]) in denied for end in range(1, len(acl.name) + 1))
