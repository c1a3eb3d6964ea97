"""R-098, R-100: work that runs from before a restart.

It keeps the name that its resource manager knows it by; and if its queue is gone meanwhile it is
taken all the same, into the recovery queue, which nobody can ask for.
"""

import ranges
from support import APP, PARTITION, Lab, Recorder, report

from yunikorn_actors import si
from yunikorn_actors.state.placement import RECOVERY_PATH

FORCED = {si.constants.APP_TAG_CREATE_FORCE: "true"}
OTHER = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', "
    "queues: [{name: other, resources: {max: {vcore: 1m}}}]}]}]"
)


def test_r098_the_name_of_the_former_life() -> None:
    """Numbers go on after it, so that no new allocation is ever called the same."""
    for uuid in ("former-7", "core-2", "core-x"):
        lab = Lab()
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.report(report("k", "n1", 3, uuid=uuid))
        lab.ask("a", "b", "c")
        lab.settle()
        assert "k" == lab.rm.running[uuid]
        assert lab.running() == ["a", "b", "c", "k"]
        lab.simulator.update_allocation(_release_of(uuid))
        lab.settle()
        assert lab.running() == ["a", "b", "c"]
        assert lab.leftovers() == {}


def _release_of(uuid: str) -> si.AllocationRequest:
    gone = (si.AllocationRelease(application_id=APP, uuid=uuid),)
    releases = si.AllocationReleasesRequest(allocations_to_release=gone)
    return si.AllocationRequest(rm_id="rm-1", releases=releases)


def test_r098_a_name_that_another_has_is_refused() -> None:
    lab = Lab()
    lab.submit(APP, "app-2")
    lab.nodes(n1=10)
    lab.report(report("k", "n1", uuid="u"), report("j", "n1", uuid="u"))
    lab.report(report("k", "n1", uuid="u", app="app-2"))
    lab.settle()
    reason = "UUID u belongs to another allocation"
    assert [("j", reason), ("k", reason)] == lab.rm.told("rejected")
    assert {"u": "k"} == lab.rm.running


def test_r098_a_repeat_that_is_known_already() -> None:
    """Two repeats run and one waits: a report of one that runs does not place the third."""
    lab = Lab()
    lab.submit(APP)
    lab.nodes(n1=2)
    lab.ask("k", max_allocations=3)
    lab.settle()
    uuid = next(iter(lab.rm.running))
    lab.report(report("k", "n1", uuid=uuid))
    lab.settle()
    assert (["k", "k"], ["k"]) == (lab.running(), lab.waiting())
    assert lab.leftovers() == {}


def _second_life(lab: Lab) -> Lab:
    """The first life ends with decisions on their way; in the second its queue is gone."""
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.settle()
    lab.ask("a", "b", vcore=4)
    while not lab.keys_in_flight():
        assert lab.simulator.step()
    lab.register(Recorder(), OTHER)
    lab.nodes(n1=10)
    return lab


@ranges.seeds(60)
def test_r100_forced_work_goes_to_the_recovery_queue(seeds: range) -> None:
    stale = 0
    for seed in seeds:
        lab = _second_life(Lab(seed=seed))
        lab.submit(APP, tags=FORCED)
        lab.report(report("a", "n1", 4), report("b", "n1", 4))
        lab.settle()
        assert RECOVERY_PATH == lab.state.applications[APP].queue.path
        assert {"vcore": 8} == lab.state.queues[RECOVERY_PATH].allocated
        assert lab.running() == ["a", "b"]
        stale += lab.stale_messages
        assert lab.leftovers() == {}
        assert RECOVERY_PATH not in lab.state.queues
    assert stale > 0, "vacuous: nothing of the first life came late"


def test_r100_nobody_else_gets_there() -> None:
    lab = _second_life(Lab())
    lab.submit("forced", tags=FORCED)
    lab.submit(APP)
    lab.submit("app-2", queue=RECOVERY_PATH)
    lab.settle()
    assert ["forced"] == list(lab.context.partitions[PARTITION].state.applications)
    refused = [words for id_, words in lab.rm.told("application") if id_ != "forced"]
    assert [True, True] == ["no placement rule matched" in words for words in refused]
