"""The brokers of one cluster, and its links to an upstream cluster."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from sharecore.verify.nemesis.broker import START_SECONDS_MAX, LocalBroker
from sharecore.verify.nemesis.proxy import Proxy

_FENCED_SECONDS = 3.0
"""How long a former leader may take to notice that it was fenced."""


class LocalCluster:
    """Broker processes, each behind its own proxy.

    Args:
        command: as of `LocalBroker`.
        home: a directory of its own.
        nodes: how many processes to start.
        standby: one process serves, the others take over; only one listens at a time.
        links: pairs of ports: a proxy listens on the first and connects to the second.
        with_clocks: each process has a wall clock of its own, which can be stepped.
    """

    def __init__(
        self,
        command: str,
        home: Path,
        nodes: int = 1,
        standby: bool = False,
        links: Sequence[tuple[int, int]] = (),
        with_clocks: bool = False,
    ) -> None:
        homes = [home / f"node-{number}" for number in range(1, nodes + 1)] if nodes > 1 else [home]
        self.nodes = [LocalBroker(command, each, number, with_clocks) for number, each in enumerate(homes, 1)]
        self.links = [Proxy(target, port) for port, target in links]
        self.has_standby = standby

    @property
    def bootstrap(self) -> str:
        """The addresses of the proxies, for clients."""
        return ",".join(node.bootstrap for node in self.nodes)

    async def start(self) -> None:
        """Start links and processes, and wait until they listen.

        Raises:
            RuntimeError: a process ended, or none listened in time.
        """
        for link in self.links:
            await link.start()
        if self.has_standby:
            for node in self.nodes:
                await self.start_node(node)
        else:
            await asyncio.gather(*map(self.start_node, self.nodes))

    async def start_node(self, node: LocalBroker) -> None:
        """Start a process, and wait until it serves or, with a standby, until any node serves.

        Raises:
            RuntimeError: the process ended, or nothing listened in time.
        """
        if not self.has_standby:
            await node.start()
            return
        await node.launch()
        until = time.monotonic() + START_SECONDS_MAX
        while not any(each.is_listening() for each in self.nodes):
            node.raise_if_ended()
            if time.monotonic() > until:
                raise RuntimeError("neither the broker nor its standby listens")
            await asyncio.sleep(0.05)

    def node(self, share: float) -> LocalBroker:
        """Return the target of a fault: with a standby the serving node, else the one at `share` of all."""
        if self.has_standby:
            serving = [node for node in self.nodes if node.is_running and node.is_listening()]
            if serving:
                return serving[0]
        return self.nodes[int(share * len(self.nodes))]

    async def mend(self, any_status: bool = False) -> None:
        """Start processes again that have ended for an expected reason.

        Args:
            any_status: every exit status is expected, as after a failed disk.

        Raises:
            RuntimeError: a process ended for another reason.
        """
        for node in self.nodes:
            status = node.ended_with
            if status is None:
                continue
            if not any_status and not (self.has_standby and status == os.EX_TEMPFAIL):
                node.raise_if_ended()
            await self.start_node(node)

    async def settle(self, any_status: bool = False) -> None:
        """With a standby, wait until a leader fenced during a fault has ended, and start it again."""
        if self.has_standby:
            await asyncio.sleep(_FENCED_SECONDS)
            await self.mend(any_status)

    async def close(self) -> None:
        """End processes and proxies."""
        for node in self.nodes:
            await node.close()
        for link in self.links:
            await link.stop()
