"""What is done to a broker, and which tools look at it afterwards, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from tests.harness.java import TOOLS
from tests.interop.tools.members import Members

_MAINS = {
    "kafka-share-groups": f"{TOOLS}.consumer.group.ShareGroupCommand",
    "kafka-consumer-groups": f"{TOOLS}.consumer.group.ConsumerGroupCommand",
    "kafka-groups": f"{TOOLS}.GroupsCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
}


class Tool(NamedTuple):
    """One run of a tool; `command` is what follows the address of the broker on its command line."""

    name: str
    command: str

    @property
    def main(self) -> str:
        return _MAINS[self.name]


QUICK = {
    f"group.{kind}.{bound}heartbeat.interval.ms": "500"
    for kind in ("share", "consumer")
    for bound in ("", "min.")
}
"""Members hear of their assignment with their second heartbeat."""


class Do(NamedTuple):
    """A change of the broker's state by clients."""

    action: Callable[[Members], None]


Scenario = Iterator[Tool | Do]


def share(*commands: str) -> Scenario:
    return (Tool("kafka-share-groups", command) for command in commands)


def consumer(*commands: str) -> Scenario:
    return (Tool("kafka-consumer-groups", command) for command in commands)


def groups(*commands: str) -> Scenario:
    return (Tool("kafka-groups", command) for command in commands)


def configs(*commands: str) -> Scenario:
    return (Tool("kafka-configs", f"{command} --entity-type groups") for command in commands)


def views(selection: str) -> Scenario:
    """Every way to describe share groups."""
    for part in ("", " --offsets", " --members", " --state"):
        for detail in ("", " --verbose"):
            yield from share(f"--describe {selection}{part}{detail}")


_RESETS = ("--to-earliest", "--to-latest", "--to-datetime 2023-11-14T22:13:25.000")


def resets() -> Scenario:
    """Every target of share groups, planned and done, over every scope."""
    for target in _RESETS:
        for scope in ("--topic orders", "--topic orders:0,2", "--all-topics", "--topic orders --topic bills"):
            yield from share(f"--reset-offsets --group shop {scope} {target} --dry-run")
        yield from share(
            f"--reset-offsets --group shop --topic orders:1 {target} --execute", "--describe --group shop"
        )
        yield from share(
            f"--reset-offsets --group shop --all-topics {target} --execute", "--describe --group shop"
        )
    yield from share(
        "--reset-offsets --group shop --topic orders --to-datetime 2033-01-01T00:00:00.000 --execute",
        "--reset-offsets --group shop --topic orders --to-datetime 2023-11-14T22:13:25.000+02:00 --dry-run",
        "--reset-offsets --group shop --topic orders --to-datetime yesterday --dry-run",
        "--reset-offsets --group shop --topic other --to-earliest --dry-run",
        "--reset-offsets --group shop --topic nowhere --to-earliest --dry-run",
        "--reset-offsets --group shop --topic orders:7 --to-earliest --execute",
        "--reset-offsets --group shop --topic orders:x --to-earliest --execute",
        "--reset-offsets --group fresh --topic orders --to-latest --dry-run",
        "--reset-offsets --group fresh --topic orders --to-latest --execute",
        "--describe --group fresh",
        "--describe --group fresh --state --verbose",
    )


_BAD = (
    "",
    "--list --describe",
    "--list --nonsense",
    "--list --state Wrong",
    "--list --state Stable,Wrong",
    "--list --group shop",
    "--members",
    "--describe",
    "--describe --members --offsets --group shop",
    "--describe --group shop --all-groups",
    "--describe --group shop --timeout 0",
    "--delete",
    "--delete --group shop --topic orders",
    "--delete-offsets --group shop",
    "--delete-offsets --topic orders",
    "--delete-offsets --group shop --group fresh --topic orders",
    "--reset-offsets --group shop",
    "--reset-offsets --topic orders --to-earliest",
    "--reset-offsets --group shop --to-earliest --dry-run",
    "--reset-offsets --group shop --topic orders --dry-run",
    "--reset-offsets --group shop --topic orders --to-earliest",
    "--reset-offsets --group shop --topic orders --to-earliest --dry-run --execute",
    "--reset-offsets --group shop --topic orders --to-earliest --to-latest --dry-run",
    "--reset-offsets --group shop --group fresh --topic orders --to-earliest --dry-run",
    "--reset-offsets --all-groups --topic orders --to-earliest --dry-run",
    "--reset-offsets --group shop --topic orders --all-topics --to-earliest --dry-run",
    "--version",
    "--help",
)


