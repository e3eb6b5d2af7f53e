"""Nodes ask each other, and the cluster, over SASL and TLS, with the right to and without (`make tier`)."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.broker import SHARECORE, Broker, free_port
from tests.harness.clients import configure_group, create_topic, produce, settle, share_consumer
from tests.harness.tier import LIBS, SMALL, TIER, wait_until

GROUPS = ("a", "b", "c", "d")
"""Of so many, some are coordinated by each node."""
_numbers = itertools.count()


SAFE = free_port()
"""Where the cluster speaks SASL over TLS."""
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certificates")
    subprocess.run([SHARECORE, "certs", str(made)], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, certificates: Path) -> Iterator[Broker]:
    settings = SMALL | {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.safe.plain.sasl.jaas.config": f'{_PLAIN} user_node="let-me-in";',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "broker.pem"),
    }
    broker = Broker(tmp_path_factory.mktemp("cluster"), "apache", settings, libs=LIBS)
    broker.environment["APACHE_LISTENERS"] = f"SAFE:{SAFE}:{SAFE}:SASL_SSL"
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def topic(cluster: Broker) -> str:
    """Four partitions with ten records each."""
    name = f"t{next(_numbers)}"
    create_topic(cluster.bootstrap, name, 4)
    for partition in range(4):
        produce(cluster.bootstrap, name, [b"x"] * 10, partition)
    return name


def start(
    home: Path, cluster: Broker, trusted: str, certificates: Path | None = None
) -> Iterator[list[Broker]]:
    """Two nodes whose user is `node`; `trusted` may do everything, as may who does not say who it is.

    Args:
        certificates: has all go over TLS, from node to node and to the cluster.
    """
    nodes = []
    tier = TIER | {"sharecore.tier.state.topic": f"__secured-{next(_numbers)}"}
    inter = "sharecore.tier.inter.node."
    protocol, tls = "SASL_PLAINTEXT", dict[str, str]()
    upstream: tuple[str, ...] = ("--upstream", cluster.bootstrap)
    if certificates is not None:
        authority = str(certificates / "ca.pem")
        protocol, upstream = "SASL_SSL", ("--upstream", f"127.0.0.1:{SAFE}", *safely(certificates))
        tls = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates / "broker.pem"),
            f"{inter}ssl.ca.location": authority,
        }
    for number in (1, 2):
        node = Broker(home / f"node-{number}", "sharecore", tier | {"node.id": str(number)})
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{node.port},NODES://127.0.0.1:{free_port()}",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,NODES:{protocol}",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{trusted};User:ANONYMOUS",
            f"{inter}listener.name": "NODES",
            f"{inter}sasl.mechanism": "SCRAM-SHA-256",
            f"{inter}sasl.username": "node",
            f"{inter}sasl.password": "secret",
        } | tls
        user = ("--add-scram", "SCRAM-SHA-256=[name=node,password=secret]")
        given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        node.arguments = (*upstream, *user, *given)
        nodes.append(node)
    try:
        for node in nodes:
            node.start()
        wait_until(nodes[1], "has 2 of 4 slots, gives up 0 and gets 0")
        yield nodes
    finally:
        for node in nodes:
            node.kill()


def safely(certificates: Path, password: str = "let-me-in") -> list[str]:
    """Arguments that reach the cluster over TLS."""
    settings = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(certificates / "ca.pem"),
        "sasl.mechanism": "PLAIN",
        "sasl.username": "node",
        "sasl.password": password,
    }
    return [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]


@pytest.mark.parametrize("over_tls", [False, True])
@pytest.mark.timeout(300)
def test_groups_work_whichever_node_coordinates_them(
    tmp_path: Path, cluster: Broker, topic: str, certificates: Path, over_tls: bool
) -> None:
    for first, second in start(tmp_path, cluster, "node", certificates if over_tls else None):
        for group in GROUPS:
            configure_group(first.bootstrap, group, share_auto_offset_reset="earliest")
            with share_consumer(first.bootstrap, group, [topic]) as consumer:
                settle(consumer, 40)
            describe = [SHARECORE, "groups", "-b", second.bootstrap, "describe", group]
            told = subprocess.run(describe, capture_output=True, text=True, check=True).stdout
            lines = [line.split() for line in told.splitlines() if line.startswith(f"{topic}-")]
            assert lines == [[f"{topic}-{partition}", "10", "0"] for partition in range(4)]
        assert "cannot reach node" not in first.read_log() + second.read_log()


@pytest.mark.timeout(300)
def test_a_user_without_the_right_is_refused_and_its_node_says_what_it_needs(
    tmp_path: Path, cluster: Broker, topic: str
) -> None:
    for first, second in start(tmp_path, cluster, "somebody"):
        for group in GROUPS[:2]:
            configure_group(first.bootstrap, group, share_auto_offset_reset="earliest")
            with share_consumer(first.bootstrap, group, [topic]) as consumer:
                consumer.poll(3)
        said = first.read_log() + second.read_log()
        assert "refuses share state to this one: give its user CLUSTER_ACTION on the cluster" in said


@pytest.mark.timeout(300)
def test_operators_reach_the_cluster_over_tls_and_are_told_what_is_wrong(
    cluster: Broker, certificates: Path
) -> None:
    def status(*arguments: str) -> str:
        command = [SHARECORE, "tier", "status", "--upstream", f"127.0.0.1:{SAFE}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60).stderr

    assert "there is no such tier" in status(*safely(certificates))
    assert "Authentication failed" in status(*safely(certificates, "guessed"))
    given = safely(certificates)
    at = next(place for place, each in enumerate(given) if "ca.location" in each)
    stranger = given[: at - 1] + given[at + 1 :]
    assert "certificate" in status(*stranger)
