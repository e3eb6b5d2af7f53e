"""Principals that differ by one right each."""

from __future__ import annotations

from sharecore.security.acl import SUPPORTED, Acl, Operation, PatternType, Permission, ResourceType

OPEN = "open"
"""What the names begin with that the principals have rights to."""

_EVERY = "*"
_TYPES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID)


def principals() -> dict[str, list[Acl]]:
    """Names of principals and the entries that are for each."""
    found: dict[str, list[Acl]] = {"nobody": [], "all": _all("all")}
    for kind in _TYPES:
        short = kind.name.split("_")[0].lower()
        for operation in SUPPORTED[kind]:
            name = f"only-{short}-{operation.name.lower()}"
            found[name] = [_entry(name, kind, operation)]
            name = f"not-{short}-{operation.name.lower()}"
            found[name] = [*_all(name), _entry(name, kind, operation, Permission.DENY)]
        name = f"only-{short}-all"
        found[name] = [_entry(name, kind, Operation.ALL)]
        name = f"not-{short}-all"
        found[name] = [*_all(name), _entry(name, kind, Operation.ALL, Permission.DENY)]
    found |= _patterns()
    return found


def _patterns() -> dict[str, list[Acl]]:
    """Rights that hang on the pattern, the host, or on somebody else."""
    topic, group = ResourceType.TOPIC, ResourceType.GROUP
    literal, prefixed = PatternType.LITERAL, PatternType.PREFIXED
    everything = {
        "literal": [(topic, "open-t", literal), (group, "open-g", literal)],
        "wildcard": [(topic, _EVERY, literal), (group, _EVERY, literal)],
        "near-prefix": [(topic, "open-t-", prefixed), (group, "open-g-", prefixed)],
        "two-patterns": [(topic, "op", prefixed), (topic, "open-t", literal), (group, "o", prefixed)],
    }
    found = {
        name: [
            Acl(kind, pattern, how, f"User:{name}", _EVERY, Operation.ALL, Permission.ALLOW)
            for kind, pattern, how in some
        ]
        for name, some in everything.items()
    }
    found["denied-literal"] = [
        *_all("denied-literal"),
        Acl(topic, "open-t", literal, "User:denied-literal", _EVERY, Operation.READ, Permission.DENY),
    ]
    found["other-host"] = [each._replace(host="10.1.2.3") for each in _all("other-host")]
    found["this-host"] = [each._replace(host="127.0.0.1") for each in _all("this-host")]
    found["denied-elsewhere"] = [
        *_all("denied-elsewhere"),
        *(each._replace(host="10.1.2.3", permission=Permission.DENY) for each in _all("denied-elsewhere")),
    ]
    found["of-another"] = [each._replace(principal="User:another") for each in _all("x")]
    found["of-a-group"] = [each._replace(principal="Group:of-a-group") for each in _all("x")]
    return found


def _all(name: str) -> list[Acl]:
    return [_entry(name, kind, Operation.ALL) for kind in _TYPES]


def _entry(
    name: str, kind: ResourceType, operation: Operation, permission: Permission = Permission.ALLOW
) -> Acl:
    if kind is ResourceType.CLUSTER:
        return Acl(kind, "kafka-cluster", PatternType.LITERAL, f"User:{name}", _EVERY, operation, permission)
    return Acl(kind, OPEN, PatternType.PREFIXED, f"User:{name}", _EVERY, operation, permission)
