"""Replicas of a service spread over zones: a node is lost in the middle, and they stay spread.

Run it with `python examples/spread.py`. Each replica is asked for again when its lease is lost.
"""

import sys
from collections import Counter

from yunikorn_actors import Application, Lease, Scheduler

NODES = {"n-1": "north", "n-2": "north", "n-3": "south", "n-4": "south", "n-5": "east"}
REPLICAS = [f"replica-{number}" for number in range(1, 7)]


def run(app: Application, key: str) -> Lease:
    """Ask for room in the zone that has the fewest of them."""
    return app.ask(key, vcore=1, spread="zone").result(timeout=10)


def main() -> int:
    with Scheduler() as s, s.events("lease_over") as over:
        for node, zone in NODES.items():
            s.add_node(node, vcore=4, attributes={"zone": zone})
        app = s.application("shop", user="web", stays=True)
        running = {key: run(app, key) for key in REPLICAS}
        print("at first:", *zones(running))
        gone = next(it.node_id for it in running.values() if NODES[it.node_id] == "north")
        lost = [key for key, it in running.items() if it.node_id == gone]
        s.remove_node(gone)
        for _ in lost:
            event = next(over)
            if event.kind == "lease_over":
                running[event.lease.key] = run(app, event.lease.key)
        print(f"after the loss of a node with {len(lost)}:", *zones(running))
        # As even as before, with fewer nodes.
        return 0 if {2} == {*Counter(NODES[it.node_id] for it in running.values()).values()} else 1


def zones(running: dict[str, Lease]) -> list[str]:
    counts = Counter(NODES[it.node_id] for it in running.values())
    return [f"{zone} {count}" for zone, count in sorted(counts.items())]


if __name__ == "__main__":
    sys.exit(main())
