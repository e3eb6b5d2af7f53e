"""Checks of a configuration, a data directory and a cluster, and a bundle for a bug report."""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import sys
import tarfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sharecore.admin.data_dir import share_state
from sharecore.admin.overview import GroupOverview, look_at_groups
from sharecore.admin.waiting import Waiting, waiting_of
from sharecore.client.configs import ResourceKind, describe_configs
from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport
from sharecore.config import (
    BrokerConfig,
    Kind,
    broker_keys,
    listener_key,
    listeners_of,
    misspelled,
    remarks_on,
    unknown_names,
)
from sharecore.errors import ConfigError, ErrorCode, KafkaError
from sharecore.plural import counted
from sharecore.sharestate.keys import STATE_TOPIC
from sharecore.storage import Storage, StorageOptions, store_logs
from sharecore.storage.bucket import bucket_url, reaches_clouds
from sharecore.storage.identity import FILE_NAME, judge, repeated_by

_FREE_BYTES_MIN = 1 << 30
_FREE_PART_MIN = 0.05
_FILES_MIN = 4096
_PROBLEMS_MAX = 20
_READ_BYTES_MAX = 1 << 30
"""Directories with more record batches are not read through: that would take minutes."""
LETTERS_TROUBLE = "sharecore.dead.letters.trouble"
"""Setting of a group that only a broker of sharecore has, and only if it is asked for by name."""
DAMAGE, COPY_TROUBLE = "sharecore.damage", "sharecore.bucket.trouble"
"""Settings of a broker that only a broker of sharecore has, and only if they are asked for by name."""
_REMEDY = "stop the broker: sharecore store check lists all damage, store salvage keeps the rest"
_WHY = "sharecore groups describe {} shows why; groups resume ends a pause"
_HIDDEN = "[hidden]"
_SECRET_WORDS = ("password", "secret", "jaas", "credential", "token", ".key")
_PACKAGES = ("sharecore", "kio", "uvloop", "cryptography", "typer", "prometheus-client", "confluent-kafka")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Args:
        about: machine, configuration, data directory or cluster.
        level: good, doubt or bad.
        advice: what to do; empty where there is nothing to do.
    """

    about: str
    level: str
    what: str
    advice: str = ""


def machine() -> list[Finding]:
    """Check the limits of this process."""
    if sys.platform == "win32":
        return []
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if 0 <= hard < _FILES_MIN:
        return [
            Finding(
                "machine", "doubt", f"{hard} open files at most", "each connection is one: raise ulimit -n"
            )
        ]
    return [Finding("machine", "good", f"Python {platform.python_version()} on {platform.machine()}")]


def configuration(properties: Mapping[str, str]) -> list[Finding]:
    """Whether a broker would start with these settings, and with which of them nothing happens."""
    about = "configuration"
    near = misspelled(properties)
    found = [
        Finding(about, "bad", f"{name} is not a setting", f"did you mean {near[name]}?")
        if name in near
        else Finding(about, "doubt", f"{name} is not a setting", "it is ignored")
        for name in unknown_names(properties)
    ]
    found += [Finding(about, "doubt", remark) for remark in remarks_on(properties)]
    try:
        config = BrokerConfig.from_properties(properties)
        listeners = listeners_of(config)
    except ConfigError as error:
        return found + [Finding(about, "bad", line) for line in str(error).splitlines()]
    for listener in listeners:
        if listener.host in ("", "0.0.0.0") and listener.advertised_host in ("localhost", "127.0.0.1"):
            found.append(
                Finding(
                    about,
                    "doubt",
                    f"{listener.name} listens everywhere, and sends clients to {listener.advertised_host}",
                    "set advertised.listeners to a name that clients can reach",
                )
            )
        if listener.protocol == "PLAINTEXT" and listener.host not in ("localhost", "127.0.0.1", "::1"):
            found.append(
                Finding(
                    about,
                    "doubt",
                    f"{listener.name} takes anybody, in the clear, on {listener.host or 'every address'}",
                    "docs/security.md: TLS, SASL and access control",
                )
            )
    if config.sharecore_durability == "os":
        found.append(
            Finding(about, "doubt", "sharecore.durability=os: a loss of power may lose what was answered")
        )
    if config.sharecore_bucket_url is not None:
        url = bucket_url(config.sharecore_bucket_url)
        if not url.startswith("file:") and not reaches_clouds():
            found.append(
                Finding(
                    about, "bad", f"{url}: this build of sharecore cannot reach it", "pip install sharecore"
                )
            )
        else:
            is_home = config.sharecore_durability == "bucket"
            text = f"confirmed writes are in {url}" if is_home else f"a copy goes to {url}"
            found.append(Finding(about, "good", text, "`sharecore bucket check` tries the bucket"))
    found.append(Finding(about, "good", f"{len(config.explicit)} settings, a broker starts with them"))
    return found


def data_directory(directory: Path) -> list[Finding]:
    """Check a data directory and its free space; change nothing."""
    about = "data directory"
    if not directory.is_dir():
        return [
            Finding(about, "bad", f"{directory} is not a directory", "a broker makes it when it first starts")
        ]
    found = []
    if not os.access(directory, os.W_OK | os.X_OK):
        found.append(Finding(about, "bad", f"{directory} cannot be written by this user"))
    usage = shutil.disk_usage(directory)
    free = f"{usage.free / 1e9:.1f} GB free of {usage.total / 1e9:.1f} GB"
    tight = usage.free < _FREE_BYTES_MIN or usage.free < usage.total * _FREE_PART_MIN
    advice = "shorten retention, or give it more room: a full disk refuses writes" if tight else ""
    found.append(Finding(about, "doubt" if tight else "good", free, advice))
    try:
        storage = Storage(directory, StorageOptions(read_only=True))
    except (OSError, KafkaError) as error:
        return [*found, Finding(about, "bad", str(error))]
    try:
        trouble = judge(directory, repeated_by(storage.store.entries(b"")))
        if trouble is not None:
            found.append(Finding(about, "bad", f"{directory / FILE_NAME}: {trouble}"))
        topics = list(storage.topics)
        partitions = sum(len(topic.partitions) for topic in topics)
        size = sum(log.size_bytes for topic in topics for log in topic.partitions)
        evicted, remote = storage.store.evicted_segments()
        found += _damage(storage, size - remote, has_all=not evicted)
        if evicted:
            found.append(_evicted(evicted, remote))
        what = f"{counted(len(topics), 'topic')} with {counted(partitions, 'partition')}"
        text = f"{what}, {size / 1e6:.1f} MB of record batches"
        found.append(Finding(about, "good", text))
    finally:
        storage.close()
    return found + _share_state(directory)


def _share_state(directory: Path) -> list[Finding]:
    """Check share state for records that no share-partition leader writes."""
    about = "data directory"
    try:
        problems = share_state(directory).problems
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return []
        return [Finding(about, "bad", f"share state cannot be read: {error}")]
    return [
        Finding(
            about,
            "bad" if each.damaged else "doubt",
            f"{STATE_TOPIC}-{each.partition} at offset {each.offset}: {each.reason}",
            "`sharecore store salvage` keeps what is whole" if each.damaged else "",
        )
        for each in problems[:_PROBLEMS_MAX]
    ]


def _evicted(segments: int, size: int) -> Finding:
    text = (
        f"{counted(segments, 'evicted segment')}: {size / 1e6:.1f} MB of record batches are only in the "
        "bucket (sharecore.bucket.cache.bytes), and were not read; the indexes are intact"
    )
    advice = "`sharecore bucket restore` reads them all, into a new directory"
    return Finding("data directory", "good", text, advice)


def _damage(storage: Storage, size: int, *, has_all: bool) -> list[Finding]:
    """Check record batches for damage: all if there are few, else only those of the broker's own topics.

    Args:
        size: bytes of batches in the directory.
        has_all: no segment is evicted, so that `store check` can read all.
    """
    about = "data directory"
    reads_all = size <= _READ_BYTES_MAX
    unread: dict[str, None] = {}
    for topic in storage.topics:
        if reads_all or topic.name.startswith("__"):
            for log in store_logs(topic):
                try:
                    storage.store.verify(log.log_id)
                except KafkaError as error:  # noqa: PERF203 - the index of a segment, in which several logs may lie
                    unread[error.message] = None
    storage.drain()
    damage = [*unread, *map(str, storage.damaged)]
    found = [Finding(about, "bad", each, _REMEDY) for each in damage]
    if not reads_all:
        text = f"{size / 1e9:.1f} GB of records were not read through"
        advice = "sharecore store check reads all, while the broker is stopped" if has_all else ""
        found.append(Finding(about, "good", text, advice))
    return found


async def cluster(settings: Mapping[str, str]) -> list[Finding]:
    """Whether a cluster answers, and which of its share groups stand still.

    Raises:
        KafkaError, OSError: it does not answer.
    """
    about = "cluster"
    transport = Transport(read_connection_settings(settings))
    try:
        began = time.monotonic()
        groups = await look_at_groups(transport)
        took_ms = (time.monotonic() - began) * 1000
        nodes = await transport.nodes()
        damage = [line for node in nodes for line in await _reported(transport, node, DAMAGE)]
        copies = [line for node in nodes for line in await _reported(transport, node, COPY_TROUBLE)]
        hindered = {group.group_id: await _hindered(transport, group) for group in groups}
        troubles = {group.group_id: await _letters_trouble(transport, group.group_id) for group in groups}
    finally:
        await transport.close()
    found = [Finding(about, "good", f"answers, {counted(len(groups), 'share group')}, in {took_ms:.0f} ms")]
    if not groups:
        found.append(
            Finding(about, "doubt", "no share group is there, or none that this client may DESCRIBE")
        )
    found += [Finding(about, "bad", line, _REMEDY) for line in damage]
    found += [Finding(about, "bad", line, "`sharecore bucket check` tries the bucket") for line in copies]
    for group in groups:
        if group.error is not None:
            found.append(
                Finding(about, "doubt", f"group {group.group_id} cannot be described: {group.error}")
            )
        if trouble := troubles[group.group_id]:
            text = f"group {group.group_id}: no dead letter could be written now: {trouble}"
            found.append(Finding(about, "doubt", text, "sharecore groups dead-letters"))
        lag = sum(map(group.known_lag, group.positions))
        if lag and not group.members:
            waits = "1 record waits" if lag == 1 else f"{lag} records wait"
            text = f"group {group.group_id}: {waits}, and nobody is there to take them"
            found.append(Finding(about, "doubt", text, "start a worker, or delete the group"))
        if lag:
            waiting = hindered[group.group_id]
            lines = [*waiting.of_group(), *waiting.of_partitions()]
            advice = _WHY.format(group.group_id)
            found += [Finding(about, "doubt", f"group {group.group_id}: {line}", advice) for line in lines]
    # those of one cluster mostly lack the same
    gaps = dict.fromkeys(line for waiting in hindered.values() for line in waiting.gaps())
    return found + [Finding(about, "good", line) for line in gaps]


async def _reported(transport: Transport, node: int, name: str) -> list[str]:
    """Return the lines of a broker's own setting; empty without it."""
    try:
        found = await describe_configs(transport, ResourceKind.BROKER, str(node), [name])
    except KafkaError:
        return []
    text = next((entry.value or "" for entry in found.values()), "")
    return [f"broker {node}: {line}" for line in text.splitlines()]


