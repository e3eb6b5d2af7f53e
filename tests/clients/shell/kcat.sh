#!/usr/bin/env bash
# kcat: BOOTSTRAP TOPIC GROUP COUNT
set -euo pipefail
bootstrap=$1 topic=$2 group=$3 count=$4
last=$((count - 1))
seq 0 "$last" | awk '{ print "k" $1 % 10 ":" $1 }' |
	kcat -P -b "$bootstrap" -t "$topic" -K : -X enable.idempotence=true -X acks=all
seq 0 "$last" | sed 's/^/produced /'
read_some() {
	kcat -G "$group" -b "$bootstrap" -X auto.offset.reset=earliest -q -f 'consumed %s\n' -c "$1" "$topic"
}
read_some $((count / 2))
read_some $((count - count / 2))
