"""`sharecore verify`: check that a cluster keeps its guarantees, and show the calls that break one."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import (
    Cluster,
    Settings,
    SettingsFile,
    Timeout,
    confluent_settings,
    with_timeout,
)
from sharecore.cli.clients import (
    CommandFailed,
    UsageFailed,
    bootstrap_option,
    confluent_failures,
    ctrl_c_ends,
    failures_in_one_line,
)
from sharecore.cli.store import progress_bar

if TYPE_CHECKING:
    from sharecore.verify.check import Result
    from sharecore.verify.workload import Plan

EXIT_BREACH = 1
_TELL_SECONDS = 10.0


class _CannotRun(CommandFailed):
    """Nothing was proved, either way."""

    status = 2


@contextlib.contextmanager
def _nothing_proved() -> Iterator[None]:
    """Give every failure its status: 1 would say that a promise was broken."""
    try:
        yield
    except CommandFailed as failure:
        raise _CannotRun(str(failure)) from None


def verify(
    bootstrap: Annotated[
        str, bootstrap_option("The cluster to verify: ours, or Apache Kafka 4.2 and later.", None)
    ] = "",
    minutes: Annotated[float, typer.Option(min=0.05, help="Duration of the workload.")] = 10.0,
    producers: Annotated[int, typer.Option(min=1, max=200, help="Producers; a third use transactions.")] = 8,
    workers: Annotated[int, typer.Option(min=1, max=1000, help="Members of the share group.")] = 32,
    topics: Annotated[int, typer.Option(min=1, max=100, help="Topics, created for this and deleted.")] = 3,
    partitions: Annotated[int, typer.Option(min=1, max=1000, help="Partitions of each topic.")] = 4,
    group: Annotated[
        str, typer.Option(help="The share group, which must not exist.  [default: a new one]")
    ] = "",
    rate: Annotated[float, typer.Option(min=1, help="Records per second of all producers together.")] = 400.0,
    seed: Annotated[
        Optional[int],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(help="Repeat the choices and faults of another run.  [default: drawn]"),
    ] = None,
    bound: Annotated[
        float,
        typer.Option(min=1, help="Seconds after a lock ends within which a record must be redelivered."),
    ] = 60.0,
    nemesis: Annotated[
        bool,
        typer.Option("--nemesis", help="Start a broker and inject faults: kill, stop, restart, cut ..."),
    ] = False,
    broker: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Command that starts the broker for --nemesis; {port}, {advertised}, {data} and {node} are "
            "replaced.",
        ),
    ] = "",
    nodes: Annotated[
        int, typer.Option(min=1, max=20, help="Brokers that --nemesis starts; each fault hits one of them.")
    ] = 1,
    standby: Annotated[
        bool, typer.Option("--standby", help="One of --nodes serves at a time; the others wait to take over.")
    ] = False,
    step_clocks: Annotated[
        bool,
        typer.Option("--step-clocks", help="Step the wall clocks of the brokers too; takes libfaketime."),
    ] = False,
    link: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="PORT:TARGET",
            help="Relay local port PORT to TARGET, and break it too; for an upstream broker that advertises "
            "PORT. May be repeated.",
        ),
    ] = None,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--output", "-o", metavar="FILE", help="File for the history.  [default: only after a breach]"
        ),
    ] = None,
    history: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(metavar="FILE", help="Check a recorded history instead; may be repeated for its parts."),
    ] = None,
    report: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="Write the result as a self-contained HTML page."),
    ] = None,
    settings: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Verify the guarantees of a cluster with share groups.

    \b
    sharecore verify -b localhost:9092 --minutes 10          run a workload and check it
    sharecore verify --nemesis --minutes 10 --seed 7         start a broker and inject faults
    sharecore verify --history run.jsonl --report run.html   check a recorded history, write a report

    The workload creates its own topics and share group, and deletes them at the end. It produces with and
    without transactions; consumes with members that accept, release, reject, renew, crash and let locks
    expire; reads everything with plain consumers; and runs admin operations. A history records every call
    with its start, end and outcome; a checker then checks the history. docs/verify.md describes its format
    and each guarantee.

    --nemesis touches only processes it started itself. Ctrl-C ends the workload early: remaining records are
    consumed and the history is checked. A second Ctrl-C ends the command.

    \b
    exit status 0  no breach was found
                1  a breach was found; the history lines that show it are printed
                2  nothing was checked: wrong usage, no history, or no cluster
    """
    with failures_in_one_line(), ctrl_c_ends(), _nothing_proved():
        if sum(map(bool, (history, bootstrap, nemesis))) != 1:
            raise UsageFailed("use exactly one of --bootstrap-server, --nemesis and --history")
        if (broker or nodes > 1 or standby or step_clocks or link) and not nemesis:
            raise UsageFailed("--broker, --nodes, --standby, --step-clocks and --link are for --nemesis")
        if nodes > 1 and not broker:
            raise UsageFailed("--nodes needs --broker, the command that starts each of them")
        if standby and nodes == 1:
            raise UsageFailed("--standby needs --nodes 2 or more")
        if step_clocks:
            _check_clocks()
        links = [_ports(each) for each in link or ()]
        if history:
            result = _checked(history)
            _show(result, report)
        else:
            from sharecore.client.settings import connection_settings_among
            from sharecore.verify.workload import Plan

            chosen = random.SystemRandom().randrange(1 << 31) if seed is None else seed
            run = f"{chosen:x}-{int(time.time()) % 100_000}"
            cluster = Cluster(bootstrap or "127.0.0.1:1", settings, command_config, timeout)
            confluent = confluent_settings(cluster)
            if bootstrap:
                cluster.check()
            plan = Plan(
                bootstrap,
                run,
                chosen,
                group or f"verify-{run}",
                connection_settings_among(with_timeout(cluster.given, timeout)),
                confluent,
                minutes * 60,
                producers,
                producers // 3,
                workers,
                topics,
                partitions,
                rate,
                bound * 1000,
            )
            broken = _Broken(broker, nodes, standby, links, step_clocks) if nemesis else None
            result = _run(plan, broken, output, report)
    if result.counts:
        raise typer.Exit(EXIT_BREACH)