def nothing_yet() -> Scenario:
    yield from share("--list", "--list --state", "--list --state Empty", "--describe --all-groups")
    yield from views("--group nobody")
    yield from share(
        "--describe --group nobody --group noone",
        "--delete --group nobody",
        "--delete --all-groups",
        "--delete-offsets --group nobody --topic orders",
        "--reset-offsets --group nobody --all-topics --to-earliest --dry-run",
    )


def topics() -> Scenario:
    yield Do(lambda members: members.topic("orders", 3, 10))
    yield Do(lambda members: members.topic("bills", 1, 5))
    yield Do(lambda members: members.topic("other", 1, 5))
    for group in ("shop", "mail"):
        yield from configs(f"--alter --entity-name {group} --add-config share.auto.offset.reset=earliest")


def share_groups() -> Scenario:
    """The life of share groups, looked at with every option of kafka-share-groups."""
    yield from nothing_yet()
    yield from topics()
    yield Do(lambda members: members.share("shop", ["orders", "bills"], 35))
    yield Do(lambda members: members.share("mail", ["bills"], 5))
    yield from share("--list", "--list --state", "--list --state Stable", "--list --state stable,empty")
    yield from share("--list --state Empty", "--list --state Dead")
    yield from views("--group shop")
    yield from views("--group shop --group mail")
    yield from views("--all-groups")
    yield from share(
        "--delete --group shop",
        "--delete --group shop --group nobody",
        "--delete-offsets --group shop --topic orders",
        "--reset-offsets --group shop --topic orders --to-earliest --dry-run",
        "--reset-offsets --group shop --topic orders --to-earliest --execute",
    )
    yield Do(lambda members: members.leave("shop"))
    yield Do(lambda members: members.produce("orders", 3, range(10, 14)))
    yield from share("--list --state", "--list --state Empty")
    yield from views("--group shop")
    yield from resets()
    yield from share(
        "--delete-offsets --group shop --topic other",
        "--delete-offsets --group shop --topic nowhere",
        "--delete-offsets --group shop --topic bills --topic nowhere",
        "--describe --group shop",
        "--delete-offsets --group shop --topic orders",
        "--delete-offsets --group shop --topic orders",
        "--describe --group shop",
        "--describe --group shop --state",
    )
    yield from share(*_BAD)
    yield Do(lambda members: members.leave("mail"))
    yield from share(
        "--delete --group shop --group nobody",
        "--list --state",
        "--delete --all-groups",
        "--list",
        "--describe --group shop",
    )


def group_configs() -> Scenario:
    """kafka-configs on groups: each key, its limits, what is wrong with a value, and all the ways to look."""
    at_limits = {
        "share.assignment.interval.ms": (-1, 0, 15000, 15001),
        "share.delivery.count.limit": (1, 2, 10, 11),
        "share.heartbeat.interval.ms": (4999, 5000, 15000, 15001),
        "share.partition.max.record.locks": (99, 100, 4000, 4001),
        "share.record.lock.duration.ms": (999, 14999, 15000, 60000, 60001),
        "share.session.timeout.ms": (44999, 45000, 60000, 60001),
        "consumer.assignment.interval.ms": (-1, 0, 15000, 15001),
        "consumer.heartbeat.interval.ms": (4999, 5000, 15000, 15001),
        "consumer.session.timeout.ms": (44999, 45000, 60000, 60001),
        "share.renew.acknowledge.enable": ("false", "maybe"),
        "share.isolation.level": ("read_committed", "serializable"),
        "share.auto.offset.reset": (
            "earliest",
            "by_duration:PT1H",
            "by_duration:1h",
            "by_duration:-PT1S",
            "none",
        ),
        "no.such.key": (1,),
    }
    for key, values in at_limits.items():
        for value in values:
            yield from configs(f"--alter --entity-name g --add-config {key}={value}")
    yield from configs(
        "--describe --entity-name g",
        "--describe --entity-name g --all",
        "--describe",
        "--describe --entity-name none-such",
        "--alter --entity-name g --delete-config share.isolation.level,share.auto.offset.reset",
        "--alter --entity-name g --delete-config share.isolation.level",
        "--alter --entity-name g --delete-config no.such.key",
        "--alter --entity-name h --add-config share.heartbeat.interval.ms=15000,share.session.timeout.ms=x",
        "--alter --entity-name h --add-config share.heartbeat.interval.ms=[6000],share.isolation.level=[x]",
        "--alter --entity-default --add-config share.isolation.level=read_committed",
        "--describe",
        "--describe --all",
    )


