#!/bin/bash
# Both halves of Apache's tests side by side, then Apache's tools, on sharecore; then the table in docs/compatibility.md.
set -u
here=$(cd "$(dirname "$0")" && pwd); root=$(cd "$here/../.." && pwd); scratch=$root/build/conformance
export BROKER_CMD=${BROKER_CMD:-$here/brokers/sharecore.sh}
for half in A-L M-Z; do
  SUITE_SCRATCH=$scratch/$half "$here/run.sh" --filter "test[$half].*" > "$scratch-$half.log" & pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
tail -n 1 "$scratch"-A-L.log "$scratch"-M-Z.log
SUITE_SCRATCH=$scratch/tools "$here/tools.sh"
exec "${PYTHON:-python3}" "$here/compatibility.py" "$scratch"
