"""A process that is killed in the middle of long work: the next one does the rest."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from journals import begin, truth_of
from probes import wait_until
from support import APP, PARTITION, Recorder

from yunikorn_actors.journal import Journal
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.state.partition import LongWork, LongWorkKind, PartitionState
from yunikorn_actors.state.snapshot import restore

ASKS = 1_000
STALLED = "between two slices"
REMOVING = """
import sys, time
from journals import begin
from support import APP, RM, Recorder, ask
from yunikorn_actors import si
from yunikorn_actors.machines.context import context
from yunikorn_actors.messages.scheduling import RunSlice
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
folder, asks, slices, stalled = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
go_on, left = context.HANDLERS[RunSlice], []
def stalling(machine, message, now_ns):
    # This slice is never begun: all before it are done, and on the disk.
    if left and not left.pop():
        print(stalled, flush=True)
        time.sleep(600)
    return go_on(machine, message, now_ns)
context.HANDLERS[RunSlice] = stalling
core = SchedulerCore(journal=folder).start()
begin(core, Recorder())
waiting = tuple(ask(f"k{number}", 1000) for number in range(asks))
for start in range(0, asks, 50):
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=waiting[start : start + 50]))
while not core.is_settled():
    time.sleep(0.01)
left.extend([False, *[True] * slices])
gone = (si.RemoveApplicationRequest(application_id=APP),)
core.update_application(si.ApplicationRequest(rm_id=RM, remove=gone))
time.sleep(600)
"""


@pytest.mark.parametrize("slices", [0, 3])
def test_the_next_core_does_the_rest_of_what_a_killed_one_had_begun(
    tmp_path: Path, slices: int
) -> None:
    tests = Path(__file__).parent.parent
    child = subprocess.Popen(
        [sys.executable, "-c", REMOVING, str(tmp_path), str(ASKS), str(slices), STALLED],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{tests / 'helpers'}:{tests.parent}"},
    )
    assert child.stdout is not None
    assert f"{STALLED}\n" == child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.stdout.close()
    assert -signal.SIGKILL == child.wait()
    _is_half_done(tmp_path, slices)
    with SchedulerCore(journal=tmp_path) as core:
        wait_until(core.is_settled)
        [partition] = core.state_dump()["partitions"].values()
        assert {} == partition["applications"]
        assert not any(partition["queues"]["root"]["pending"].values())
        done = truth_of(core)
        begin(core, Recorder())
        wait_until(core.is_settled)
        assert [APP] == list(core.state_dump()["partitions"][PARTITION]["applications"])
    assert "long_work" not in str(done)


def _is_half_done(folder: Path, slices: int) -> None:
    """The kill fell between two slices: some asks are gone, and the mark names what is left."""
    journal = Journal(folder)
    try:
        assert journal.restored is not None
        state = PartitionState(PARTITION)
        restore(state, journal.restored.images[PARTITION])
        assert LongWork(LongWorkKind.APPLICATION, APP) == state.long_work
        gone = ASKS - len(state.applications[APP].asks)
        assert 100 * slices < gone < ASKS
    finally:
        journal.close()
