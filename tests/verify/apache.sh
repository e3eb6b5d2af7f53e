#!/bin/bash
# A broker of Apache Kafka as `sharecore verify --broker` starts one: apache.sh LIBS PORT ADVERTISED DATA. Clients come to PORT and are
# told ADVERTISED; the broker's own listener and its controller have ports of their own, which stay the same over restarts.
set -eu
home=$(dirname "$4"); mkdir -p "$4"
cat > "$home/server.properties" <<P
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
group.share.min.record.lock.duration.ms=1000
group.share.min.session.timeout.ms=6000
group.share.session.timeout.ms=6000
group.share.min.heartbeat.interval.ms=500
group.share.heartbeat.interval.ms=1000
P
[ -e "$home/ports" ] || "${PYTHON:-python3}" - > "$home/ports" <<'P'
import random, socket
probes = []
while len(probes) < 2:
    try:  # below the kernel's ports for clients: no connection takes one while the broker is down
        probes.append(socket.create_server(("127.0.0.1", random.randrange(12_000, 32_000))))
    except OSError:
        pass
print(*(probe.getsockname()[1] for probe in probes))
P
read -r own controller < "$home/ports"
export KAFKA_LIBS=$1 APACHE_UNSTABLE=false SUITE_ROLE=broker SUITE_NODE_ID=0 SUITE_HOST=127.0.0.1 SUITE_LISTENER=EXTERNAL
export SUITE_PORT=$own SUITE_EXTRA_PORT=$controller SUITE_DATA=$4 SUITE_PROPS=$home/server.properties SUITE_METADATA_VERSION= SUITE_FEATURES=
export APACHE_LISTENERS="CLIENTS:$2:$3"
exec bash "$(dirname "$0")/../conformance/brokers/apache.sh"
