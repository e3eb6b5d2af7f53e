"""A worker: `sharecore work squares:square -b localhost:9092` in this directory."""

import asyncio

from sharecore.client import Record, Reject, worker


@worker("foo", group_id="myshare", concurrency=8)
async def square(record: Record) -> None:
    await asyncio.sleep(0.1)
    try:
        print(f"offset {record.offset}: the square is {int(record.value) ** 2}", flush=True)
    except ValueError as error:
        raise Reject(str(error)) from error
