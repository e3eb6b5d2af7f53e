"""Ends a batch at the first record that cannot be processed; the rest is released for another delivery."""

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
            batch = await consumer.poll()
            for record in batch:
                count = f"offset {record.offset}, delivery {record.delivery_count}"
                try:
                    print(f"{count}: the square is {int(record.value) ** 2}", flush=True)
                    consumer.accept(record)
                except ValueError as error:
                    print(f"{count}: rejected, {error}", flush=True)
                    consumer.reject(record)
                    break
            consumer.release(batch)
            consumer.commit_async()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