@dataclass(frozen=True)
class _Broken:
    """What the nemesis starts and breaks."""

    command: str
    nodes: int
    standby: bool
    links: list[tuple[int, int]]
    step_clocks: bool


def _check_clocks() -> None:
    """Raise UsageFailed without libfaketime."""
    from sharecore.verify.nemesis.clock import Clock

    if not Clock.can_step:
        raise UsageFailed("--step-clocks needs libfaketime. Run: apt-get install libfaketime")


def _ports(link: str) -> tuple[int, int]:
    """Return the two ports of --link."""
    port, _, target = link.partition(":")
    try:
        ports = int(port), int(target)
    except ValueError:
        ports = 0, 0
    if not all(0 < each < 1 << 16 for each in ports):
        raise UsageFailed(f"--link {link}: must be two ports of this machine, PORT:TARGET")
    return ports


def _run(plan: Plan, broken: _Broken | None, output: Path | None, report: Path | None) -> Result:
    """Run the workload, check its history, and keep the history if asked."""
    from sharecore.errors import ConfigError, KafkaError

    typer.echo(f"seed {plan.seed}", err=True)
    with tempfile.TemporaryDirectory(prefix="sharecore-verify-") as directory:
        home = Path(directory)
        path = output or home / "history.jsonl"
        before = _written(path)
        try:
            with confluent_failures():
                troubles = asyncio.run(_load(plan, broken, home, path))
        except typer.Exit:  # a RuntimeError too
            raise
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        except (CommandFailed, KafkaError, ConfigError, RuntimeError, OSError) as failure:
            # a file of an earlier run says nothing about this one
            began = _written(path) != before
            kept = _keep(plan.seed, home, path, in_place=output is not None) if began else []
            raise _CannotRun("\n".join([str(failure), *kept])) from None
        for trouble in troubles[:5]:
            typer.echo(f"note: {trouble}", err=True)
        result = _checked([path])
        if result.counts and output is None:
            for line in _copied(path, Path(f"verify-{plan.seed}.jsonl"), "the history")[1]:
                typer.echo(line, err=True)
        _show(result, report)
    return result


