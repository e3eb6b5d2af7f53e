#!/bin/bash
# Runs each of Apache Kafka's own command-line tools for share groups once, against an external broker, and records
# which APIs they send. BOOTSTRAP=host:port for a running broker, or BROKER_CMD to start one. See README.md.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export SUITE_SCRATCH=${SUITE_SCRATCH:-$root/build/conformance}
export KAFKA_LIBS=${KAFKA_LIBS:-$root/build/jars/kafka-4.3.1}
[ -f "$KAFKA_LIBS/.done" ] || make -C "$root" jars >&2 || exit 1
out=${SUITE_RESULTS:-$SUITE_SCRATCH/results}/tools; rm -rf "$out"; mkdir -p "$out"
cat > "$out/log4j2.properties" <<'L'
status=warn
appender.f.type=File
appender.f.name=f
appender.f.fileName=${env:TOOL_LOG}
appender.f.layout.type=PatternLayout
appender.f.layout.pattern=%m%n
rootLogger.level=WARN
rootLogger.appenderRef.f.ref=f
logger.n.name=org.apache.kafka.clients.NetworkClient
logger.n.level=debug
L
broker=
if [ -z "${BOOTSTRAP:-}" ]; then
  : "${BROKER_CMD:?or BOOTSTRAP}"
  read -r p1 p2 < <(python3 -c 'import socket
a=[socket.socket() for _ in range(2)]
[s.bind(("localhost",0)) for s in a]
print(*[s.getsockname()[1] for s in a])')
  mkdir -p "$out/broker"; rm -rf "$out/broker/data"; mkdir "$out/broker/data"
  printf '%s\n' auto.create.topics.enable=false offsets.topic.replication.factor=1 share.coordinator.state.topic.replication.factor=1 \
    share.coordinator.state.topic.min.isr=1 transaction.state.log.replication.factor=1 transaction.state.log.min.isr=1 \
    group.share.min.record.lock.duration.ms=1000 > "$out/broker/server.properties"
  export SUITE_ROLE=broker SUITE_NODE_ID=0 SUITE_HOST=localhost SUITE_LISTENER=EXTERNAL SUITE_PORT=$p1 SUITE_EXTRA_PORT=$p2 \
    SUITE_DATA=$out/broker/data SUITE_PROPS=$out/broker/server.properties SUITE_BROKERS=1 SUITE_PEERS=0@localhost:$p1 \
    SUITE_METADATA_VERSION= SUITE_FEATURES= SUITE_TEST=tools SUITE_HERE=$here
  cmd=${BROKER_CMD//\{port\}/$p1}; cmd=${cmd//\{data\}/$SUITE_DATA}; cmd=${cmd//\{props\}/$SUITE_PROPS}; cmd=${cmd//\{node_id\}/0}
  setsid bash -c "$cmd" > "$out/broker/output.log" 2>&1 < /dev/null & broker=$!
  trap 'kill -TERM -- -$broker 2>/dev/null; wait $broker 2>/dev/null' EXIT
  BOOTSTRAP=localhost:$p1
fi
B="--bootstrap-server $BOOTSTRAP"; g=tools-group; t=tools-topic; r=org.apache.kafka.tools
passed=0; failed=0
# tool NAME 'REGEX that the output must have' CLASS ARGS...: 60 s at most each; an empty REGEX: no exception in it
tool() {
  local name=$1 want=$2 rc; shift 2
  TOOL_LOG=$out/$name.log timeout 60 java -Xmx512m -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile="$out/log4j2.properties" -cp "$KAFKA_LIBS/*" "$@" \
    > "$out/$name.out" 2>&1 < "${STDIN:-/dev/null}"; rc=$?
  local apis; apis=$(grep -oE 'apiKey=[A-Z_]+, apiVersion=[0-9]+' "$out/$name.log" 2>/dev/null | sed 's/apiKey=//; s/, apiVersion=/ v/' | sort -u | paste -sd, | sed 's/,/, /g')
  local s=pass
  { [ $rc -eq 0 ] || { [ "${RC_OK:-0}" = "$rc" ]; }; } && { [ -z "$want" ] || grep -qE -- "$want" "$out/$name.out"; } || s=FAIL
  [ -n "$want" ] || ! grep -qE 'Exception|^Error' "$out/$name.out" || s=FAIL
  [ $s = pass ] && passed=$((passed+1)) || failed=$((failed+1))
  printf '%s\trc %s\t%s\t%s\n' "$s" "$rc" "$name" "$apis" | tee -a "$out/tools.tsv"
}
S=$r.consumer.group.ShareGroupCommand
for i in $(seq 60); do   # ready when a topic listing works
  TOOL_LOG=/dev/null timeout 20 java -Xmx256m -Dlog4j2.configurationFile="$out/log4j2.properties" -cp "$KAFKA_LIBS/*" $r.TopicCommand $B --list > "$out/ready.out" 2>&1 && break; sleep 1; done

tool topics-create 'Created topic' $r.TopicCommand $B --create --topic $t --partitions 2 --replication-factor 1
tool topics-describe 'PartitionCount: 2' $r.TopicCommand $B --describe --topic $t
tool topics-alter '' $r.TopicCommand $B --alter --topic $t --partitions 3
tool topics-list "$t" $r.TopicCommand $B --list
tool configs-groups-alter 'Completed updating' kafka.admin.ConfigCommand $B --alter --entity-type groups --entity-name $g --add-config share.auto.offset.reset=earliest,share.record.lock.duration.ms=10000
tool configs-groups-describe 'share.auto.offset.reset=earliest' kafka.admin.ConfigCommand $B --describe --entity-type groups --entity-name $g
tool configs-groups-describe-all 'share.heartbeat.interval.ms=' kafka.admin.ConfigCommand $B --describe --all --entity-type groups --entity-name $g
seq 1 30 | sed 's/^/line-/' > "$out/lines.txt"
STDIN=$out/lines.txt tool console-producer '' $r.ConsoleProducer $B --topic $t
tool console-share-consumer 'Processed a total of 10 messages' $r.consumer.ConsoleShareConsumer $B --topic $t --group $g --max-messages 10 --timeout-ms 20000
tool console-share-consumer-reject 'Processed a total of 5 messages' $r.consumer.ConsoleShareConsumer $B --topic $t --group $g --reject --max-messages 5 --timeout-ms 20000
# an active member, while --describe --members looks
TOOL_LOG=$out/member.log java -Xmx256m -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile="$out/log4j2.properties" -cp "$KAFKA_LIBS/*" \
  $r.consumer.ConsoleShareConsumer $B --topic $t --group $g > "$out/member.out" 2>&1 < /dev/null & member=$!
for i in $(seq 40); do grep -q 'SHARE_FETCH' "$out/member.log" 2>/dev/null && break; sleep 0.5; done; sleep 6
tool share-groups-list "$g" $S $B --list
tool share-groups-list-state 'Stable' $S $B --list --state
tool share-groups-describe "$t" $S $B --describe --group $g
tool share-groups-describe-offsets-verbose 'LEADER-EPOCH' $S $B --describe --group $g --offsets --verbose
tool share-groups-describe-members-verbose 'MEMBER-EPOCH' $S $B --describe --group $g --members --verbose
tool share-groups-describe-state 'Stable' $S $B --describe --group $g --state --verbose
RC_OK=1 tool share-groups-delete-nonempty 'not empty|NON_EMPTY|GroupNotEmpty' $S $B --delete --group $g
kill -TERM $member; wait $member 2>/dev/null; sleep 1
tool share-groups-describe-all "$t" $S $B --describe --all-groups
tool share-groups-reset-dry-run "$t" $S $B --reset-offsets --group $g --topic $t --to-earliest --dry-run
tool share-groups-reset-earliest "$t" $S $B --reset-offsets --group $g --topic $t --to-earliest --execute
tool share-groups-reset-datetime "$t" $S $B --reset-offsets --group $g --topic $t --to-datetime 2020-01-01T00:00:00.000 --execute
tool share-groups-reset-latest-all-topics "$t" $S $B --reset-offsets --group $g --all-topics --to-latest --execute
tool producer-perf '20000 records sent' $r.ProducerPerformance $B --topic $t --num-records 20000 --record-size 100 --throughput -1
tool producer-perf-transactional '5000 records sent' $r.ProducerPerformance $B --topic $t --num-records 5000 --record-size 100 --throughput -1 --transactional-id tools-tx --transaction-duration-ms 200
tool verifiable-producer 'producer_send_success' $r.VerifiableProducer $B --topic $t --max-messages 100
tool configs-groups-alter-2 'Completed updating' kafka.admin.ConfigCommand $B --alter --entity-type groups --entity-name perf-group --add-config share.auto.offset.reset=earliest
tool share-consumer-perf '20[0-9]{3}' $r.ShareConsumerPerformance $B --topic $t --group perf-group --num-records 20000 --timeout 30000 --show-consumer-stats --threads 2
tool verifiable-share-consumer 'offsets_acknowledged' $r.VerifiableShareConsumer $B --topic $t --group-id verif-group --max-messages 1000 --offset-reset-strategy earliest --acknowledgement-mode sync
tool verifiable-share-consumer-async 'offsets_acknowledged' $r.VerifiableShareConsumer $B --topic $t --group-id verif-group-2 --max-messages 1000 --offset-reset-strategy earliest --acknowledgement-mode async
tool share-groups-delete-offsets "$t" $S $B --delete-offsets --group $g --topic $t
tool share-groups-delete 'was successful' $S $B --delete --group $g
RC_OK=1 tool share-groups-describe-gone 'not exist|not found|not a share group|does not' $S $B --describe --group $g
tool groups-list 'perf-group' $r.GroupsCommand $B --list
tool topics-delete '' $r.TopicCommand $B --delete --topic $t
echo "outputs: $out"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
