"""Stock clients and tools over TLS, with clients that say who they are."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from tests.harness import java
from tests.harness.broker import QUICK_GROUPS, SHARECORE, Broker, free_port
from tests.harness.clients import QUIET, configure_group, create_topic, produce, share_consumer
from tests.harness.java import TOOLS

ACLS = f"{TOOLS}.AclCommand"
SETTINGS = QUICK_GROUPS | {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SAFE:SASL_SSL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.safe.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_paul="planted-paul";'
    ),
    "ssl.keystore.type": "PEM",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root;User:paul;User:ANONYMOUS",
}


class Safe:
    """A broker whose listener SAFE speaks SASL over TLS; the one in the clear is for the test itself."""

    def __init__(self, home: Path) -> None:
        self.home, self.port = home, free_port()
        run("certs", str(home / "certs"))
        self.broker = Broker(
            home, "sharecore", SETTINGS | {"ssl.keystore.location": str(home / "certs/broker.pem")}
        )
        listeners = f"PLAINTEXT://127.0.0.1:{self.broker.port},SAFE://localhost:{self.port}"
        self.broker.arguments = (
            *("--set", f"listeners={listeners}"),
            *("--add-scram", "SCRAM-SHA-512=[name=root,password=planted-root]"),
        )

    @property
    def address(self) -> str:
        return f"localhost:{self.port}"

    def client(self, user: str = "root", mechanism: str = "SCRAM-SHA-512") -> dict[str, Any]:
        """Settings as librdkafka and our clients have them."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.home / "certs/ca.pem"),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": f"planted-{user}",
        }

    def java_client(self, user: str = "root", mechanism: str = "SCRAM-SHA-512") -> str:
        """A file with the settings as Java has them."""
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        settings = {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.home / "certs/ca.pem"),
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": (
                f"org.apache.kafka.common.security.{module} required "
                f'username="{user}" password="planted-{user}";'
            ),
        }
        file = self.home / f"{user}-{mechanism}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return str(file)


def run(*arguments: str, stdin: str = "") -> str:
    done = subprocess.run([SHARECORE, *arguments], input=stdin, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Safe]:
    safe = Safe(tmp_path_factory.mktemp("safe"))
    safe.broker.start()
    yield safe
    log = safe.broker.read_log()
    assert safe.broker.terminate() == 0, log
    assert "planted" not in log


@pytest.mark.parametrize(("user", "mechanism"), [("root", "SCRAM-SHA-512"), ("paul", "PLAIN")])
def test_librdkafka(safe: Safe, user: str, mechanism: str) -> None:
    topic = group = f"rd-{user}"
    create_topic(safe.broker.bootstrap, topic)
    configure_group(safe.broker.bootstrap, group, share_auto_offset_reset="earliest")
    client = safe.client(user, mechanism)
    produce(safe.address, topic, [b"a", b"b"], **client)
    with share_consumer(
        safe.address, group, [topic], **client, **{"share.acknowledgement.mode": "implicit"}
    ) as consumer:
        found: list[bytes | None] = []
        while len(found) < 2:
            found += [message.value() for message in consumer.poll(5.0)]
    assert found == [b"a", b"b"]


def test_a_wrong_password_is_told(safe: Safe) -> None:
    told: list[str] = []
    wrong: dict[str, Any] = safe.client() | {"sasl.password": "wrong"}
    wrong["error_cb"] = lambda error: told.append(str(error))
    admin = AdminClient({"bootstrap.servers": safe.address, **QUIET, **wrong})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=3)
    admin.poll(1)
    assert any("invalid credentials with SASL mechanism SCRAM-SHA-512" in text for text in told)


def test_javas_tools_and_their_users(safe: Safe) -> None:
    at = ("--bootstrap-server", safe.address, "--command-config", safe.java_client())
    users = (*at, "--entity-type", "users")
    maria = (*users, "--entity-name", "maria")
    java.run(
        "kafka.admin.ConfigCommand",
        *maria,
        "--alter",
        "--add-config",
        "SCRAM-SHA-256=[password=planted-maria]",
    )
    topics = ("--bootstrap-server", safe.address, "--list", "--command-config")
    assert java.run(f"{TOOLS}.TopicCommand", *topics, safe.java_client("maria", "SCRAM-SHA-256")) == "\n"
    java.run(f"{TOOLS}.TopicCommand", *topics, safe.java_client("paul", "PLAIN"))
    assert "maria" in run("users", "list", "-b", safe.broker.bootstrap)
    java.run("kafka.admin.ConfigCommand", *maria, "--alter", "--delete-config", "SCRAM-SHA-256")
    assert "maria" not in run("users", "list", "-b", safe.broker.bootstrap)


def test_our_own_commands_write_and_take(safe: Safe) -> None:
    file = safe.home / "writer.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in safe.client("paul", "PLAIN").items()))
    at = ("-b", safe.address, "--command-config", str(file))
    assert run("produce", "written", "a", "b", *at) == "2 records written to written\n"
    settings = [f"-X{key}={value}" for key, value in safe.client().items()]
    took = run(
        "consume", "written", "-g", "takers", "--from-beginning", "-n", "2", "-b", safe.address, *settings
    )
    assert [line.split()[-1] for line in took.splitlines()] == ["a", "b"]