def _keep(seed: int, home: Path, history: Path, *, in_place: bool) -> list[str]:
    """Keep the history and the brokers' logs of a failed run; return their directory."""
    lines = [f"the history until then is {history}"]
    if not in_place:
        history, lines = _copied(history, Path(f"verify-{seed}.jsonl"), "the history until then")
    if in_place or history.parent != home:
        lines.append(f"Run: sharecore verify --history {history}")
    for number, log in enumerate(sorted(home.rglob("broker.log")), 1):
        kept = Path(f"verify-{seed}.broker-{number}.log")
        lines += _copied(log, kept, f"the log of broker {number}")[1]
    return lines


def _written(file: Path) -> int:
    """Return a file's modification time in nanoseconds; 0 without a file."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _copied(file: Path, kept: Path, what: str) -> tuple[Path, list[str]]:
    """Copy a file; return the copy's path and a message."""
    try:
        shutil.copyfile(file, kept)
    except OSError as error:
        return file, [f"{what} cannot be kept as {kept}: {error.strerror}"]
    return kept, [f"{what} is {kept}"]


async def _load(plan: Plan, broken: _Broken | None, home: Path, path: Path) -> list[str]:
    """Run the workload; start a broker for it if a command is given."""
    from dataclasses import replace
    from importlib.metadata import version

    from sharecore.verify.nemesis import OWN_BROKER, LocalCluster, Nemesis
    from sharecore.verify.workload import Workload

    header = {"tool": f"sharecore {version('sharecore')}", "nemesis": broken is not None}
    local = None
    if broken is not None:
        command = broken.command or OWN_BROKER
        local = LocalCluster(command, home, broken.nodes, broken.standby, broken.links, broken.step_clocks)
    try:
        breaking = None
        if local is not None:
            await local.start()
            plan = replace(plan, bootstrap=local.bootstrap)
            breaking = Nemesis(local, plan.seed)
        with _progress() as report:
            workload = Workload(plan, path, header, report)
            _on_ctrl_c(workload.interrupt)
            return await workload.run(breaking)
    finally:
        if local is not None:
            await local.close()


def _on_ctrl_c(end: Callable[[], None]) -> None:
    """End the load at the first Ctrl-C, the command at the second, and its cleaning up at the third."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def first() -> None:
        loop.add_signal_handler(signal.SIGINT, second)
        typer.echo("ending the load; Ctrl-C again ends the command at once", err=True)
        end()

    def second() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        task.cancel()

    loop.add_signal_handler(signal.SIGINT, first)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show how far it is: in place on a terminal, else a line from time to time."""
    shows = sys.stderr.isatty()
    last = 0.0

    def report(text: str) -> None:
        nonlocal last
        now = time.monotonic()
        if shows:
            sys.stderr.write(f"\r{text[:100]:<100}")
            sys.stderr.flush()
        elif now - last >= _TELL_SECONDS:
            last = now
            typer.echo(text, err=True)

    try:
        yield report
    finally:
        if shows:
            sys.stderr.write("\r" + " " * 100 + "\r")


def _checked(history: list[Path]) -> Result:
    from sharecore.verify.check import check
    from sharecore.verify.history import HistoryError

    try:
        with progress_bar("checking") as progress:
            size = sum(path.stat().st_size for path in history)

            def report(done: int) -> None:
                progress(done, size)

            return check(history, report)
    except HistoryError as error:
        raise _CannotRun(str(error)) from None
    except OSError as error:
        raise _CannotRun(f"{error.filename}: {error.strerror}") from None


def _show(result: Result, report: Path | None) -> None:
    from sharecore.verify.report import page, summary

    for line in summary(result):
        typer.echo(line)
    if report is not None:
        try:
            report.write_text(page(result), encoding="utf-8")
        except OSError as error:
            raise _CannotRun(f"{report} cannot be written: {error.strerror}") from None
        typer.echo(f"the page is {report}", err=True)
