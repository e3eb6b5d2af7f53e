"""TLS and SASL with a broker that asks for them: Apache Kafka's."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness import java
from tests.harness.aio import in_loop
from tests.harness.broker import answers, free_port

from sharecore.admin import Admin
from sharecore.client import ShareConsumer
from sharecore.client.errors import AuthenticationFailed

USER, PASSWORD = "worker", "s3cret"
PROPERTIES = """
process.roles=broker,controller
node.id=0
log.dirs={home}/data
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:{controller}
listeners=SAFE://localhost:{port},INSIDE://localhost:{inside},CONTROLLER://localhost:{controller}
advertised.listeners=SAFE://localhost:{port},INSIDE://localhost:{inside}
listener.security.protocol.map=SAFE:SASL_SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=INSIDE
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.safe.plain.sasl.jaas.config={security}.plain.PlainLoginModule required user_{user}="{password}";
listener.name.safe.scram-sha-256.sasl.jaas.config={security}.scram.ScramLoginModule required;
listener.name.safe.scram-sha-512.sasl.jaas.config={security}.scram.ScramLoginModule required;
ssl.keystore.type=PKCS12
ssl.keystore.location={home}/broker.p12
ssl.keystore.password=changeit
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""


def keytool(home: Path, *arguments: str) -> None:
    store = ("-alias", "broker", "-keystore", "broker.p12", "-storetype", "PKCS12", "-storepass", "changeit")
    subprocess.run(["keytool", *arguments, *store], cwd=home, check=True, capture_output=True)


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Settings of a client for a broker with TLS and SASL, but for the mechanism."""
    home = tmp_path_factory.mktemp("safe")
    keytool(home, "-genkeypair", "-keyalg", "RSA", "-dname", "CN=localhost", "-ext", "SAN=DNS:localhost")
    keytool(home, "-exportcert", "-rfc", "-file", "cert.pem")
    port, inside, controller = free_port(), free_port(), free_port()
    config = home / "server.properties"
    config.write_text(
        PROPERTIES.format(
            home=home,
            port=port,
            inside=inside,
            controller=controller,
            security="org.apache.kafka.common.security",
            user=USER,
            password=PASSWORD,
        )
    )
    scram = [f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]" for bits in (256, 512)]
    java.run(
        "kafka.tools.StorageTool",
        *("format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(config), "--standalone"),
        *(part for each in scram for part in ("--add-scram", each)),
    )
    log = (home / "broker.log").open("w")
    broker = subprocess.Popen(java.command("kafka.Kafka", str(config)), stdout=log, stderr=log)
    until = time.monotonic() + 60
    while not answers(inside):
        assert broker.poll() is None, (home / "broker.log").read_text()[-4000:]
        assert time.monotonic() < until, "the broker does not start"
        time.sleep(0.1)
    yield {
        "bootstrap.servers": f"localhost:{port}",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(home / "cert.pem"),
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    broker.kill()
    broker.wait()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@in_loop
async def test_who_knows_the_password_is_let_in(safe: dict[str, str], mechanism: str) -> None:
    async with Admin({**safe, "sasl.mechanism": mechanism}) as admin:
        assert await admin.list_groups() == []


@in_loop
async def test_who_does_not_is_told_so(safe: dict[str, str]) -> None:
    wrong = {**safe, "sasl.mechanism": "SCRAM-SHA-256", "sasl.password": "guess"}
    with pytest.raises(AuthenticationFailed):
        async with Admin(wrong) as admin:
            await admin.list_groups()


@in_loop
async def test_a_certificate_of_nobody_is_refused(safe: dict[str, str]) -> None:
    settings = {key: value for key, value in safe.items() if key != "ssl.ca.location"}
    with pytest.raises(Exception, match="certificate"):
        async with Admin({**settings, "sasl.mechanism": "PLAIN"}) as admin:
            await admin.list_groups()


@in_loop
async def test_a_share_consumer_joins(safe: dict[str, str]) -> None:
    settings = {**safe, "sasl.mechanism": "PLAIN", "group.id": "safe"}
    async with ShareConsumer(settings) as consumer:
        consumer.subscribe(["nothing"])
        assert not await consumer.poll(timeout=3)
