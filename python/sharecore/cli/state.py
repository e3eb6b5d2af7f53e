"""`sharecore state`: the contents of `__share_group_state`, of a cluster or a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from sharecore.cli.admin import Cluster, Settings, SettingsFile, Timeout, admin_at
from sharecore.cli.clients import (
    BootstrapOrDirectory,
    CommandFailed,
    UsageFailed,
    check_one_source,
    failures_in_one_line,
    usual_bootstrap,
)
from sharecore.cli.state_output import FORMATS, show_history, show_problems, show_states
from sharecore.cli.tables import Output
from sharecore.cli.typers import commands

if TYPE_CHECKING:
    from sharecore.admin import StateDump, StateHistory
    from sharecore.sharestate.keys import SharePartitionKey

state = commands(
    "Show the persisted state of share groups.",
)


@state.callback()
def options() -> None:
    """Show the persisted state of share groups."""


@state.command("dump", short_help="Print the state of share partitions.")
def dump(
    data_dir: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(
            metavar="DIR",
            help="A data directory of sharecore, opened read-only; its broker may be running.",
        ),
    ] = None,
    bootstrap: BootstrapOrDirectory = "",
    key: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="GROUP:TOPICID:PARTITION", help="Only this share partition."),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Print all retained records of --key, oldest first.")
    ] = False,
    output: Output = "table",
    lines: Annotated[
        str, typer.Option("--format", metavar="table|json", hidden=True, help="json: one object per line.")
    ] = "table",
    setting: Settings = None,
    command_config: SettingsFile = None,
    timeout: Timeout = None,
) -> None:
    """Print the state of share partitions from the topic __share_group_state.

    \b
    sharecore state dump                                       of the broker on localhost:9092
    sharecore state dump --data-dir ./data                     of a broker, running or not
    sharecore state dump --output json | jq '.[] | select(.topic == "orders")'
    sharecore state dump --key orders-group:Wj5BzQ1_Q9yJHXXV8pq9pA:0 --history

    \b
    KEY        group, topic id and partition, as --key takes it
    START      start offset: all earlier records are done; -1: no record was fetched yet
    DONE       acknowledged and archived records from START on; -1: not known
    EPOCHS     state epoch / leader epoch / snapshot epoch: raised by a reset, a leader, a snapshot
    IN FLIGHT  records from START on with a state: offsets, state, x number of deliveries

    With --history each line is a record: a ShareSnapshot holds the whole state, a ShareUpdate the changes
    since, a tombstone deletes it. Records made redundant by a later snapshot are gone.

    Unreadable records are reported on stderr with partition and offset; the exit status is then 1.
    """
    with failures_in_one_line():
        if lines not in FORMATS:
            raise UsageFailed(f"--format {lines}: not one of {', '.join(FORMATS)}")
        check_one_source(data_dir, bootstrap)
        if history and key is None:
            raise UsageFailed("--history needs --key GROUP:TOPICID:PARTITION")
        chosen = _key(key)
        if data_dir is not None:
            found = _from_data_dir(data_dir, chosen, history=history)
        else:
            with admin_at(Cluster(bootstrap or usual_bootstrap(), setting, command_config, timeout)) as admin:
                if chosen is not None and history:
                    found = admin.share_state_history(chosen)
                else:
                    found = admin.share_state(chosen)
    _show(found, "lines" if lines == "json" else output)


def _key(text: str | None) -> SharePartitionKey | None:
    from sharecore.sharestate.keys import parse_coordinator_key

    try:
        return None if text is None else parse_coordinator_key(text)
    except ValueError as error:
        raise UsageFailed(f"--key {error}") from None


def _from_data_dir(path: Path, key: SharePartitionKey | None, *, history: bool) -> StateDump | StateHistory:
    from sharecore.admin.data_dir import share_state, share_state_history
    from sharecore.errors import KafkaError

    try:
        return share_state_history(path, key) if key is not None and history else share_state(path, key)
    except (KafkaError, OSError) as error:
        raise CommandFailed(str(error)) from None


def _show(found: StateDump | StateHistory, output: str) -> None:
    from sharecore.admin import StateDump

    if isinstance(found, StateDump):
        show_states(found.states, output)
    else:
        show_history(found.changes, output)
    show_problems(found.problems)
    if any(problem.damaged for problem in found.problems):
        raise typer.Exit(1)
