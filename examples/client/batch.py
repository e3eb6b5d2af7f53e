"""Accepts whole batches: the next commit accepts what a poll has returned (implicit acknowledgement)."""

import asyncio
import sys

from sharecore.client import ShareConsumer


async def main(bootstrap: str) -> None:
    async with ShareConsumer({"bootstrap.servers": bootstrap, "group.id": "myshare"}) as consumer:
        consumer.subscribe(["foo"])
        while True:
            for record in await consumer.poll():
                print(f"offset {record.offset}: {record.value.decode()}", flush=True)
            await consumer.commit_sync()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
