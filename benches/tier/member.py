"""A member of a share group that takes what comes: member BOOTSTRAP GROUP TOPIC [SETTING=VALUE ...].

For each line of its input it says how many records it has, and when the first and the last came, in ns.
"""

from __future__ import annotations

import sys
import threading
import time

from tests.harness.clients import share_consumer


def main(bootstrap: str, group: str, topic: str, *more: str) -> None:
    count, first, last = 0, 0, 0

    def tell() -> None:
        for _ in sys.stdin:
            print(count, first, last, flush=True)
            time.sleep(0.05)

    threading.Thread(target=tell, daemon=True).start()
    settings = {"share.acknowledgement.mode": "implicit"} | dict(each.split("=", 1) for each in more)
    with share_consumer(bootstrap, group, [topic], **settings) as consumer:
        while True:
            found = len(consumer.poll(1))
            if found:
                last = time.monotonic_ns()
                first = first or last
                count += found


if __name__ == "__main__":
    main(*sys.argv[1:])