def all_kinds() -> Scenario:
    """kafka-groups and kafka-consumer-groups on groups of every type."""
    lists = (
        "--list",
        "--list --share",
        "--list --consumer",
        "--list --group-type share",
        "--list --group-type classic",
        "--list --group-type consumer",
        "--list --group-type Share --protocol share",
        "--list --group-type simple",
        "--list --protocol consumer",
        "--list --protocol share",
        "--list --share --consumer",
        "--list --streams",
        "",
    )
    yield from groups(*lists)
    yield from topics()
    yield Do(lambda members: members.plain("old", "orders", "classic", {0: 4, 1: 10}))
    yield Do(lambda members: members.plain("new", "orders", "consumer", {0: 3, 2: 6}))
    yield Do(lambda members: members.share("mail", ["bills"], 5))
    yield from groups(*lists)
    yield from consumer(
        "--list",
        "--list --state",
        "--list --type",
        "--list --state Stable --type consumer",
        "--list --type share",
    )
    yield from share("--describe --group old", "--delete --group new", "--list")
    for group in ("old", "new", "mail", "nobody"):
        for part in (
            "",
            " --offsets",
            " --members",
            " --members --verbose",
            " --state",
            " --offsets --verbose",
        ):
            yield from consumer(f"--describe --group {group}{part}")
    yield from consumer(
        "--describe --all-groups --state",
        "--delete --group old",
        "--delete --group new",
        "--delete --group mail",
        "--delete-offsets --group new --topic orders",
        "--reset-offsets --group new --topic orders --to-earliest --execute",
    )
    for group in ("old", "new"):
        yield Do(partial(_leave, group))
        yield from consumer(f"--describe --group {group}", f"--describe --group {group} --state")
        for target in (
            *_RESETS,
            "--to-current",
            "--to-offset 5",
            "--to-offset 100",
            "--shift-by 2",
            "--shift-by -3",
            "--by-duration PT1H",
        ):
            yield from consumer(
                f"--reset-offsets --group {group} --topic orders {target} --dry-run",
                f"--reset-offsets --group {group} --topic orders:0 {target} --execute",
            )
        yield from consumer(
            f"--describe --group {group}",
            f"--reset-offsets --group {group} --all-topics --to-latest --execute",
            f"--delete-offsets --group {group} --topic orders:1",
            f"--delete-offsets --group {group} --topic bills",
            f"--describe --group {group}",
            f"--delete --group {group} --group nobody",
            "--list --state",
        )
    yield from groups(*lists)


def in_brief() -> Scenario:
    """One group's life, with every kind of command once."""
    yield from nothing_yet()
    yield from topics()
    yield Do(lambda members: members.share("shop", ["orders", "bills"], 35))
    yield from share("--list --state", "--delete --group shop")
    yield from views("--group shop")
    yield Do(lambda members: members.leave("shop"))
    yield from share(
        "--reset-offsets --group shop --topic orders:0,2 --to-datetime 2023-11-14T22:13:25.000 --dry-run",
        "--reset-offsets --group shop --all-topics --to-earliest --execute",
        "--describe --group shop",
        "--delete-offsets --group shop --topic orders --topic nowhere",
        "--describe --all-groups --state --verbose",
        "--delete --group shop --group nobody",
        "--list",
    )
    yield from groups("--list")
    yield from configs(
        "--alter --entity-name shop --add-config share.session.timeout.ms=44999",
        "--alter --entity-name shop --add-config consumer.session.timeout.ms=50000",
        "--describe --entity-name shop",
    )


class Setting(NamedTuple):
    """A scenario and the brokers that it needs."""

    scenario: Callable[[], Scenario]
    settings: Mapping[str, str]


SCENARIOS = {
    "share-groups": Setting(share_groups, QUICK),
    "group-configs": Setting(group_configs, {}),
    "all-kinds": Setting(all_kinds, QUICK),
    "in-brief": Setting(in_brief, QUICK),
}


def _leave(group: str, members: Members) -> None:
    members.leave(group)
