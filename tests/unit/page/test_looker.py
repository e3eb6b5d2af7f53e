"""What a page shows of a broker that stands by."""

from __future__ import annotations

import asyncio

from sharecore.client.settings import read_connection_settings
from sharecore.client.wire.transport import Transport
from sharecore.page.looker import Looker


def test_the_page_of_a_standby_says_who_leads() -> None:
    async def look() -> tuple[int, str]:
        # nobody listens there: a look at the cluster would fail in another way
        settings = read_connection_settings({"bootstrap.servers": "localhost:1"})
        looker = Looker(Transport(settings), 1.0, standby=lambda: "node 2 leads s3://jobs (epoch 7)")
        with looker.watched():
            assert await looker.newer(0, 5.0)
        await looker.close()
        return looker.round, looker.trouble

    rounds, trouble = asyncio.run(look())
    assert rounds >= 1
    expected = (
        "This broker stands by: node 2 leads s3://jobs (epoch 7). The page of that broker shows its groups."
    )
    assert trouble == expected
