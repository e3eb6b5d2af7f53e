"""aiokafka: BOOTSTRAP TOPIC GROUP COUNT."""

from __future__ import annotations

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

bootstrap, topic, group, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])


async def produce() -> None:
    for part, codec in enumerate([None, "gzip", "lz4", "zstd", "snappy"]):
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True, compression_type=codec
        ) as producer:
            for n in range(part, count, 5):
                await producer.send_and_wait(topic, b"%d" % n, key=b"k%d" % (n % 10))
                print("produced", n)


async def transact() -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=group) as producer:
        await producer.begin_transaction()
        for n in range(count):
            await producer.send_and_wait(f"{topic}-tx", b"bad-%d" % n)
        await producer.abort_transaction()
        async with producer.transaction():
            for n in range(count):
                await producer.send_and_wait(f"{topic}-tx", b"%d" % n)
    for n in range(count):
        print("committed", n)


async def consume() -> None:
    read = 0
    for wanted in (count // 2, count):
        async with AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            while read < wanted:
                for records in (await consumer.getmany(timeout_ms=1000, max_records=10)).values():
                    for record in records:
                        print("consumed", record.value.decode())
                        read += 1
                await consumer.commit()


async def main() -> None:
    await produce()
    await transact()
    await consume()


asyncio.run(main())
