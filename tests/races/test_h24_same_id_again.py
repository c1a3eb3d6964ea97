"""H-24: an application id is submitted again at once after its former life has ended.

The former life may still have a proposal on its way; nothing of it touches the next one.
"""

import ranges
from support import APP, QUEUE, RM, Lab, Recorder, labs

from yunikorn_actors import si
from yunikorn_actors.state.applications import ApplicationState

seeded = ranges.seeds(200)


class Resubmitting(Recorder):
    """Submits an application again, from inside the callback that tells of its end."""

    lab: Lab

    def update_application(self, response: si.ApplicationResponse) -> None:
        super().update_application(response)
        if ("state", APP, "Completed") in self.heard[-1:]:
            self.lab.submit(APP)


@ranges.seeds(50)
def test_again_from_inside_the_callback(seeds: range) -> None:
    for seed in seeds:
        rm = Resubmitting()
        lab = rm.lab = Lab(seed=seed, rm=rm)
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.ask("a")
        lab.settle()
        lab.release("a")
        lab.advance(30)
        assert rm.told("application") == [(APP, "accepted"), (APP, "accepted")]
        assert ApplicationState.NEW is lab.state.applications[APP].state
        assert [a.state for a in lab.state.finished.values()] == [ApplicationState.COMPLETED]
        lab.ask("a")
        lab.settle()
        assert lab.running() == ["a"]


@seeded
def test_removed_and_submitted_with_a_proposal_on_its_way(seeds: range) -> None:
    lost = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a", vcore=1)
        lab.remove(APP)
        lab.submit(APP)
        lab.ask("a", vcore=4)
        lab.settle()
        assert lab.running() == ["a"]
        assert lab.state.nodes["n1"].allocated == {"vcore": 4}
        assert lab.state.queues[QUEUE].allocated == {"vcore": 4}
        assert [app.serial for app in lab.state.applications.values()] == [2]
        lost += lab.races.refusals["ASK_GONE"]
        assert lab.leftovers() == {}
    assert lost > 0, "vacuous: no proposal of the first life met the second"


@seeded
def test_removed_and_submitted_into_another_queue(seeds: range) -> None:
    config = (
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', "
        "queues: [{name: default}, {name: other, properties: {application.sort.policy: fair}}]}]}]"
    )
    lost = 0
    for lab in labs(seeds, config=config):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.settle()
        lab.ask("a")
        lab.remove(APP)
        lab.submit(APP, queue="root.other", user="alice")
        lab.ask("a")
        lab.settle()
        assert lab.running() == ["a"]
        assert lab.state.queues["root.other"].allocated == {"vcore": 1}
        assert list(lab.state.users) == ["alice"]
        lost += lab.races.refusals["ASK_GONE"]
    assert lost > 0, "vacuous: no proposal of the first life met the second"


def test_both_in_one_request_adds_first() -> None:
    """Added before removed: a duplicate is refused, and then the application goes."""
    for lab in labs(20):
        lab.submit(APP)
        lab.settle()
        new = si.AddApplicationRequest(
            application_id=APP, queue_name=QUEUE, ugi=si.UserGroupInformation(user="bob")
        )
        gone = si.RemoveApplicationRequest(application_id=APP)
        request = si.ApplicationRequest(rm_id=RM, new=(new,), remove=(gone,))
        lab.simulator.update_application(request)
        lab.settle()
        (accepted, refused) = lab.rm.told("application")
        assert accepted == (APP, "accepted")
        assert refused[1].endswith("but application already existed")
        assert lab.state.applications == {}
