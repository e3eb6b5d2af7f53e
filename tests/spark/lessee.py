"""The driver's side of a query without Spark: leases a batch, says what it leased, and waits for its end.

python -m tests.spark.lessee OPTIONS COMMITTED, OPTIONS as JSON. Where COMMITTED is 1, the checkpoint holds
the batch as Spark leaves it behind a commit.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from sharecore.spark.reader import ShareGroupReader


def main() -> None:
    options, committed = json.loads(sys.argv[1]), sys.argv[2] == "1"
    reader = ShareGroupReader(options)
    start = reader.initialOffset()
    end = start
    while end["sequence"] == 0:
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
    checkpoint = Path(options["checkpointLocation"])
    for name, text in (("offsets", json.dumps(end)), ("commits", "{}")) if committed else ():
        (checkpoint / name).mkdir(parents=True)
        (checkpoint / name / "0").write_text(f"v1\n{{}}\n{text}")
    print(json.dumps(end), flush=True)
    time.sleep(120)


if __name__ == "__main__":
    main()
