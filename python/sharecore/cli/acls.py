"""`sharecore acls`: access-control entries."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile, Timeout, Value, administered
from sharecore.cli.clients import BOOTSTRAP, Bootstrap, CommandFailed, UsageFailed, failures_in_one_line
from sharecore.cli.tables import Output, show_list
from sharecore.cli.typers import commands

if TYPE_CHECKING:
    from sharecore.admin.acls import AclAdmin
    from sharecore.security.acl import Acl, AclFilter

acls = commands(
    "Manage access-control entries, here or on Apache Kafka.",
)
_Text = Optional[str]  # noqa: UP045 - typer evaluates the annotation
Topic = Annotated[_Text, typer.Option("--topic", help="A topic; * for all.")]
Group = Annotated[_Text, typer.Option("--group", help="A group; * for all.")]
Transaction = Annotated[_Text, typer.Option("--transactional-id", help="A transactional id; * for all.")]
TheCluster = Annotated[bool, typer.Option("--cluster", help="The cluster itself.")]
Prefixed = Annotated[
    bool, typer.Option("--prefixed", help="Match all resources whose names start with the given one.")
]
Who = Annotated[
    _Text, typer.Option("--principal", metavar="User:NAME", help="The principal; User:* for everybody.")
]
Host = Annotated[str, typer.Option(help="The client's address; * for any.")]
Operations = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--operation", help="Such as read, write or all; may be repeated."),
]


@acls.command("list", short_help="List entries.")
def list_acls(
    topic: Topic = None,
    group: Group = None,
    transactional_id: Transaction = None,
    cluster: TheCluster = False,
    principal: Who = None,
    output: Output = "table",
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """List all entries, or those that apply to a resource or principal."""
    with failures_in_one_line():
        wanted = _filter(_resources(topic, group, transactional_id, cluster=cluster), principal)

        async def find(admin: AclAdmin) -> list[Acl]:
            return sorted({acl for each in wanted for acl in await admin.list(each)})

        found = _run(Cluster(bootstrap, setting, command_config, timeout), find)
    rows = [
        [
            _words(acl.resource_type, "resource"),
            acl.name,
            _words(acl.pattern_type, "pattern"),
            acl.principal,
            acl.host,
            _words(acl.operation, "operation"),
            _words(acl.permission, "permission"),
        ]
        for acl in found
    ]
    names = ("resource", "name", "pattern", "principal", "host", "operation", "permission")
    show_list(output, {name: name.upper() for name in names}, rows)


@acls.command("add", short_help="Add an entry.")
def add(
    principal: Who = None,
    operation: Operations = None,
    topic: Topic = None,
    group: Group = None,
    transactional_id: Transaction = None,
    cluster: TheCluster = False,
    prefixed: Prefixed = False,
    host: Host = "*",
    deny: Annotated[
        bool, typer.Option("--deny", help="Deny the operation; overrides entries that allow it.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Allow or deny a principal an operation on a resource.

    \b
    sharecore acls add --principal User:alice --operation read --topic orders --group workers
    sharecore acls add --principal 'User:*' --operation all --topic secret- --prefixed --deny
    """
    with failures_in_one_line():
        made = _entries(
            _resources(topic, group, transactional_id, cluster=cluster),
            principal,
            operation,
            host,
            prefixed=prefixed,
            deny=deny,
        )

        async def create(admin: AclAdmin) -> None:
            await admin.create(made)

        _run(Cluster(bootstrap, setting, command_config, timeout), create)


@acls.command("delete", short_help="Delete entries.")
def delete(
    topic: Topic = None,
    group: Group = None,
    transactional_id: Transaction = None,
    cluster: TheCluster = False,
    principal: Who = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Delete the entries for exactly this resource or principal."""
    with failures_in_one_line():
        resources = _resources(topic, group, transactional_id, cluster=cluster)
        if not resources and principal is None:
            raise CommandFailed("what to delete? name a resource (--topic ...) or --principal")
        wanted = _filter(resources, principal, exact=True)

        async def remove(admin: AclAdmin) -> int:
            return sum([await admin.delete(each) for each in wanted])

        count = _run(Cluster(bootstrap, setting, command_config, timeout), remove)
        typer.echo(f"{count} deleted")


def _run(cluster: Cluster, act: Callable[[AclAdmin], Coroutine[object, None, Value]]) -> Value:
    from sharecore.admin.acls import AclAdmin

    return administered(AclAdmin, cluster, act)


def _resources(
    topic: str | None, group: str | None, transactional_id: str | None, *, cluster: bool
) -> list[tuple[int, str]]:
    from sharecore.security.acl import CLUSTER_NAME, ResourceType

    found = [
        (ResourceType.TOPIC, topic),
        (ResourceType.GROUP, group),
        (ResourceType.TRANSACTIONAL_ID, transactional_id),
        (ResourceType.CLUSTER, CLUSTER_NAME if cluster else None),
    ]
    return [(int(kind), name) for kind, name in found if name]


def _filter(
    resources: list[tuple[int, str]], principal: str | None, *, exact: bool = False
) -> list[AclFilter]:
    from sharecore.security.acl import AclFilter, PatternType

    how = PatternType.ANY if exact else PatternType.MATCH
    if not resources:
        return [AclFilter(principal=principal)]
    return [AclFilter(kind, name, how, principal) for kind, name in resources]


def _entries(
    resources: list[tuple[int, str]],
    principal: str | None,
    operations: list[str] | None,
    host: str,
    *,
    prefixed: bool,
    deny: bool,
) -> list[Acl]:
    from sharecore.security.acl import Acl, Operation, PatternType, Permission, ResourceType
    from sharecore.security.principal import Principal

    if not resources:
        raise CommandFailed("no resource; allowed: --topic, --group, --transactional-id, --cluster")
    try:
        who = str(Principal.parse(principal or ""))
    except ValueError as error:
        raise UsageFailed(f"--principal: {error}") from None
    known = {each.name.lower(): each for each in Operation if each > Operation.ANY}
    chosen = []
    for text in operations or ():
        operation = known.get(text.lower().replace("-", "_"))
        if operation is None:
            raise UsageFailed(f"--operation {text}: unknown; allowed: {', '.join(known)}")
        chosen.append(operation)
    if not chosen:
        raise CommandFailed("no --operation; allowed: such as read, write or all")
    permission = Permission.DENY if deny else Permission.ALLOW
    return [
        Acl(
            kind,
            name,
            PatternType.PREFIXED if prefixed and kind != ResourceType.CLUSTER else PatternType.LITERAL,
            who,
            host,
            operation,
            permission,
        )
        for kind, name in resources
        for operation in chosen
    ]


def _words(number: int, what: str) -> str:
    from sharecore.security.acl import Operation, PatternType, Permission, ResourceType

    kinds = {
        "resource": ResourceType,
        "pattern": PatternType,
        "operation": Operation,
        "permission": Permission,
    }
    try:
        return str(kinds[what](number).name.lower())
    except ValueError:
        return str(number)