async def _hindered(transport: Transport, group: GroupOverview) -> Waiting:
    """Return the reasons why records of a group are not delivered, if any are pending."""
    behind = group.behind()
    found = await waiting_of(transport, group.group_id, behind) if behind else Waiting()
    found.keep_only(("window", "takeover"))
    return found


async def _letters_trouble(transport: Transport, group_id: str) -> str:
    """Return why dead-letter records of a group cannot be written; empty if they can, or if it is unknown."""
    try:
        found = await describe_configs(transport, ResourceKind.GROUP, group_id, [LETTERS_TROUBLE])
    except KafkaError:
        return ""
    return next((entry.value or "" for entry in found.values()), "")


def without_secrets(properties: Mapping[str, str]) -> dict[str, str]:
    """Return settings that may be shown: passwords, keys and credentials are not among them."""
    keys = broker_keys()

    def hidden(name: str) -> bool:
        known = keys.get(listener_key(name))
        secret = known is not None and known[1].kind is Kind.PASSWORD
        return secret or known is None or any(word in name.lower() for word in _SECRET_WORDS)

    return {name: _HIDDEN if hidden(name) else value for name, value in sorted(properties.items())}


def write_bundle(
    target: Path, findings: Iterable[Finding], properties: Mapping[str, str], directory: Path
) -> None:
    """Write a .tar.gz with findings, versions, settings without secrets, and file sizes.

    Raises:
        OSError: it cannot be written.
    """
    files = []
    if directory.is_dir():
        files = [
            {"file": str(path.relative_to(directory)), "bytes": path.stat().st_size}
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        ]
    parts = {
        "findings.json": [asdict(each) for each in findings],
        "versions.json": {name: _version(name) for name in _PACKAGES}
        | {"python": sys.version, "platform": platform.platform()},
        "settings.json": without_secrets(properties),
        "files.json": files,
    }
    with tarfile.open(target, "w:gz") as archive:
        for name, content in parts.items():
            data = json.dumps(content, indent=1, ensure_ascii=False).encode()
            entry = tarfile.TarInfo(f"sharecore-support/{name}")
            entry.size, entry.mtime, entry.mode = len(data), int(time.time()), 0o600
            archive.addfile(entry, io.BytesIO(data))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
