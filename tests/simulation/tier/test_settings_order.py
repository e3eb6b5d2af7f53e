"""A setting that is sent again, as its answer was lost, does not come to stand behind a newer one."""

from __future__ import annotations

import asyncio

from tests.simulation.tier.network import CLIENTS
from tests.simulation.tier.processes import Paced, PacedClock
from tests.simulation.tier.test_layers import Bench, played

from sharecore.client.settings import read_connection_settings
from sharecore.tier.settings.topic import SettingsCatalog
from sharecore.tier.upstream.sending import Sending
from sharecore.upstream import Administration, Outlet, Upstream

TOPIC = "settings"


async def _node(bench: Bench) -> SettingsCatalog:
    settings = read_connection_settings({"bootstrap.servers": bench.cluster.bootstrap})
    upstream = Upstream(settings, PacedClock(bench.loop, Paced(CLIENTS)))
    await upstream.start()
    await upstream.topics([TOPIC])
    sending = Sending(upstream, Outlet(upstream))
    catalog = SettingsCatalog(TOPIC, Administration(upstream), sending.write, upstream.clock)
    await catalog.load()
    return catalog


def test_the_newer_value_counts_wherever_an_answer_was_lost() -> None:
    async def play(bench: Bench) -> tuple[bytes | None, int]:
        log = bench.cluster.create(TOPIC, 1).logs[0]
        bench.cluster.told_all()
        one, other = await _node(bench), await _node(bench)
        await one.put(b"key", b"the first")
        bench.cluster.lost_answers = 1.0
        older = asyncio.ensure_future(one.put(b"key", b"older"))
        await asyncio.sleep(0.1)
        bench.cluster.lost_answers = 0.0
        await other.put(b"key", b"newer")
        await older
        return (await _node(bench)).get(b"key"), len(log.batches)

    assert played(play) == (b"newer", 3)
