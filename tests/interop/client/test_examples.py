"""The examples run, and print what the documentation shows."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

from tests.harness.broker import ROOT, SHARECORE, Broker
from tests.harness.clients import configure_group, create_topic, produce

from sharecore.admin import BlockingAdmin, Target

EXAMPLES = ROOT / "examples/client"
DOCUMENTS = "".join((ROOT / name).read_text() for name in ("docs/client.md", "docs/admin.md"))
SECONDS_MAX = 60


def shown(name: str) -> list[str]:
    """The output of an example that the documentation shows behind its text."""
    text = (EXAMPLES / f"{name}.py").read_text()
    _, found, after = DOCUMENTS.partition(f"```python\n{text}```\n")
    assert found, f"the documentation does not print examples/client/{name}.py as it is"
    block = re.match(r"\s*```console\n\$ .*\n((?:.*\n)*?)```", after)
    assert block is not None, f"no output behind examples/client/{name}.py"
    return block[1].splitlines()


def printed(command: list[str], lines: int) -> list[str]:
    """The first lines that an endless program prints; it is then interrupted, and has to end well."""
    program = subprocess.Popen(
        command,
        cwd=EXAMPLES,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ,
        # tests that run in the background of a shell ignore it, and so would the program
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert program.stdout is not None
        told = [program.stdout.readline().rstrip("\n") for _ in range(lines)]
        # what it acknowledged last is on its way
        time.sleep(0.5)
        program.send_signal(signal.SIGINT)
        program.wait(SECONDS_MAX)
        return told
    finally:
        program.kill()
        program.wait()


def again(broker: Broker) -> None:
    with BlockingAdmin(bootstrap_servers=broker.bootstrap) as admin:
        admin.reset(admin.plan_reset("myshare", Target.earliest()))


def test_examples_print_what_the_documentation_shows(own_broker: Broker) -> None:
    broker = own_broker
    create_topic(broker.bootstrap, "foo")
    configure_group(broker.bootstrap, "myshare", share_auto_offset_reset="earliest")
    produce(broker.bootstrap, "foo", [b"7", b"eight", b"9"])
    # one is enough to see that they run on Apache Kafka as well
    for name in ("each_record",) if broker.kind == "apache" else ("batch", "until_error", "each_record"):
        wanted = shown(name)
        assert printed([sys.executable, f"{name}.py", broker.bootstrap], len(wanted)) == wanted
        again(broker)
    wanted = shown("squares")
    command = [SHARECORE, "work", "squares:square", "-b", broker.bootstrap]
    assert sorted(printed(command, len(wanted))) == sorted(wanted)
    done = subprocess.run(
        [sys.executable, "administer.py", broker.bootstrap],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    if broker.kind == "apache":  # whose start offset is behind what is settled; lag tells the same
        told = [re.sub(r"(start offset|from) \d", r"\1 1", line) for line in told]
    assert told == shown("administer")
