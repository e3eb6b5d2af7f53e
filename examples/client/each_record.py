"""Accepts or rejects each record by itself (explicit acknowledgement)."""

import asyncio
import sys

from sharecore.client import ShareConsumer


async def main(bootstrap: str) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "myshare",
        "share.acknowledgement.mode": "explicit",
    }
    async with ShareConsumer(settings) as consumer:
        consumer.subscribe(["foo"])
        while True:
            for record in await consumer.poll():
                try:
                    print(f"offset {record.offset}: the square is {int(record.value) ** 2}", flush=True)
                    consumer.accept(record)
                except ValueError as error:
                    print(f"offset {record.offset}: rejected, {error}", flush=True)
                    consumer.reject(record)
            consumer.commit_async()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
