"""What each client needs, installed into build/clients from its ecosystem's registry, once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("CLIENTS_BUILD", ROOT / "build/clients"))
_COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_JAVA = (
    *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


@dataclass(frozen=True)
class Client:
    """A client of clients.toml, and how its program runs."""

    name: str
    version: str
    kind: str
    ecosystem: str
    program: str
    ran: str
    needs: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def topic(self) -> str:
        """A name for topics and groups."""
        words = "".join(letter if letter.isalnum() else "-" for letter in self.name.lower()).split("-")
        return "-".join(word for word in words if word)

    @property
    def copied(self) -> str:
        """The topic that a program copies to."""
        return f"{self.topic}-out"


def clients() -> list[Client]:
    """Return what clients.toml has."""
    entries: list[dict[str, Any]] = tomllib.loads((HERE / "clients.toml").read_text())["client"]
    made = []
    for each in entries:
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in each.items()
        }
        made.append(Client(**fields))
    return made


def prepare(client: Client) -> list[str]:
    """Install a client where it is not yet; return the command that runs its program."""
    return _WAYS[client.ecosystem](client)


def _shell(client: Client) -> list[str]:
    program = client.program.removesuffix(".sh")
    assert shutil.which(program), f"{program} is missing: apt-get install {program}"
    return ["bash", str(HERE / "shell" / client.program)]


def _python(client: Client) -> list[str]:
    name = hashlib.sha256(" ".join(client.needs).encode()).hexdigest()[:12]
    home = BUILD / "python" / name

    def install() -> None:
        _run([sys.executable, "-m", "venv", "--clear", str(home)])
        _run([str(home / "bin/pip"), "install", "-q", *client.needs])

    _once(home, name, install)
    return [str(home / "bin/python"), "-u", str(HERE / "python" / client.program)]


def _node(client: Client) -> list[str]:
    home = BUILD / "node"
    package = (HERE / "node/package.json").read_text()

    def install() -> None:
        (home / "package.json").write_text(package)
        _run(["npm", "install", "--silent", "--no-package-lock", "--no-audit"], home)

    _once(home, package, install)
    # a module finds packages next to it
    program = home / client.program
    shutil.copy(HERE / "node" / client.program, program)
    return ["node", str(program)]


def _go(client: Client) -> list[str]:
    program, folder = BUILD / "go" / client.program, HERE / "go" / client.program
    # one with many dependencies of its own is a module of its own
    home = folder if (folder / "go.mod").exists() else HERE / "go"
    _run(["go", "build", "-o", str(program), str(folder)], home)
    return [str(program)]


def _java(client: Client) -> list[str]:
    folder, _, program = client.program.partition("/")
    home, pom = BUILD / "java" / folder, HERE / "java" / folder / "pom.xml"

    def install() -> None:
        _run(["mvn", "-q", "-B", "-ntp", _COPY_JARS, "-f", str(pom), f"-DoutputDirectory={home}"])

    _once(home, pom.read_text(), install)
    return ["java", *_JAVA, "-cp", f"{home}/*", str(HERE / "java" / folder / program)]


def _rust(client: Client) -> list[str]:
    home = BUILD / "rust"
    command = ["cargo", "build", "-q", "--release", "--locked", "--bin", client.program]
    _run([*command, "--target-dir", str(home)], HERE / "rust")
    return [str(home / "release" / client.program)]


_WAYS = {"shell": _shell, "python": _python, "node": _node, "go": _go, "java": _java, "rust": _rust}


def _once(home: Path, inputs: str, install: Callable[[], None]) -> None:
    """Install into a folder unless that was done with the same inputs."""
    stamp = home / ".installed"
    if stamp.exists() and stamp.read_text() == inputs:
        return
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    install()
    stamp.write_text(inputs)


def _run(command: list[str], home: Path | None = None) -> None:
    done = subprocess.run(command, cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
