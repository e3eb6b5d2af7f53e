import asyncio
import sys

from sharecore.client import ShareConsumer


async def main() -> None:
    settings = {
        "bootstrap.servers": sys.argv[1],
        "group.id": "workers",
        "share.acknowledgement.mode": "explicit",
    }
    async with ShareConsumer(settings) as consumer:
        consumer.subscribe(["jobs"])
        while True:
            for job in await consumer.poll():
                print(job.value.decode(), flush=True)
                consumer.accept(job)
            consumer.commit_async()


asyncio.run(main())
