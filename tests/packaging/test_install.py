"""What a user installs: the wheel in an empty environment, first alone, then with its extras."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import pytest
import tomllib
import typer
from tests.harness.blocks import PAGES, Block, blocks
from tests.harness.broker import free_port
from tests.harness.clients import create_topic, produce
from tests.harness.examples import Examples, shown
from tests.harness.tour import steps_in

from sharecore.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MARK = "in an empty environment"
"""On the line before a block of commands: they run here, each block on a broker of its own."""
ANY_ORDER = f"{MARK}, lines in any order"
PYTHON = os.environ.get("INSTALL_PYTHON", sys.executable)
ALL_COMMANDS = (
    "from sharecore.cli.app import _COMMANDS, _load\nfor name in _COMMANDS: _load(name); print(name)"
)


class Environment:
    """A virtual environment with nothing but what was installed into it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.bin = home / "venv/bin"
        subprocess.run([PYTHON, "-m", "venv", home / "venv"], check=True)
        unwanted = {"PYTHONPATH", "SHARECORE", "VIRTUAL_ENV"}
        self.variables = {name: value for name, value in os.environ.items() if name not in unwanted}
        self.variables["PATH"] = f"{self.bin}:{self.variables['PATH']}"

    def install(self, *requirements: str) -> None:
        self.run("python", "-m", "pip", "install", "-q", "--no-compile", *requirements)

    def ended(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, whatever that is."""
        return subprocess.run(
            command,
            cwd=self.home,
            env=self.variables | variables,
            text=True,
            timeout=100,
            capture_output=True,
            check=False,
        )

    @contextmanager
    def started(self, *command: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
        """Start a command, which is killed at the end."""
        process = subprocess.Popen(
            command,
            cwd=self.home,
            env=self.variables | variables,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def run(self, *command: str, **variables: str) -> str:
        """Run a command that has to succeed; return its output."""
        ended = self.ended(*command, **variables)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
        return ended.stdout


def wheel_with(extras: str) -> str:
    """Return the requirement of the wheel that was built, with the extras that `sharecore[...]` names."""
    (wheel,) = (ROOT / "dist").glob("sharecore-*.whl")
    named = re.search(r"sharecore(\[[\w,]+\])", extras)
    return f"sharecore{named[1] if named else ''} @ {wheel.as_uri()}"


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("install"))
    environment.install(wheel_with("sharecore"), "pytest")
    return environment


@pytest.fixture
def broker(empty: Environment) -> Iterator[str]:
    with empty.started(
        "sharecore", "serve", "--ephemeral", "--print-address", "--stop-with-stdin"
    ) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["bootstrap_server"]


def test_every_command_loads_without_an_extra(empty: Environment) -> None:
    commands = empty.run("python", "-c", ALL_COMMANDS).split()
    assert {"serve", "produce", "consume", "work", "groups", "dlq", "top"} <= set(commands)


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("certs made", "broker"),
        ("dashboard -b localhost:1", "page"),
        ("serve --port 0 --data-dir made -s sharecore.page.listener=127.0.0.1:0", "page"),
        ("spark lag -b localhost:1 --out made", "spark"),
    ],
)
def test_a_command_of_an_extra_says_what_to_run(empty: Environment, command: str, extra: str) -> None:
    ended = empty.ended("sharecore", *command.split())
    assert ended.returncode in (1, 2)
    (line,) = [line for line in ended.stderr.splitlines() if "pip install" in line]
    assert re.search(rf"pip install ['\"]sharecore\[{extra}\]['\"]$", line), line
    assert "Traceback" not in ended.stderr


def test_records_are_written_and_worked_off_without_an_extra(empty: Environment, broker: str) -> None:
    (empty.home / "work.py").write_text(
        "from sharecore.client import Record, worker\n\n\n"
        '@worker("jobs", group_id="workers")\n'
        "def done(record: Record) -> None:\n"
        "    print(record.value.decode(), flush=True)\n"
    )
    options = "--group", "readers", "--from-beginning", "--max", "1", "-b", broker
    assert "2 records" in empty.run("sharecore", "produce", "-b", broker, "jobs", "one", "two")
    assert "one" in empty.run("sharecore", "consume", "jobs", *options)
    assert "readers" in empty.run("sharecore", "groups", "list", "-b", broker)
    with empty.started("sharecore", "work", "work:done", "-b", broker) as worker:
        assert worker.stdout is not None
        assert [worker.stdout.readline().strip() for _ in range(2)] == ["one", "two"]


def test_the_tests_of_the_page_pass(empty: Environment) -> None:
    page = (ROOT / "docs/testing.md").read_text()
    files = re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```", page, re.DOTALL)
    assert [name for name, _ in files] == ["jobs.py", "test_jobs.py"]
    for name, text in files:
        (empty.home / name).write_text(text)
    assert "1 passed" in empty.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_jobs.py")
    (rest,) = re.findall(r"## Without pytest\n\n```python\n(.*?)```", page, re.DOTALL)
    assert empty.run("python", "-c", rest).startswith("127.0.0.1:")


def test_the_programs_of_the_producers_page_run(empty: Environment, broker: str) -> None:
    page = (ROOT / "docs/producer.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(programs) >= 3
    for program in programs:
        assert "localhost:9092" in program
        empty.run("python", "-c", program.replace("localhost:9092", broker))
    (shown,) = re.findall(r"```console\n\$ cat jobs.jsonl\n(.*?)\$ (.*?)\n(.*?)```", page, re.DOTALL)
    lines, command, printed = shown
    (empty.home / "jobs.jsonl").write_text(lines)
    assert empty.run(*command.split(), "-b", broker) == printed


def test_the_examples_of_the_pages_print_what_the_pages_show(empty: Environment, broker: str) -> None:
    examples = Examples(broker, empty.bin, empty.variables)
    for name in ("batch", "until_error", "each_record"):
        assert examples.consumer(name) == shown(name)
    assert sorted(examples.worker("squares", "squares:square")) == sorted(shown("squares"))
    assert examples.program("administer") == shown("administer")


def test_the_program_of_the_schedules_page_runs(empty: Environment, broker: str) -> None:
    create_topic(broker, "schedules")
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/schedules.md").read_text(), re.DOTALL)
    empty.run("python", "-c", program.replace("localhost:9092", broker))
    listed = empty.run("sharecore", "schedules", "list", "-b", broker)
    assert "reminder-7" in listed
    assert "tick" not in listed


@pytest.mark.parametrize("name", ["worker_confluent.py", "worker_sharecore.py"])
def test_a_worker_of_the_clients_page_gets_the_jobs(empty: Environment, broker: str, name: str) -> None:
    create_topic(broker, "jobs")
    empty.run(
        "sharecore", "groups", "config", "workers", "--set", "share.auto.offset.reset=earliest", "-b", broker
    )
    produce(broker, "jobs", [b"one", b"two", b"three"])
    with empty.started("python", "-u", str(ROOT / "examples/clients" / name), broker) as worker:
        assert worker.stdout is not None
        assert [worker.stdout.readline().strip() for _ in range(3)] == ["one", "two", "three"]


def test_the_readmes_worker_prints_what_the_readme_shows(empty: Environment, broker: str) -> None:
    shown = [each.text for each in blocks() if each.page == "README.md" and not each.in_tour]
    program, transcript = shown[:2]
    (empty.home / "jobs.py").write_text(program)
    sent, worked = steps_in(transcript)
    at_broker = {"SHARECORE_BOOTSTRAP_SERVER": broker}
    assert empty.run(*sent.command.split(), **at_broker) == sent.shown
    *lines, last = worked.shown.splitlines()
    assert last == "^C"
    with empty.started(*worked.command.split(), **at_broker) as worker:
        assert worker.stdout is not None
        assert [worker.stdout.readline().rstrip() for _ in lines] == lines
        worker.send_signal(signal.SIGINT)
        assert worker.wait(60) in (0, 130)


@pytest.mark.parametrize(
    "block", [each for each in blocks() if each.mark in (MARK, ANY_ORDER)], ids=lambda each: each.page
)
def test_marked_commands_print_what_the_page_shows(empty: Environment, broker: str, block: Block) -> None:
    for each in blocks():
        if each.page == block.page and each.mark.startswith("file: "):
            (empty.home / each.mark.removeprefix("file: ")).write_text(each.text)
    with ExitStack() as background:
        for step in steps_in(block.text):
            if step.command.endswith(" &"):
                command = step.command.removesuffix(" &").split()
                background.enter_context(empty.started(*command, SHARECORE_BOOTSTRAP_SERVER=broker))
            elif step.command.startswith("cat "):
                (empty.home / step.command.removeprefix("cat ")).write_text(step.shown)
            elif step.command.startswith("pip install "):
                empty.install(wheel_with(step.command))
            else:
                ended = empty.ended("bash", "-c", step.command, SHARECORE_BOOTSTRAP_SERVER=broker)
                printed = ended.stdout + ended.stderr
                same = step.is_what_was_printed(printed, any_order=block.mark == ANY_ORDER)
                assert same, f"{step.command}\n{ended}"


def test_commands_of_the_pages_work_in_an_empty_environment(empty: Environment, broker: str) -> None:
    assert "complete -o default -F" in empty.run("sharecore", "--show-completion", "bash")
    (command, printed), *_ = re.findall(
        r"```console\n\$ (sharecore dashboard)\n(.*?)```", (ROOT / "docs/install.md").read_text(), re.DOTALL
    )
    ended = empty.ended(*command.split())
    assert (ended.returncode, ended.stderr) == (1, printed)
    assert json.loads(empty.run("sharecore", "topics", "list", "-o", "json", "-b", broker)) == []
    assert "jobs: created" in empty.run("sharecore", "topics", "create", "jobs", "-b", broker)


def test_a_worker_shows_its_health(empty: Environment, broker: str) -> None:
    (empty.home / "healthy.py").write_text(
        "from sharecore.client import Record, worker\n\n\n"
        '@worker("healthy", group_id="healthy", create_topics=True)\n'
        "def done(record: Record) -> None:\n"
        "    pass\n"
    )
    port = free_port()
    until = time.monotonic() + 60
    with empty.started("sharecore", "work", "healthy:done", "-b", broker, "--health-port", str(port)):
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=20) as answer:
                    assert json.load(answer)["ready"]
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.1)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
            assert b'sharecore_worker_handled_total{worker="done"} 0.0' in answer.read()


@pytest.mark.long
def test_extras_bring_what_their_commands_need(empty: Environment) -> None:
    empty.install(wheel_with("sharecore[broker,page]"))
    empty.run("sharecore", "certs", "made")
    ended = empty.ended("sharecore", "dashboard", "-b", "localhost:1")
    assert "missing" not in ended.stderr


def test_pages_name_extras_that_there_are() -> None:
    named = {
        (page.name, extra)
        for page in PAGES
        for extras in re.findall(r"pip install ['\"]?sharecore\[([\w,]+)\]", page.read_text())
        for extra in extras.split(",")
    }
    assert {extra for _, extra in named} <= EXTRAS.keys(), named
    assert {extra for _, extra in named} >= EXTRAS.keys(), "each extra is explained somewhere"


def test_commands_on_pages_are_commands_with_such_options() -> None:
    program, seen = typer.main.get_command(app), 0
    for block in blocks():
        if block.language not in ("console", "sh", "text"):
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            typed, _, _ = line.removeprefix("$ ").partition(" | ")
            words = shlex.split(typed, comments=True) if "sharecore " in typed else []
            if not words or Path(words[0]).name != "sharecore":
                continue
            seen += 1
            command, context = program, click.Context(program)
            rest = words[1:]
            while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
                found = command.get_command(context, rest.pop(0))
                assert found is not None, f"{block.page}: {line}"
                command, context = found, click.Context(found, parent=context)
            known = {name for each in command.get_params(context) for name in each.opts + each.secondary_opts}
            given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-zA-Z]", word)}
            assert given <= known, f"{block.page}: {line}"
    assert seen >= 50


def test_python_on_pages_imports_names_that_there_are() -> None:
    seen = 0
    for page in PAGES:
        for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            imports = re.findall(
                r"^\s*((?:from|import) sharecore(?!\.spark|\.adapters).*)$", code, re.MULTILINE
            )
            for line in imports:
                seen += 1
                exec(compile(line.strip(), str(page), "exec"), {})
    assert seen >= 10
