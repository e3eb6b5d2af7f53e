"""A broker of either kind that listens with every security protocol, and takes every mechanism."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from tests.harness import java
from tests.harness.broker import ONE_NODE, QUICK_GROUPS, SHARECORE, answers, free_port
from tests.harness.secured import PASSWORD, USER

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM, "OAUTHBEARER")
_START_SECONDS_MAX = 60
_AUDIENCE, _ISSUER = "brokers", "tests"
_SECURITY = "org.apache.kafka.common.security"
_LOGINS = {
    "plain": f'{_SECURITY}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "scram-sha-256": f"{_SECURITY}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_SECURITY}.scram.ScramLoginModule required;",
    "oauthbearer": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
}


class Listeners:
    """One broker of `sharecore` or `apache`; who comes in without SASL may do everything, as may its user.

    Args:
        home: an empty directory.
        kind: `sharecore` or `apache`.
    """

    def __init__(self, home: Path, kind: str) -> None:
        self.home, self.kind = home, kind
        self.ports = {protocol: free_port() for protocol in PROTOCOLS}
        self._controller = free_port()
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._process: subprocess.Popen[bytes] | None = None

    def address(self, protocol: str) -> str:
        return f"localhost:{self.ports[protocol]}"

    def token(self) -> str:
        """Return a signed token of the user's, good for ten minutes."""
        now = int(time.time())
        content = {"sub": USER, "iss": _ISSUER, "aud": _AUDIENCE, "iat": now, "exp": now + 600}
        return jwt.encode(content, self._key, algorithm="RS256", headers={"kid": "tests"})

    def client(self, protocol: str, mechanism: str | None = None) -> dict[str, str]:
        """Return a client's settings."""
        settings = {"bootstrap.servers": self.address(protocol), "security.protocol": protocol}
        if protocol.endswith("SSL"):
            settings["ssl.ca.location"] = str(self.home / "certs/ca.pem")
        if mechanism is not None:
            settings["sasl.mechanism"] = mechanism
        if mechanism == "OAUTHBEARER":
            settings["sasl.oauthbearer.token"] = self.token()
        elif mechanism is not None:
            settings |= {"sasl.username": USER, "sasl.password": PASSWORD}
        return settings

    def java_client(self, protocol: str, mechanism: str) -> dict[str, str]:
        """The same as Kafka's Java client has them."""
        return {
            "bootstrap.servers": self.address(protocol),
            "security.protocol": protocol,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.home / "certs/ca.pem"),
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": (
                f'{_SECURITY}.scram.ScramLoginModule required username="{USER}" password="{PASSWORD}";'
            ),
        }

    def start(self) -> None:
        """Make keys and users, and start the broker."""
        subprocess.run([SHARECORE, "certs", str(self.home / "certs")], check=True, capture_output=True)
        public = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        keys = self.home / "keys.json"
        keys.write_text(json.dumps({"keys": [public | {"kid": "tests", "alg": "RS256", "use": "sig"}]}))
        settings = self._settings(keys.as_uri())
        config = self.home / "server.properties"
        users = [f"{mechanism}=[name={USER},password={PASSWORD}]" for mechanism in SCRAM]
        first = tuple(part for user in users for part in ("--add-scram", user))
        if self.kind == "sharecore":
            command = [SHARECORE, "serve", "--config", str(config), *first]
        else:
            settings |= self._apache()
            allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
            # the shared options begin with the program's own
            command = java.command("kafka.Kafka", str(config))
            command.insert(1, allowed)
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        if self.kind == "apache":
            java.run(
                "kafka.tools.StorageTool",
                *("format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(config), "--standalone", *first),
            )
        log = self.home / "broker.log"
        with log.open("w") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)
        until = time.monotonic() + _START_SECONDS_MAX
        while not answers(self.ports["PLAINTEXT"]):
            assert self._process.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < until, "the broker does not start"
            time.sleep(0.1)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _settings(self, keys: str) -> dict[str, str]:
        listeners = ",".join(f"{protocol}://localhost:{port}" for protocol, port in self.ports.items())
        settings = {
            "listeners": listeners,
            "log.dirs": str(self.home / "data"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.home / "certs/broker.pem"),
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "sasl.oauthbearer.jwks.endpoint.url": keys,
            "sasl.oauthbearer.expected.audience": _AUDIENCE,
            "sasl.oauthbearer.expected.issuer": _ISSUER,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{USER}",
            "connection.failed.authentication.delay.ms": "0",
        }
        for protocol in ("sasl_plaintext", "sasl_ssl"):
            for mechanism, login in _LOGINS.items():
                settings[f"listener.name.{protocol}.{mechanism}.sasl.jaas.config"] = login
        return settings | ONE_NODE | QUICK_GROUPS

    def _apache(self) -> dict[str, str]:
        listeners = ",".join(f"{protocol}://localhost:{port}" for protocol, port in self.ports.items())
        names = ",".join(f"{protocol}:{protocol}" for protocol in PROTOCOLS)
        handler = f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        return {
            "process.roles": "broker,controller",
            "node.id": "0",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"localhost:{self._controller}",
            "listeners": f"{listeners},CONTROLLER://localhost:{self._controller}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": f"{names},CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            **{
                f"listener.name.{protocol}.oauthbearer.sasl.server.callback.handler.class": handler
                for protocol in ("sasl_plaintext", "sasl_ssl")
            },
        }
