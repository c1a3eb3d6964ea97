"""Two hundred gangs on threads: recorded, told of in every way, and repeated to the same end."""

import json
import threading
import time
from collections import deque
from pathlib import Path

import pytest

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.cli import main
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName

pytestmark = pytest.mark.slow
GANGS = 200
MEMBERS = 2
SUBMITTERS = 4
ROOM = 100
"""Fewer places than all of them need, so that some wait for others."""
PATIENCE_S = 120.0
CONFIG = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
)
ONE = si.Resource.of({"vcore": 1})
Screen = pytest.CaptureFixture[str]


class Conductor(si.ResourceManagerCallback):
    """Hears who sings, and confirms that seats are free."""

    def __init__(self, core: SchedulerCore) -> None:
        self._core = core
        self.singing: deque[si.Allocation] = deque()
        self.heard = 0

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for new in response.new:
            if not new.placeholder:
                self.singing.append(new)
                self.heard += 1
        replaced = [
            it
            for it in response.released
            if it.termination_type is si.TerminationType.PLACEHOLDER_REPLACED
        ]
        if replaced:
            self.let_go(tuple(replaced))

    def let_go(self, gone: tuple[si.AllocationRelease, ...]) -> None:
        releases = si.AllocationReleasesRequest(allocations_to_release=gone)
        self._core.update_allocation(si.AllocationRequest(rm_id="rm-1", releases=releases))


def gang(core: SchedulerCore, number: int) -> None:
    name = f"gang-{number}"
    whole = si.Resource.of({"vcore": MEMBERS})
    ugi = si.UserGroupInformation(user=f"user-{number % 7}")
    new = si.AddApplicationRequest(
        application_id=name, queue_name="root.a", ugi=ugi, placeholder_ask=whole
    )
    core.update_application(si.ApplicationRequest(rm_id="rm-1", new=(new,)))
    for kind in ("seat", "singer"):
        asks = tuple(
            si.AllocationAsk(
                application_id=name, allocation_key=f"{name}-{kind}-{member}", resource_ask=ONE,
                task_group_name="choir", placeholder=kind == "seat",
            )
            for member in range(MEMBERS)
        )  # fmt: skip
        core.update_allocation(si.AllocationRequest(rm_id="rm-1", asks=asks))


def sing(path: Path, topology: TopologyName) -> None:
    with SchedulerCore(topology=topology, trace=path) as core:
        conductor = Conductor(core)
        request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=CONFIG)
        core.register_resource_manager(request, conductor)
        for number in range(5):
            size = si.Resource.of({"vcore": ROOM // 5})
            info = si.NodeInfo(
                node_id=f"n{number}", action=si.ActionFromRM.CREATE, schedulable_resource=size
            )
            core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(info,)))
        threads = [
            threading.Thread(target=lambda own: [gang(core, it) for it in own], args=(own,))
            for own in (range(first, GANGS, SUBMITTERS) for first in range(SUBMITTERS))
        ]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + PATIENCE_S
        while conductor.heard < GANGS * MEMBERS:
            assert time.monotonic() < deadline, f"{conductor.heard} sang"
            while conductor.singing:
                done = conductor.singing.popleft()
                conductor.let_go(
                    (
                        si.AllocationRelease(
                            application_id=done.application_id, allocation_key=done.allocation_key
                        ),
                    )
                )
            time.sleep(0.002)
        for thread in threads:
            thread.join()
        while not core.is_settled():
            time.sleep(0.002)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_all_is_told_of_them(tmp_path: Path, topology: TopologyName, capsys: Screen) -> None:
    path = tmp_path / "gangs.trace"
    sing(path, topology)

    def told(name: str, *arguments: str) -> list[str]:
        status = main(["trace", name, str(path), *arguments, "--json"])
        assert status == 0, capsys.readouterr().err
        return capsys.readouterr().out.splitlines()

    whole = json.loads(told("replay")[0])
    assert (whole["identical"], whole["complete"], whole["undelivered"]) == (True, True, 0)
    assert whole["states"] > 2
    lives = told("story", "gang-77-singer-1")
    assert any('"SwapCompleted"' in line for line in lives)
    last = json.loads(told("why", "gang-77-singer-1")[-1])
    assert last["cause"] == "PLACED"
    mailbox, number = json.loads(lives[-1])["step"]
    assert len(told("chain", f"{mailbox}/{number}")) > 2
    way = json.loads(told("path", "gang-77-seat-1")[0])
    assert way["is_whole"]
    assert json.loads(told("stats")[0])["messages"] == whole["messages"]
    assert json.loads(told("diff", str(path))[0])["changed"] == 0
    assert main(["trace", "refusals", str(path)]) == 0
    assert "nothing was refused" in capsys.readouterr().out
