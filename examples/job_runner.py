"""A job runner: commands run as processes, as many at a time as the queues of two teams allow.

Run it with `python examples/job_runner.py`, or with jobs of your own, each as TEAM:VCORE:COMMAND:
`python examples/job_runner.py "web:1:sleep 3" "data:500m:du -s ."`. Ctrl-C ends all that runs.
"""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait

from yunikorn_actors import Application, Scheduler

# In a configuration a bare vcore is a whole cpu. Both teams together may have more than there is.
QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues: [{name: web, resources: {max: {vcore: 2}}}, {name: data, resources: {max: {vcore: 3}}}]
"""
JOBS = ["web:1:echo built", "web:1:echo tested", "data:2:echo sorted", "data:500m:exit 3"]


def run(team: Application, key: str, vcore: str, command: str) -> int:
    """Wait for room, and keep it for as long as the process runs."""
    with team.ask(key, vcore=vcore).result() as lease:
        process = subprocess.Popen(["sh", "-c", command], start_new_session=True)  # noqa: S603, S607
        while process.poll() is None:
            # Preempted, or lost with its node or with the scheduler: then the process has to go.
            if lease.wanted_back.wait(timeout=0.05):
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
    sys.stdout.write(f"{key} on {lease.node_id}: exit {process.returncode} {lease.reason}\n")
    return process.returncode


def main(jobs: list[str]) -> int:
    # The scheduler is closed before the threads are waited for: that ends what they wait for.
    with ThreadPoolExecutor(len(jobs)) as threads, Scheduler(QUEUES) as s:
        s.add_node("here", vcore=4)
        teams = {it: s.application(it, queue=f"root.{it}", user=it) for it in ("web", "data")}
        runs = []
        for number, job in enumerate(jobs, 1):
            team, vcore, command = job.split(":", 2)
            runs.append(threads.submit(run, teams[team], f"{team}-{number}", vcore, command))
        # Again and again: a ctrl-C just before a wait without an end would not be seen.
        while wait(runs, timeout=1).not_done:
            pass
        return max(abs(it.result()) for it in runs)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:] or JOBS))
    except KeyboardInterrupt:
        sys.exit(130)
