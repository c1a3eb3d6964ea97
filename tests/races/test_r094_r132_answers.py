"""R-094, R-132: a resource manager that waits for answers, and gets some that say no.

Every application and node is answered by itself, so one refusal holds up nothing, and an answer may
be acted on from inside the callback that brings it.
"""

import ranges
from support import APP, QUEUE, RM, Lab, Recorder

from yunikorn_actors import si

BOB = si.UserGroupInformation(user="bob")


class Starting(Recorder):
    """Creates its nodes one after the other: the next when the last one is answered."""

    lab: Lab

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        answered = len(self.told("node"))
        if answered < 5:
            # The third is offered twice, so that the fourth answer is a refusal.
            self.lab.nodes(**{f"n{min(answered, 3)}": 10})


@ranges.seeds(40)
def test_r132_one_node_after_the_other(seeds: range) -> None:
    for seed in seeds:
        rm = Starting()
        lab = rm.lab = Lab(seed=seed, rm=rm)
        lab.nodes(n0=10)
        lab.submit(APP)
        lab.ask("a", vcore=10, max_allocations=4)
        lab.settle()
        answers = rm.told("node")
        assert ["n0", "n1", "n2", "n3", "n3"] == [id_ for id_, _ in answers]
        assert [True] * 4 + [False] == [words == "accepted" for _, words in answers]
        assert lab.running() == ["a"] * 4
        assert lab.leftovers() == {}


@ranges.seeds(40)
def test_r094_one_refusal_among_many(seeds: range) -> None:
    refused = 0
    for seed in seeds:
        lab = Lab(seed=seed)
        queues = {"app-1": QUEUE, "app-2": "root.nowhere.else", "app-3": QUEUE}
        apps = tuple(
            si.AddApplicationRequest(
                application_id=id_, queue_name=queue, ugi=BOB if id_ != "app-2" else None
            )
            for id_, queue in queues.items()
        )
        lab.simulator.update_application(si.ApplicationRequest(rm_id=RM, new=apps))
        bad = si.Resource.of({"vcore": -1})
        infos = tuple(
            si.NodeInfo(node_id=id_, action=si.ActionFromRM.CREATE, schedulable_resource=size)
            for id_, size in (("n1", si.Resource.of({"vcore": 1})), ("bad", bad))
        )
        lab.simulator.update_node(si.NodeRequest(rm_id=RM, nodes=infos))
        for id_ in queues:
            lab.ask("k", app=id_)
        lab.nodes(n2=1)
        lab.settle()
        assert lab.running() == ["k", "k"]
        answers = dict(lab.rm.told("application") + lab.rm.told("node"))
        assert sorted([*queues, "n1", "bad", "n2"]) == sorted(answers)
        refused += sum(1 for words in answers.values() if words != "accepted")
    assert 2 * len(seeds) == refused
