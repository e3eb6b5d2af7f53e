"""A whole broker in one loop: `make simulate`."""

from __future__ import annotations

import argparse
import sys

from tests.simulation.run import WORLDS, canaries, one, swarm


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="this simulation; fresh ones without it")
    parser.add_argument("--events", type=int, default=20_000, help="about how long the actors of each act")
    parser.add_argument("--simulations", type=int, default=50, help="how many fresh ones")
    parser.add_argument("--seconds", type=float, default=0, help="as many as begin in this time, instead")
    parser.add_argument("--drawn-from", default="", help="what the seeds follow from, as the id of a commit")
    parser.add_argument("--world", default="", choices=sorted(WORLDS), help="a broker, or a tier of nodes")
    parser.add_argument(
        "--faults", default="", help="all, none, or actors and faults by name; drawn without it"
    )
    parser.add_argument("--canary", default="", help="a bug to plant, or all: must be found")
    parser.add_argument("--lines", action="store_true", help="print the end of the log of one that went well")
    options = parser.parse_args()
    kind = WORLDS[options.world]
    if options.canary not in ("", "all", *kind.canaries):
        parser.error(f"--canary {options.canary}: allowed are all, {', '.join(kind.canaries)}")

    def say(text: str) -> None:
        print(text, flush=True)

    try:
        if options.canary and options.seed is None:
            names = kind.canaries if options.canary == "all" else [options.canary]
            return 0 if canaries(names, say, options.world) else 1
        if options.seed is None:
            count, seconds, events = options.simulations, options.seconds, options.events
            drawn_from = options.drawn_from
            done = swarm(count, seconds, events, options.faults, say, options.world, drawn_from)
            return 0 if done else 1
        faults = options.faults or (kind.canaries[options.canary].features if options.canary else "")
        plan = kind.plan.drawn(options.seed, options.events, faults, options.canary)
    except ValueError as error:
        parser.error(str(error))
    return 0 if one(plan, say, all_lines=options.lines) else 1


if __name__ == "__main__":
    sys.exit(main())
