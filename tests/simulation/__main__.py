"""A whole broker in one loop: `make simulate`."""

from __future__ import annotations

import argparse
import sys

from tests.simulation.canaries import CANARIES
from tests.simulation.run import canaries, one, swarm
from tests.simulation.swarm import ACTORS, FAULTS, Plan


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="this simulation; fresh ones without it")
    parser.add_argument("--events", type=int, default=20_000, help="about how long the actors of each act")
    parser.add_argument("--simulations", type=int, default=50, help="how many fresh ones")
    parser.add_argument("--seconds", type=float, default=0, help="as many as begin in this time, instead")
    parser.add_argument(
        "--faults", default="", help=f"all, none, or of {', '.join((*ACTORS, *FAULTS))}; drawn without it"
    )
    parser.add_argument("--canary", default="", choices=["", "all", *CANARIES], help="a bug to plant")
    parser.add_argument("--lines", action="store_true", help="print the end of the log of one that went well")
    options = parser.parse_args()

    def say(text: str) -> None:
        print(text, flush=True)

    try:
        if options.canary == "all":
            return 0 if canaries(CANARIES, say) else 1
        if options.seed is None:
            return (
                0 if swarm(options.simulations, options.seconds, options.events, options.faults, say) else 1
            )
        faults = options.faults or (CANARIES[options.canary].features if options.canary else "")
        plan = Plan.drawn(options.seed, options.events, faults, options.canary)
    except ValueError as error:
        parser.error(str(error))
    return 0 if one(plan, say, all_lines=options.lines) else 1


if __name__ == "__main__":
    sys.exit(main())
