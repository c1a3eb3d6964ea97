"""Gangs of two users in three leaves under quotas and limits, at random: none waits that could go.

At rest Context would refuse the admission of every gang that is held and might run, and a timer
watches each admitted gang that has no placeholder.
"""

from random import Random

import pytest
from support import Lab

from yunikorn_actors import si
from yunikorn_actors.machines.context.gangs import check_admission
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.planning.stages.gangs import Commitments
from yunikorn_actors.state.gangs import awaits_admission
from yunikorn_actors.state.proposals import AdmitGang

SEEDS = 12
TIMEOUT_S = 60
LEAVES = ("root.a", "root.p.b", "root.p.c")


def _config(draw: Random) -> str:
    def vcore(least: int) -> str:
        return f"{{vcore: {least + int(draw.random() * 4)}m}}"

    limits = (
        f"limits: [{{limit: '', users: [bob], maxresources: {vcore(2)}}}, "
        f"{{limit: '', users: ['*'], maxresources: {vcore(3)}}}]"
    )
    return (
        "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: ["
        f"{{name: a, resources: {{max: {vcore(6)}}}, {limits}}}, "
        f"{{name: p, resources: {{max: {vcore(6)}}}, {limits}, queues: [{{name: b}}, "
        f"{{name: c, properties: {{application.sort.policy: stateaware}}}}]}}]}}]}}]"
    )


class Play:
    def __init__(self, seed: int, topology: TopologyName) -> None:
        self.draw = Random(seed)  # noqa: S311 - a repeatable run, no secret
        self.lab = Lab(seed=seed, topology=topology, config=_config(self.draw))
        self.lab.nodes(n1=4)
        self.names: list[str] = []
        self.held = self.lapsed = 0

    def number(self, below: int) -> int:
        return int(self.draw.random() * below)

    def one_of(self, choices: list[str]) -> str:
        return choices[self.number(len(choices))]

    def step(self) -> None:
        (self.come, self.come, self.plain, self.end, self.wait, self.wait, self.grow, self.reload)[
            self.number(8)
        ]()
        if self.number(3):
            self.lab.settle()
            self.check()

    def _submit(self, **fields: object) -> str:
        name = f"app-{len(self.names)}"
        self.names.append(name)
        user = self.one_of(["bob", "sue"])
        self.lab.submit(name, queue=self.one_of(list(LEAVES)), user=user, **fields)
        return name

    def come(self) -> None:
        repeats, vcore = 1 + self.number(3), 1 + self.number(2)
        size = si.Resource.of({"vcore": repeats * vcore})
        timeout = TIMEOUT_S * 1000
        name = self._submit(placeholder_ask=size, execution_timeout_milli_seconds=timeout)
        group = {"task_group_name": "g", "vcore": vcore, "app": name}
        for number in range(repeats):
            self.lab.ask(f"{name}-ph-{number}", placeholder=True, **group)  # type: ignore[arg-type]
        if self.number(2):
            self.lab.ask(f"{name}-real", **group)  # type: ignore[arg-type]
        if self.number(2):
            self.lab.ask(f"{name}-driver", app=name)

    def plain(self) -> None:
        name = self._submit()
        self.lab.ask(f"{name}-x", app=name, vcore=1 + self.number(2))

    def end(self) -> None:
        if self.names:
            self.lab.remove(self.one_of(self.names))

    def wait(self) -> None:
        self.lab.advance((1, 20, TIMEOUT_S)[self.number(3)])

    def grow(self) -> None:
        node = self.one_of(["n1", "n2", "n3"])
        if node in self.lab.state.nodes:
            self.lab.decommission(node)
        else:
            self.lab.nodes(**{node: 2 + self.number(4)})

    def reload(self) -> None:
        self.lab.configure(_config(self.draw))

    def check(self) -> None:
        state = self.lab.state
        for app in state.applications.values():
            is_idle = app.serial in state.admitted and not app.has_placeholders
            assert is_idle is ("commitment" in app.timers)
            self.lapsed += app.lapsed_ns > 0
            view = self.lab.planner.model.apps[app.serial]
            may_start = view.blocked_at() is None and Commitments(self.lab.planner.model).may_start(
                view
            )
            if awaits_admission(app) and may_start:
                self.held += 1
                admission = AdmitGang(proposal_id=1, application_id=app.id, serial=app.serial)
                assert check_admission(state, admission) is not None, f"{app.id} waits in vain"


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_no_gang_waits_that_could_be_admitted(topology: TopologyName) -> None:
    held = lapsed = 0
    for seed in range(1, SEEDS + 1):
        play = Play(seed, topology)
        for _ in range(30):
            play.step()
        play.lab.settle()
        play.check()
        held, lapsed = held + play.held, lapsed + play.lapsed
        play.lab.remove(*play.names)
        play.lab.settle()
        assert play.lab.leftovers() == {}
    assert held > SEEDS // 2, "vacuous: hardly a gang was held"
    assert lapsed > 0, "vacuous: no commitment lapsed to the good of another gang"
