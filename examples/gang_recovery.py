"""A gang goes on after a crash: what runs keeps its room, and what is missing is asked for.

Run it with `python examples/gang_recovery.py`. It starts a gang of three workers, crashes when two
of them run, and starts again. Each worker is a process of its own, so it outlives the crash.
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from yunikorn_actors import Running, Scheduler

GANG = {"worker": {"count": 3, "vcore": 2}}


def main(home: Path, crash_after: str = "") -> None:
    kept = [Running(**json.loads(file.read_text())) for file in sorted(home.glob("*.json"))]
    with Scheduler() as s:
        # Room for all three or for none. Those that run are taken off the gang.
        app = s.application("train", user="ann", gang=GANG, gang_style="Hard", running=kept)
        leases = []
        for node in ("node-1", "node-2"):
            leases += s.add_node(node, vcore=4, running=[k for k in kept if k.node_id == node])
        for lease in leases:
            print(f"{lease.key} runs on {lease.node_id} already", flush=True)
        for key in sorted({"worker-1", "worker-2", "worker-3"} - {it.key for it in kept}):
            leases.append(lease := app.ask(key, group="worker").result(timeout=60))
            print(f"{key} starts on {lease.node_id}", flush=True)
            work = f"sleep 0.5; touch {home / key}.done"
            subprocess.Popen(["sh", "-c", work], start_new_session=True)  # noqa: S603, S607
            (home / f"{key}.json").write_text(json.dumps(asdict(lease.running)))
            if key == crash_after:
                os._exit(1)
        for lease in leases:
            while not (home / f"{lease.key}.done").exists() and not lease.wanted_back.wait(0.05):
                pass
            lease.release()
            (home / f"{lease.key}.json").unlink()
        print("all are done", flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]), *sys.argv[2:])
    else:
        with TemporaryDirectory() as home:
            subprocess.run([sys.executable, __file__, home, "worker-2"], check=False)  # noqa: S603
            print("it has crashed", flush=True)
            main(Path(home))
