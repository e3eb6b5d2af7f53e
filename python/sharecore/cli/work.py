"""`sharecore work`: runs a worker until a signal stops it."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import SettingsFile, key_values
from sharecore.cli.clients import (
    BOOTSTRAP,
    Bootstrap,
    CommandFailed,
    UsageFailed,
    failures_in_one_line,
    names_cluster,
)

if TYPE_CHECKING:
    from sharecore.client import Worker


def work(
    target: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION")],
    group: Annotated[
        Optional[str],  # noqa: UP045 - typer evaluates the annotation
        typer.Option("--group", "-g", help="The share group to be a member of.  [default: the decorator's]"),
    ] = None,
    settings: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--set", "-s", metavar="KEY=VALUE", help="A consumer setting; may be repeated."),
    ] = None,
    create_topics: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option("--create-topics/--no-create-topics", help="Create topics that do not exist."),
    ] = None,
    from_beginning: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option(
            "--from-beginning/--no-from-beginning",
            help="Start partitions that the group has not read yet at their first record, or at the "
            "cluster's default.  [default: a new group starts at the first record]",
        ),
    ] = None,
    max_deliveries: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="NUMBER", min=1, help="Set the group's delivery limit."),
    ] = None,
    dead_letters: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="TOPIC", help="Set up a topic for the group's dead-letter records."),
    ] = None,
    health_port: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--health-port",
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve /livez, /readyz and /metrics on this port; 0: a free one.",
        ),
    ] = None,
    health_host: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--health-host", metavar="ADDRESS", help="On this address.  [default: all]"),
    ] = None,
    log_level: Annotated[str, typer.Option(metavar="debug|info|warning|error")] = "info",
    log_format: Annotated[str, typer.Option(metavar="text|json", help="json: one object per line.")] = "text",
    bootstrap: Bootstrap = BOOTSTRAP,
    command_config: SettingsFile = None,
) -> None:
    """Run a worker: call a function with each record of a topic.

    \b
    sharecore work jobs:resize --group resizers

    The decorator sharecore.client.worker turns a function into a worker; options given here override the
    decorator's. On SIGTERM or Ctrl-C the worker finishes the records it has; a second signal releases them at
    once.
    """
    from sharecore.cli.logs import LEVELS, JsonFields, set_up_logging
    from sharecore.client import run_until_signal
    from sharecore.config import read_properties
    from sharecore.errors import ConfigError, KafkaError

    with failures_in_one_line():
        if log_level not in LEVELS:
            raise UsageFailed(f"--log-level {log_level}: unknown; allowed: one of {', '.join(LEVELS)}")
        if log_format not in ("text", "json"):
            raise UsageFailed(f"--log-format {log_format}: unknown; allowed: text, json")
        set_up_logging(log_level, JsonFields() if log_format == "json" else None)
        found = load(target)
        needs = found.needs
        found.needs = replace(
            needs,
            create_topics=needs.create_topics if create_topics is None else create_topics,
            from_beginning=needs.from_beginning if from_beginning is None else from_beginning,
            max_deliveries=needs.max_deliveries if max_deliveries is None else max_deliveries,
            dead_letters=needs.dead_letters if dead_letters is None else dead_letters,
        )
        found.health_port = found.health_port if health_port is None else health_port
        found.health_host = found.health_host if health_host is None else health_host
        config: dict[str, object] = {}
        try:
            if command_config is not None:
                config |= read_properties(command_config)
        except ConfigError as error:
            raise CommandFailed(str(error)) from None
        config |= {name: value.strip() for name, value in key_values(settings or [], "--set").items()}
        # --bootstrap-server and --group override --set
        if names_cluster():
            config["bootstrap.servers"] = bootstrap
        elif not {"bootstrap_servers", "bootstrap.servers"} & {*found.settings, *config}:
            config["bootstrap.servers"] = BOOTSTRAP
        if group is not None:
            config["group.id"] = group
        try:
            runner = asyncio.Runner(loop_factory=loop_factory())
            runner.run(run_until_signal(found, config))
        except (ConfigError, KafkaError) as error:
            raise CommandFailed(str(error)) from None
        if found.has_left:
            # closing the loop would wait for handlers that ignore their cancellation
            logging.shutdown()
            sys.stdout.flush()
            os._exit(0)
        runner.close()


def load(target: str) -> Worker:
    """Return the worker that MODULE:FUNCTION names; modules of the working directory are found too.

    Raises:
        CommandFailed: there is none.
    """
    from sharecore.client import Worker
    from sharecore.errors import ConfigError, missing

    module_name, colon, name = target.partition(":")
    if not colon or not module_name or not name:
        raise CommandFailed(f"{target}: not MODULE:FUNCTION")
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None:
            raise
        if not (module_name + ".").startswith(error.name + "."):
            raise CommandFailed(f"{target}: {missing(error)}") from None
        raise CommandFailed(f"{target}: there is no module {module_name}") from None
    except ConfigError as error:
        raise CommandFailed(f"{target}: {_place_of(error, module_name)}{error}") from None
    found = getattr(module, name, None)
    if not isinstance(found, Worker):
        problem = (
            "has no such name" if found is None else f"{name} is not a worker; decorate it with @worker(...)"
        )
        raise CommandFailed(f"{target}: module {module_name} {problem}")
    return found


def _place_of(error: BaseException, module_name: str) -> str:
    """Return the line of the module that raised an error as it was imported."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.name == "<module>" and Path(frame.filename).stem == module_name.rpartition(".")[2]
    ]
    return f"line {lines[-1]}: " if lines else ""


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event-loop factory if it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
