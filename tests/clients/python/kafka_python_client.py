"""kafka-python, 2 and 3: BOOTSTRAP TOPIC GROUP COUNT."""

from __future__ import annotations

import sys

from kafka import KafkaConsumer, KafkaProducer

bootstrap, topic, group, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])

for part, codec in enumerate([None, "gzip", "lz4", "zstd", "snappy"]):
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", compression_type=codec)
    numbers = range(part, count, 5)
    sent = [(n, producer.send(topic, b"%d" % n, key=b"k%d" % (n % 10))) for n in numbers]
    for n, future in sent:
        future.get(60)
        print("produced", n)
    producer.close()

producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=group)
producer.init_transactions()
producer.begin_transaction()
for n in range(count):
    producer.send(f"{topic}-tx", b"bad-%d" % n)
producer.flush()
producer.abort_transaction()
producer.begin_transaction()
for n in range(count):
    producer.send(f"{topic}-tx", b"%d" % n)
producer.commit_transaction()
producer.close()
for n in range(count):
    print("committed", n)

read = 0
for wanted in (count // 2, count):
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=10,
    )
    while read < wanted:
        for records in consumer.poll(1000).values():
            for record in records:
                print("consumed", record.value.decode())
                read += 1
        consumer.commit()
    consumer.close()
