"""confluent-kafka: BOOTSTRAP TOPIC GROUP COUNT."""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaError, Message, Producer

bootstrap, topic, group, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])


def confirmed(error: KafkaError | None, message: Message) -> None:
    assert error is None, error
    print("produced", (message.value() or b"").decode())


for part, codec in enumerate(["none", "gzip", "lz4", "zstd", "snappy"]):
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": codec}
    )
    for n in range(part, count, 5):
        producer.produce(topic, b"%d" % n, b"k%d" % (n % 10), on_delivery=confirmed)
    assert producer.flush(60) == 0

producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": group})
producer.init_transactions()
for prefix, end in ((b"bad-", producer.abort_transaction), (b"", producer.commit_transaction)):
    producer.begin_transaction()
    for n in range(count):
        producer.produce(f"{topic}-tx", prefix + b"%d" % n)
    producer.flush()
    end()
for n in range(count):
    print("committed", n)

read = 0
# the first member uses the classic protocol, the second KIP-848's
for wanted, protocol in ((count // 2, "classic"), (count, "consumer")):
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
        }
    )
    consumer.subscribe([topic])
    while read < wanted:
        for message in consumer.consume(min(10, wanted - read), 1.0):
            assert message.error() is None, message.error()
            print("consumed", (message.value() or b"").decode())
            read += 1
            consumer.commit(message=message, asynchronous=False)
    consumer.close()
