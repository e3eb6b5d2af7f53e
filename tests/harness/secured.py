"""Apache Kafka as a broker that asks for TLS and SASL, and refuses what its ACLs do not allow."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.harness import java
from tests.harness.broker import QUICK_GROUPS, answers, free_port
from tests.harness.clients import QUIET

USER, PASSWORD = "worker", "s3cret"
_PROPERTIES = """
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
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
{quick}
"""


class SecuredBroker:
    """One broker; whatever no ACL names is open to its user, and to whoever comes in by `inside`.

    Args:
        home: an empty directory.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._port, self._inside, self._controller = free_port(), free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def inside(self) -> str:
        """The address of the listener without TLS and SASL, whose clients may do everything."""
        return f"localhost:{self._inside}"

    @property
    def client(self) -> dict[str, str]:
        """Settings of a client, but for the mechanism."""
        return {
            "bootstrap.servers": f"localhost:{self._port}",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self._home / "cert.pem"),
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }

    def start(self) -> None:
        """Make keys and users, and start the broker."""
        self._keytool("-genkeypair", "-keyalg", "RSA", "-dname", "CN=localhost", "-ext", "SAN=DNS:localhost")
        self._keytool("-exportcert", "-rfc", "-file", "cert.pem")
        config = self._home / "server.properties"
        config.write_text(
            _PROPERTIES.format(
                home=self._home,
                port=self._port,
                inside=self._inside,
                controller=self._controller,
                security="org.apache.kafka.common.security",
                user=USER,
                password=PASSWORD,
                quick="\n".join(f"{key}={value}" for key, value in QUICK_GROUPS.items()),
            )
        )
        scram = [f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]" for bits in (256, 512)]
        java.run(
            "kafka.tools.StorageTool",
            *("format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(config), "--standalone"),
            *(part for each in scram for part in ("--add-scram", each)),
        )
        log = self._home / "broker.log"
        with log.open("w") as output:
            command = java.command("kafka.Kafka", str(config))
            self._process = subprocess.Popen(command, stdout=output, stderr=output)
        until = time.monotonic() + 60
        while not answers(self._inside):
            assert self._process.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < until, "the broker does not start"
            time.sleep(0.1)

    def keep_for(self, principal: str, kind: ResourceType, name: str) -> None:
        """From now on nobody but `principal` may do anything with a group or a topic."""
        admin = AdminClient({"bootstrap.servers": self.inside, **QUIET})
        binding = AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            principal,
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        for answer in admin.create_acls([binding]).values():
            answer.result(30)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _keytool(self, *arguments: str) -> None:
        store = ("-keystore", "broker.p12", "-storetype", "PKCS12", "-storepass", "changeit")
        command = ["keytool", *arguments, "-alias", "broker", *store]
        subprocess.run(command, cwd=self._home, check=True, capture_output=True)
