"""Secrets are planted wherever a broker takes one, and looked for wherever it says something."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.broker import SHARECORE, Broker, free_port
from tests.harness.wire import Peer

from sharecore.protocol import ApiKey, codec

SECRET = "planted"
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_paul="planted-paul";'


def run(*arguments: str) -> str:
    """All that a command says, whether it succeeds or not."""
    done = subprocess.run(
        [SHARECORE, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        input="planted-nora\n",
    )
    return done.stdout + done.stderr


def keystore(home: Path, password: str) -> Path:
    """Return a PKCS12 file of the development certificate."""
    file = home / "broker.p12"
    pem = str(home / "certs/broker.pem")
    command = ["openssl", "pkcs12", "-export", "-in", pem, "-inkey", pem, "-out", str(file)]
    subprocess.run([*command, "-passout", f"pass:{password}"], check=True, capture_output=True, timeout=30)
    return file


class Planted:
    """A broker with secrets everywhere, which logs all that it can."""

    def __init__(self, home: Path) -> None:
        self.home, self.port = home, free_port()
        run("certs", str(home / "certs"))
        self.settings = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SAFE:SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.safe.plain.sasl.jaas.config": JAAS,
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(keystore(home, "planted-store")),
            "ssl.keystore.password": "planted-store",
        }
        self.broker = Broker(home, "sharecore", self.settings)
        listeners = f"PLAINTEXT://127.0.0.1:{self.broker.port},SAFE://localhost:{self.port}"
        self.broker.arguments = (
            *("--set", f"listeners={listeners}", "--log-level", "debug"),
            *("--add-scram", "SCRAM-SHA-512=[name=root,password=planted-root]"),
        )

    def ask(self, key: ApiKey, version: int, **fields: object) -> str:
        """Return an answer as text."""
        with Peer(self.broker.port) as peer:
            messages = codec(key, version)
            peer.socket.sendall(messages.write_request(1, "planted?", fields))
            correlation, rest = peer.receive()
            return str(messages.read_response(correlation.to_bytes(4, "big") + rest)[1])

    def alter(self, name: str, value: str) -> str:
        change = {"name": name, "config_operation": 0, "value": value}
        wanted = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        return self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[wanted], validate_only=False)

    def say(self) -> Iterator[str]:
        """All that can be heard of it from outside, but for its log."""
        same = str(keystore(self.home, "planted-changed"))
        prefix = "listener.name.safe.ssl.keystore"
        yield self.alter(f"{prefix}.password", "planted-wrong")
        wanted = {"resource_type": 4, "resource_name": "1"}
        changes = [
            {"name": f"{prefix}.{name}", "config_operation": 0, "value": value}
            for name, value in (("password", "planted-changed"), ("location", same))
        ]
        yield self.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            resources=[{**wanted, "configs": changes}],
            validate_only=False,
        )
        for name in ("listener.name.safe.ssl.key.password", "listener.name.safe.plain.sasl.jaas.config"):
            yield self.alter(name, f"{JAAS} planted-{name}")
        for name in ("1", ""):
            yield self.ask(
                ApiKey.DESCRIBE_CONFIGS,
                4,
                resources=[{"resource_type": 4, "resource_name": name, "configuration_keys": None}],
                include_synonyms=True,
                include_documentation=True,
            )
        at = ("-b", self.broker.bootstrap)
        yield run("users", "add", "nora", *at)
        yield run("users", "list", *at)
        yield self.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=None)
        for password in ("planted-paul", "planted-guess"):
            client = self.home / f"{password}.properties"
            client.write_text(
                "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=paul\n"
                f"ssl.ca.location={self.home / 'certs/ca.pem'}\nsasl.password={password}\n"
            )
            yield run("users", "list", "-b", f"localhost:{self.port}", "--command-config", str(client))
            yield run("groups", "list", "-b", f"localhost:{self.port}", "--command-config", str(client))

    def look(self) -> Iterator[str]:
        """What commands tell of its directory once it has ended, and of settings that cannot stand."""
        data = self.home / "data"
        yield run("store", "check", str(data))
        yield run("state", "dump", "--data-dir", str(data))
        file = self.home / "server.properties"
        for name, value in (
            ("ssl.keystore.password", "planted-wrong"),
            ("ssl.key.password", "planted-wrong"),
            ("listener.name.safe.plain.sasl.jaas.config", 'X required user_a="planted'),
            ("delegation.token.secret.key", "planted-key"),
        ):
            settings = {**self.settings, "listeners": f"SAFE://localhost:{self.port}", name: value}
            file.write_text("".join(f"{key}={text}\n" for key, text in settings.items()))
            yield run("config", "check", str(file))
            yield run(
                "serve", "-c", str(file), "--data-dir", str(self.home / "other"), "-s", "num.partitions=x"
            )


@pytest.mark.timeout(180)
def test_nothing_that_is_secret_is_said(tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    planted.broker.start()
    said = list(planted.say())
    assert planted.broker.terminate() == 0
    said += planted.look()
    log = planted.broker.read_log()
    assert "DEBUG" in log
    assert "paul" in log
    told = [text for text in (*said, *log.splitlines()) if SECRET in text.replace("planted?", "")]
    assert told == []
    assert [text for text in (*said, log) if "Traceback" in text] == []
