"""confluent-kafka's share consumer: BOOTSTRAP TOPIC GROUP COUNT. Each tenth record is released once."""

from __future__ import annotations

import sys

from confluent_kafka import AcknowledgeType, ShareConsumer

bootstrap, topic, group, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])

settings = {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
accepted = 0
with ShareConsumer(settings) as consumer:
    consumer.subscribe([topic])
    while accepted < count:
        for record in consumer.poll(1.0):
            value = (record.value() or b"").decode()
            if int(value) % 10 == 0 and record.delivery_count() == 1:
                print("released", value)
                consumer.acknowledge(record, AcknowledgeType.RELEASE)
            else:
                print("consumed", value)
                consumer.acknowledge(record, AcknowledgeType.ACCEPT)
                accepted += 1
        consumer.commit_sync()
