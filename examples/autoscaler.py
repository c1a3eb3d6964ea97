"""An autoscaler: nodes come for what waits for room, and go when they have had no work for a while.

Run it with `python examples/autoscaler.py`, or with a number of jobs behind that.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from math import ceil

from yunikorn_actors import Application, Cause, Scheduler

VCORE, NODES_MAX, IDLE_S = 4, 3, 0.5
NAMES = (f"node-{number}" for number in count(1))


def scale(s: Scheduler) -> None:
    """Look at what waits and what is idle; where a quota refuses, another node does not help."""
    waits = [it for it in s.waiting() if it.cause in {Cause.NO_NODE, Cause.CLUSTER_FULL}]
    vcore = sum(it.resources["vcore"] for it in waits if not it.required_nodes) / 1000
    for _ in range(min(ceil(vcore / VCORE), NODES_MAX - len(s.nodes))):
        # Here a computer would be started; it comes when it is there.
        s.add_node(name := next(NAMES), vcore=VCORE)
        print(f"+ {name} for {vcore:g} vcore that wait", flush=True)
    for node in s.nodes.values():
        idle = node.idle_since is not None and time.monotonic() - node.idle_since > IDLE_S
        # In two steps: what was placed just before the drain is seen at the next look.
        if idle and node.drained:
            node.remove()
            print(f"- {node.id}", flush=True)
        elif idle:
            node.drain()


def work(app: Application, key: str) -> None:
    with app.ask(key, vcore=1).result():
        time.sleep(0.2)


def main(jobs: int) -> None:
    with ThreadPoolExecutor(jobs) as threads, Scheduler() as s:
        app = s.application("jobs", user="ann")
        runs = [threads.submit(work, app, f"job-{number}") for number in range(jobs)]
        while s.nodes or not all(run.done() for run in runs):
            scale(s)
            time.sleep(0.1)
        print(f"{sum(run.exception() is None for run in runs)} jobs are done", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 20)
