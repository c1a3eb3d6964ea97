"""Policies and a journal: what they keep survives a kill, and another policy is noticed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from probes import wait_until

from tests.sim.test_journaled_folds import SecondsRun
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.policies import Policy
from yunikorn_actors.policies.registry import MissingPolicy, PolicyChanged, digest_of
from yunikorn_actors.runtime.scheduler_core import SchedulerCore

MINE: Mapping[str, Policy] = {"mine": SecondsRun}
CHILD = """
import json, sys, time
from pathlib import Path
from support import RM, Recorder, ask
from yunikorn_actors import si
from yunikorn_actors.journal import journaled_context, writing
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from tests.sim.test_journaled_folds import SecondsRun
# New files and snapshots all the time; what is noted lies some entries back.
writing.ROTATE_BYTES, writing.ROTATE_SNAPSHOTS, journaled_context.TALLY_EVERY = 2**14, 0, 40
folder, topology = sys.argv[1:]
config = '''
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: default, properties: {application.sort.policy: mine}}
'''
policies = {"mine": SecondsRun}
core = SchedulerCore(journal=folder, topology=topology, policies=policies).start()
rm = Recorder()
core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id=RM, config=config), rm)
size = si.Resource.of({"vcore": 4})
node = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE, schedulable_resource=size)
core.update_node(si.NodeRequest(rm_id=RM, nodes=(node,)))
more, number = 30, 0
while more:
    # Until there is a snapshot, and a little more.
    more -= bool(number > 100 and any(Path(folder).glob("snapshot-*")))
    number += 1
    name = f"app-{number}"
    app = si.AddApplicationRequest(application_id=name, queue_name="root.default",
        ugi=si.UserGroupInformation(user=f"user-{number % 3}"))
    core.update_application(si.ApplicationRequest(rm_id=RM, new=(app,)))
    one = ask(f"k{number}", application_id=name)
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=(one,)))
    while not core.is_settled():
        time.sleep(0.001)
    gone = si.AllocationRelease(application_id=name, uuid=next(reversed(rm.running)))
    releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
    core.update_allocation(si.AllocationRequest(rm_id=RM, releases=releases))
    while not core.is_settled():
        time.sleep(0.001)
print(json.dumps(core.state_dump()["folds"]), flush=True)
time.sleep(600)
"""


def killed(folder: Path, topology: TopologyName) -> dict[str, Any]:
    """Kill a core that has worked; return what its policies kept."""
    tests = Path(__file__).parent.parent
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), topology],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{tests / 'helpers'}:{tests.parent}"},
    )
    assert child.stdout is not None
    try:
        told = child.stdout.readline()
    finally:
        child.send_signal(signal.SIGKILL)
        child.stdout.close()
    assert -signal.SIGKILL == child.wait()
    kept: dict[str, Any] = json.loads(told)
    return kept


@pytest.mark.parametrize("topology", ["fused", pytest.param("proposing", marks=pytest.mark.slow)])
def test_what_a_policy_keeps_survives_a_kill(tmp_path: Path, topology: TopologyName) -> None:
    kept = killed(tmp_path, topology)
    [[name, fold]] = [it["root.default"] for it in kept.values()]
    assert name == "mine"
    assert len(fold["seen"]) >= 360
    assert len(fold["ran_ns"]) == 3
    assert len([*tmp_path.glob("snapshot-*")]) > 0, "it began from a snapshot"
    for _ in range(2):
        with SchedulerCore(journal=tmp_path, topology=topology, policies=MINE) as core:
            wait_until(core.is_settled)
            assert core.state_dump()["folds"] == kept


def test_a_journal_knows_the_policies_that_decided(tmp_path: Path) -> None:
    class Another(SecondsRun):
        pass

    kept = killed(tmp_path, "fused")
    before = {it.name: it.read_bytes() for it in tmp_path.iterdir() if it.is_file()}
    with pytest.raises(MissingPolicy, match=r"journal .*'mine', which is not given: give it"):
        SchedulerCore(journal=tmp_path).start()
    assert before == {it.name: it.read_bytes() for it in tmp_path.iterdir() if it.is_file()}
    was, now = digest_of(SecondsRun), digest_of(Another)
    core = SchedulerCore(journal=tmp_path, policies={"mine": Another})
    with pytest.warns(PolicyChanged, match=rf"'mine' .*{was} and is {now} now"):
        core.start()
    try:
        wait_until(core.is_settled)
        assert core.state_dump()["folds"] == kept
    finally:
        core.stop()
