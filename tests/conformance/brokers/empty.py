"""Deletes topics and groups of a cluster, but for those with KEPT in theirs: `empty.py HOST:PORT KEPT`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from concurrent.futures import Future

from confluent_kafka.admin import AdminClient

_INTERNAL = {"__consumer_offsets", "__transaction_state", "__share_group_state"}


def empty(bootstrap: str, kept: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    while names := [
        name for name in admin.list_topics(timeout=30).topics if name not in _INTERNAL and kept not in name
    ]:
        _await(admin.delete_topics(names).values())
        time.sleep(0.1)
    listed = admin.list_consumer_groups().result(30).valid
    groups = [group.group_id for group in listed if kept not in group.group_id]
    if groups:
        _await(admin.delete_consumer_groups(groups).values())


def _await(deleting: Iterable[Future[None]]) -> None:
    for each in deleting:
        error = each.exception(30)
        if error is not None:
            print(error, file=sys.stderr)


if __name__ == "__main__":
    empty(*sys.argv[1:])
