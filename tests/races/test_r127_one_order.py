"""R-127, G26: requests about different things are handled in the order in which they were sent.

So a resource manager need not wait for one answer before it says what rests on it. The scheduler is
at work all the while.
"""

import ranges
from support import APP, CONFIG, labs, report

from yunikorn_actors import si

WITH_Q = CONFIG.replace("{name: default}", "{name: default}, {name: q}")
seeded = ranges.seeds(80)


@seeded
def test_a_node_and_what_runs_on_it(seeds: range) -> None:
    waited = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.ask("a", vcore=9)
        lab.nodes(n1=10)
        waited += lab.state.nodes == {}
        lab.report(report("k", "n1", 4))
        lab.settle()
        assert "k" in lab.running()
        assert [] == lab.rm.told("rejected")
        # Either was first on the node; the report cannot be refused.
        available = lab.state.nodes["n1"].available["vcore"]
        assert (6 if lab.waiting() else -3) == available
        assert lab.leftovers() == {}
    assert len(seeds) == waited, "vacuous: the node had been handled before the report was sent"


@seeded
def test_a_node_leaves_and_its_work_is_released(seeds: range) -> None:
    """The release finds nothing more to do, in whatever state the allocation was."""
    lost = ended = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a")
        for _ in range(lab.seed % 9):
            lab.simulator.step()
        lab.decommission("n1")
        lab.release("a")
        lab.settle()
        assert ([], []) == (lab.running(), lab.waiting())
        told = [line for line in lab.rm.heard if line[1] == "a"]
        assert told in ([], [("new", "a", "n1"), ("released", "a", "STOPPED_BY_RM")])
        lost += not told
        ended += bool(told)
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: the ask was always allocated before the node left"
    assert ended > 0, "vacuous: the ask was never allocated before the node left"


def test_a_queue_and_the_first_application_in_it() -> None:
    for lab in labs(20):
        lab.submit("early", queue="root.q")
        lab.configure(WITH_Q)
        lab.submit(APP, queue="root.q")
        lab.settle()
        queues = {id_: app.queue.path for id_, app in lab.state.applications.items()}
        assert {"early": "root.default", APP: "root.q"} == queues


@ranges.seeds(40)
def test_everything_in_one_go(seeds: range) -> None:
    """The whole start of a resource manager is sent before anything is answered."""
    for lab in labs(seeds):
        lab.nodes(n1=3)
        lab.node("n1", si.ActionFromRM.DRAIN_NODE)
        lab.submit(APP, "gone")
        lab.ask("x", app="gone")
        lab.remove("gone")
        lab.ask("a", "b")
        lab.node("n1", si.ActionFromRM.DRAIN_TO_SCHEDULABLE)
        lab.withdraw("b")
        lab.report(report("k", "n1"))
        lab.settle()
        assert lab.running() == ["a", "k"]
        assert [] == lab.rm.told("rejected")
        assert lab.leftovers() == {}
