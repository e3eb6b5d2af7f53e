from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.browser import Browser
from tests.harness.running import RunningBroker

from sharecore.protocol import ApiKey
from sharecore.security.acl import Operation, PatternType, Permission, ResourceType

USERS = ("alice", "bob", "carol")
SECURED = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{name}="of-{name}"' for name in USERS)
        + ";"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "sharecore.page.listener": "127.0.0.1:0",
    "sharecore.page.sessions.max": "4",
}


def start(directory: Path, settings: dict[str, str]) -> RunningBroker:
    """Return a broker with a topic `jobs`, and a group `workers` that reads it from the beginning."""
    running = RunningBroker(directory, settings).start()
    names = ("jobs", "hidden")
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    running.ask(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=5000)
    configs = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
    resources = [{"resource_type": 32, "resource_name": "workers", "configs": configs}]
    running.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources)
    return running


def allow(broker: RunningBroker, user: str, kind: ResourceType, name: str, *operations: Operation) -> None:
    """Allow a user an operation."""
    creations = [
        {
            "resource_type": kind,
            "resource_name": name,
            "resource_pattern_type": PatternType.LITERAL,
            "principal": f"User:{user}",
            "host": "127.0.0.1",
            "operation": operation,
            "permission_type": Permission.ALLOW,
        }
        for operation in operations
    ]
    answer = broker.ask(ApiKey.CREATE_ACLS, 3, creations=creations)
    assert not any(result.error_code for result in answer.results)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """alice may do everything on the page with `workers` and `jobs`, bob may only view, carol nothing."""
    running = start(tmp_path_factory.mktemp("secured"), SECURED)
    topic, group = ResourceType.TOPIC, ResourceType.GROUP
    allow(running, "alice", group, "workers", Operation.READ, Operation.DELETE, Operation.ALTER_CONFIGS)
    allow(running, "alice", topic, "jobs", Operation.READ, Operation.WRITE)
    allow(running, "alice", topic, "__share_group_state", Operation.READ)
    allow(running, "bob", group, "workers", Operation.DESCRIBE)
    allow(running, "bob", topic, "jobs", Operation.DESCRIBE)
    yield running
    running.stop()


@pytest.fixture
def browser(secured: RunningBroker) -> Browser:
    return Browser(secured.broker.page_port)
