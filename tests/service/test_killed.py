"""A service that is killed under load, again and again: nothing is lost, and nothing comes twice."""

import shutil
import signal
import threading
import time
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("grpc")
from churning import BURST, Churner, uuids_of
from commands import starting
from journals import truth_of
from probes import wait_until

from yunikorn_actors import RemoteCore, SchedulerCore
from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.headers import COUNTED, SNAPSHOT, first_header

HELD = 200
PATCHED = """
import sys
from yunikorn_actors.cli import main
from yunikorn_actors.journal import journaled_context, writing
# New files and snapshots all the time, so that the end comes in the middle of that.
writing.ROTATE_BYTES, writing.ROTATE_SNAPSHOTS, journaled_context.TALLY_EVERY = 2**18, 1, 7
sys.exit(main(sys.argv[1:]))
"""


def digest_in(folder: Path, number: int) -> str:
    """Read the digest of a state from the snapshot that a start has made."""
    header = first_header(Folder(folder).file(SNAPSHOT, number))
    assert header is not None
    return header.state


@pytest.mark.parametrize(
    ("seed", "times"),
    [(1, 1), pytest.param(2, 20, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])],
)
def test_a_service_that_is_killed_under_load_loses_nothing_and_tells_nothing_twice(
    tmp_path: Path, seed: int, times: int
) -> None:
    folder, random = tmp_path / "journal", Random(seed)  # noqa: S311
    rm = Churner(HELD)
    with starting() as start:
        running = start("--journal", str(folder), program=("-c", PATCHED))
        core = RemoteCore(running.address).start()
        rm.register(core)
        for life in range(times):
            told = len(rm.told)
            churning = threading.Thread(target=rm.churn, args=(core,))
            churning.start()
            wait_until(lambda enough=told + HELD + BURST: len(rm.told) >= enough or rm.faults)
            time.sleep(random.uniform(0.0, 1.0))
            running.end(signal.SIGKILL)
            churning.join()
            core.stop()
            copy = tmp_path / f"copy-{life}"
            shutil.copytree(folder, copy)
            number = max(Folder(copy).numbers(*COUNTED)) + 1

            running = start("--journal", str(folder), program=("-c", PATCHED))
            core = RemoteCore(running.address).start()
            assert rm.running.keys() <= uuids_of(core), "what was told is known"
            with SchedulerCore(journal=copy) as again:
                assert truth_of(again) == truth_of(core)
            assert digest_in(copy, number) == digest_in(folder, number)
            shutil.rmtree(copy)
            rm.register(core)
            rm.check(core)
        core.stop()
        assert 0 == running.end()[0]
    assert len(rm.told) > times * HELD
