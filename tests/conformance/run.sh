#!/bin/bash
# Runs the official ShareConsumerTest (and others) of Apache Kafka 4.3.1 against an external broker. See README.md.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
filter='.*'; timeout=0; repeat=1
consumer=(org.apache.kafka.clients.consumer.ShareConsumerTest 'org.apache.kafka.clients.consumer.ShareConsumerRackAwareTest' 'org.apache.kafka.clients.consumer.ShareConsumerRackAwareTest$WithAssignmentBatchingDisabledTest')
picked=()
usage() { cat <<U
usage: BROKER_CMD='...' $0 [--filter REGEX] [--timeout SECONDS] [--class NAME]... [--repeat N] [--list]
  --filter   methods whose name matches REGEX wholly, e.g. 'testRenew.*'      (default: all)
  --timeout  limit for one test, set-up included; replaces the limits of the annotations (60 s for most)
  --class    another class of the test jar, in place of ShareConsumerTest and ShareConsumerRackAwareTest
  --list     only print the names of the tests
environment: BROKER_CMD (needed), CONTROLLER_CMD, MAX_BROKERS, SUITE_SCRATCH, SUITE_RESULTS, START_TIMEOUT, STOP_TIMEOUT, KEEP_DATA
U
}
list=0
while [ $# -gt 0 ]; do case $1 in
  --filter) filter=$2; shift 2;;
  --timeout) timeout=$2; shift 2;;
  --class) picked+=("$2"); shift 2;;
  --repeat) repeat=$2; shift 2;;
  --list) list=1; shift;;
  *) usage; exit 2;;
esac; done
classes=("${consumer[@]}")
[ ${#picked[@]} -eq 0 ] || classes=("${picked[@]}")

root=$(cd "$here/../.." && pwd)
export SUITE_SCRATCH=${SUITE_SCRATCH:-$root/build/conformance}
export SUITE_RESULTS=${SUITE_RESULTS:-$SUITE_SCRATCH/results}
export KAFKA_LIBS=${KAFKA_LIBS:-$root/build/jars/kafka-4.3.1}
export SUITE_TEST_TIMEOUT=$timeout SUITE_HERE=$here
mkdir -p "$SUITE_SCRATCH" "$SUITE_RESULTS"
libs=$KAFKA_LIBS; built=$SUITE_SCRATCH/classes
[ -f "$libs/.done" ] || make -C "$root" jars >&2
rm -rf "$built"; mkdir -p "$built"
javac -nowarn -proc:none -d "$built" -cp "$libs/*" $(find "$here/src" -name '*.java')
cp -r "$here/src/META-INF" "$here/src/log4j2.properties" "$built/"

if [ $list = 1 ]; then
  for c in "${classes[@]}"; do javap -cp "$libs/*" "$c" | sed -n 's/.* void \(test[A-Za-z0-9_]*\)(.*/\1/p' | sort; done; exit
fi
: "${BROKER_CMD:?a shell command that becomes the broker; see README.md}"
select=(); for c in "${classes[@]}"; do select+=(--select-class "$c"); done
# Class loading is by the order of the class path: ours shadows RaftClusterInvocationContext
mode=enabled; [ "$timeout" = 0 ] || mode=disabled
rm -f "$SUITE_RESULTS"/{results.tsv,apis.tsv,failures.txt}; rm -rf "$SUITE_SCRATCH/run"
began=$(date +%s); : > "$SUITE_RESULTS/console.log"
set +e
java ${SUITE_JAVA_OPTS:--Xmx1g} -Dkafka.cluster.test.repeat="$repeat" -cp "$built:$libs/*" org.junit.platform.console.ConsoleLauncher execute \
  "${select[@]}" --include-classname '.*' --include-methodname ".*#($filter)" \
  --config junit.jupiter.extensions.autodetection.enabled=true \
  --config junit.jupiter.execution.timeout.mode=$mode \
  --reports-dir "$SUITE_RESULTS/junit-xml" --details=none --disable-banner --disable-ansi-colors >> "$SUITE_RESULTS/console.log" 2>&1 &
pid=$!
trap 'kill -TERM $pid 2>/dev/null' TERM INT
( tail -n +1 -f --pid=$pid "$SUITE_RESULTS/console.log" 2>/dev/null | grep --line-buffered -E '^(pass|FAIL|skip)\s' >&2 )
wait $pid; status=$?
set -e
touch "$SUITE_RESULTS/results.tsv"
echo
awk -F'\t' 'BEGIN { printf "%-5s %7s  %-100s %s\n", "", "sec", "test", "reason" }
  { printf "%-5s %7.1f  %-100s %s\n", $1, $2, $3, substr($4, 1, 220) }' "$SUITE_RESULTS/results.tsv"
echo
[ $status -le 2 ] || echo "the test JVM ended with status $status before all tests had run; see $SUITE_RESULTS/console.log"
echo "results: $SUITE_RESULTS (junit-xml/, results.tsv, failures.txt, apis.tsv), $(( $(date +%s) - began )) s"
awk -F'\t' '{ n[$1]++ } END { printf "%d passed, %d failed, %d skipped\n", n["pass"], n["FAIL"], n["skip"]; exit n["FAIL"] > 0 || NR == 0 }' "$SUITE_RESULTS/results.tsv"