def test_a_setting_that_no_client_has(safe: Safe) -> None:
    for command in (("produce", "t", "v"), ("consume", "t", "-g", "g", "-n", "1")):
        done = subprocess.run(
            [SHARECORE, *command, "-b", safe.address, "-X", "made.up=1"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "made.up" in done.stderr


def test_our_own_command_line(safe: Safe) -> None:
    file = safe.home / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in safe.client().items()))
    at = ("-b", safe.address, "--command-config", str(file))
    run("users", "add", "nora", *at, stdin="planted-nora\n")
    listed = run("users", "list", *at)
    assert {"SCRAM-SHA-256", "SCRAM-SHA-512"} == {
        line.split()[1] for line in listed.splitlines() if line.startswith("nora")
    }
    as_paul = [f"-X{key}={value}" for key, value in safe.client("paul", "PLAIN").items()]
    run("users", "delete", "nora", "-b", safe.address, *as_paul)
    assert "nora" not in run("users", "list", *at)


def test_rights_by_kafka_acls_and_by_our_command_line(safe: Safe) -> None:
    for topic in ("olgas", "others"):
        create_topic(safe.broker.bootstrap, topic)
    run("users", "add", "olga", "-b", safe.broker.bootstrap, stdin="planted-olga\n")
    acls = ("--bootstrap-server", safe.address, "--command-config", safe.java_client())
    olga = ("--allow-principal", "User:olga", "--operation", "Write", "--topic", "olgas")
    java.run(ACLS, *acls, "--add", *olga)
    client = safe.client("olga", "SCRAM-SHA-256")
    produce(safe.address, "olgas", [b"a"], **client)
    assert denied(safe.address, "others", client) == "TOPIC_AUTHORIZATION_FAILED"
    assert "olgas" in run("acls", "list", "--principal", "User:olga", "-b", safe.broker.bootstrap)

    at = ("-b", safe.broker.bootstrap)
    run("acls", "add", "--principal", "User:olga", "--operation", "all", "--topic", "oth", "--prefixed", *at)
    produce(safe.address, "others", [b"a"], **client)
    listed = java.run(ACLS, *acls, "--list", "--topic", "others", "--resource-pattern-type", "match")
    assert "patternType=PREFIXED" in listed
    run("acls", "add", "--principal", "User:*", "--operation", "write", "--topic", "others", "--deny", *at)
    assert denied(safe.address, "others", client) == "TOPIC_AUTHORIZATION_FAILED"
    assert run("acls", "delete", "--topic", "others", *at) == "1 deleted\n"
    produce(safe.address, "others", [b"a"], **client)
    java.run(ACLS, *acls, "--remove", "--force", *olga)
    assert denied(safe.address, "olgas", client) == "TOPIC_AUTHORIZATION_FAILED"


def denied(address: str, topic: str, client: dict[str, Any]) -> str:
    """Return the name of the error that a record ends with."""
    told: list[str] = []
    producer = Producer({"bootstrap.servers": address, **QUIET, **client})
    producer.produce(topic, b"x", on_delivery=lambda error, _: told.append(error.name() if error else ""))
    assert producer.flush(30) == 0
    return told[0]


def test_javas_own_clients_and_their_share_group(safe: Safe) -> None:
    create_topic(safe.broker.bootstrap, "javas")
    configure_group(safe.broker.bootstrap, "javas-group", share_auto_offset_reset="earliest")
    at = ("--bootstrap-server", safe.address, "--topic", "javas")
    settings = ("--command-config", safe.java_client("paul", "PLAIN"))
    java.run(f"{TOOLS}.ConsoleProducer", *at, *settings, stdin="one\ntwo\n")
    taken = java.run(
        f"{TOOLS}.consumer.ConsoleShareConsumer",
        *at,
        *("--group", "javas-group", "--max-messages", "2", "--timeout-ms", "30000"),
        *("--command-config", safe.java_client()),
    )
    assert {"one", "two"} <= set(taken.splitlines())
    told = java.run(
        f"{TOOLS}.consumer.group.ShareGroupCommand",
        *("--bootstrap-server", safe.address, "--command-config", safe.java_client()),
        *("--describe", "--group", "javas-group"),
    )
    assert "javas" in told


def test_quotas_by_kafka_configs(safe: Safe) -> None:
    at = ("--bootstrap-server", safe.address, "--command-config", safe.java_client())
    greta = (*at, "--entity-type", "users", "--entity-name", "greta")
    config = "kafka.admin.ConfigCommand"
    java.run(config, *greta, "--alter", "--add-config", "producer_byte_rate=1024,request_percentage=12.5")
    addresses = (*at, "--entity-type", "ips", "--entity-default")
    java.run(config, *addresses, "--alter", "--add-config", "connection_creation_rate=900")
    told = java.run(config, *greta, "--describe")
    assert "producer_byte_rate=1024.0" in told
    assert "request_percentage=12.5" in told
