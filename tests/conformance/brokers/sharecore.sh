#!/bin/bash
# BROKER_CMD for sharecore. Reads the SUITE_* variables that the harness sets.
set -eu
: "${SUITE_NODE_ID:?}" "${SUITE_PORT:?}" "${SUITE_DATA:?}" "${SUITE_PROPS:?}"
features=$(tr ',' '\n' <<<"${SUITE_FEATURES:-}" | grep -E '^(group|share|transaction)\.' | paste -sd, || true)
root=$(cd "$(dirname "$0")/../../.." && pwd)
exec "${SHARECORE:-$root/.venv/bin/sharecore}" serve --config "$SUITE_PROPS" --data-dir "$SUITE_DATA" \
  --set "sharecore.features=$features" \
  --set "listeners=PLAINTEXT://$SUITE_HOST:$SUITE_PORT" --set "node.id=$SUITE_NODE_ID" "$@"
