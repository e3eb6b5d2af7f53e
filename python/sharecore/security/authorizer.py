"""Decides what is allowed to whom, as Apache Kafka's StandardAuthorizer decides it."""

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
"""About what a cached decision takes besides the name that it is about."""


class Authorizer:
    """The rules: who denies wins over who allows; what nothing allows is denied.

    Decisions are cached until an entry changes.

    Args:
        acls: the entries.
        super_users: may do everything.
        open_without_acls: whether a resource that no entry names is open to everybody.
        cache_bytes_max: about how much memory cached decisions may take; names are whatever clients ask for.
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
        """Whether somebody may do something with a resource.

        Args:
            principal: who.
            host: the address the request comes from.
            operation: an `Operation`.
            resource_type: a `ResourceType`.
            name: of the resource.
            quiet: not worth a line in the audit, as nobody asked for this resource by its name.
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
        """Return those of the resources that somebody may do something with.

        A name that repeats is decided and audited once. Yields after each decision.

        Args:
            principal, host, operation, resource_type, quiet: as for `allows`.
            names: of the resources.
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
        """Whether somebody may do something with at least one resource of a type (KIP-679)."""
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
        """Return what somebody may do with a resource, as the bits that answers carry (KIP-430)."""
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
    """Principals that may do everything (`super.users`); raises ConfigError."""
    parts = [part for part in config.super_users.split(";") if part.strip()]
    try:
        return frozenset(map(Principal.parse, parts))
    except ValueError as error:
        raise ConfigError(f"super.users={config.super_users}: {error}") from None


def _is_for(acl: Acl, principal: Principal, host: str) -> bool:
    return acl.principal in (str(principal), _EVERYBODY) and acl.host in (host, WILDCARD)


def _is_covered(acl: Acl, denied: set[tuple[int, str]]) -> bool:
    """Whether everything that an entry allows is denied by another."""
    if (acl.pattern_type, acl.name) == (PatternType.LITERAL, WILDCARD):
        return False
    if acl.pattern_type == PatternType.LITERAL and (PatternType.LITERAL, acl.name) in denied:
        return True
    return any((PatternType.PREFIXED, acl.name[:end]) in denied for end in range(1, len(acl.name) + 1))
