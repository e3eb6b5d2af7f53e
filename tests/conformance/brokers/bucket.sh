#!/bin/bash
# BROKER_CMD for sharecore with a home in a bucket, a directory beside its data directory.
set -eu
: "${SUITE_DATA:?}"
mkdir -p "$SUITE_DATA.bucket"
exec "$(dirname "$0")/sharecore.sh" --set sharecore.durability=bucket --set "sharecore.bucket.url=file://$SUITE_DATA.bucket"
