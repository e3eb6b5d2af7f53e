#!/bin/bash
# BROKER_CMD (and CONTROLLER_CMD) for a node of a tier in front of the cluster at UPSTREAM (host:port), which each test finds as
# good as new. A tier has no controller: what is started for one empties the cluster, and accepts connections.
# Reads the SUITE_* variables that the harness sets.
set -eu
: "${UPSTREAM:?}" "${SUITE_NODE_ID:?}" "${SUITE_PORT:?}" "${SUITE_DATA:?}" "${SUITE_PROPS:?}"
here=$(cd "$(dirname "$0")" && pwd); root=$(cd "$here/../../.." && pwd)
# the nodes of one test are one tier, and those of the next are another
state=__state-$(cksum <<<"${SUITE_TEST:-}$(dirname "$(dirname "$SUITE_DATA")")" | cut -d' ' -f1)
python=${PYTHON:-$root/.venv-test/bin/python}
if [ "${SUITE_STARTS:-0}" = 0 ] && { [ "$SUITE_ROLE" = controller ] || [ -z "${SUITE_CONTROLLER:-}" ]; }; then
  "$python" "$here/empty.py" "$UPSTREAM" "$state"
fi
[ "$SUITE_ROLE" = broker ] || exec "$python" -m http.server --bind "$SUITE_HOST" --directory "$SUITE_DATA" "$SUITE_PORT"
# copies are the cluster's affair
settings=$(dirname "$SUITE_PROPS")/node.properties
grep -vE '^(offsets\.topic|transaction\.state\.log|share\.coordinator\.state\.topic)\.' "$SUITE_PROPS" > "$settings"
slots=$(sed -n 's/^share.coordinator.state.topic.num.partitions=//p' "$SUITE_PROPS")
exec "${SHARECORE:-$root/.venv/bin/sharecore}" serve --upstream "$UPSTREAM" --config "$settings" \
  --set "sharecore.tier.state.topic=$state" --set "sharecore.tier.slots=${slots:-3}" \
  --set sharecore.tier.replication.factor=1 --set sharecore.tier.min.insync.replicas=1 \
  --set "listeners=PLAINTEXT://$SUITE_HOST:$SUITE_PORT" --set "node.id=$SUITE_NODE_ID"
