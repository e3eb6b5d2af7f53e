import sys

from confluent_kafka import AcknowledgeType, ShareConsumer

settings = {
    "bootstrap.servers": sys.argv[1],
    "group.id": "workers",
    "share.acknowledgement.mode": "explicit",
}
with ShareConsumer(settings) as consumer:
    consumer.subscribe(["jobs"])
    while True:
        for job in consumer.poll(1.0):
            print(job.value().decode(), flush=True)
            consumer.acknowledge(job, AcknowledgeType.ACCEPT)
        consumer.commit_sync()
