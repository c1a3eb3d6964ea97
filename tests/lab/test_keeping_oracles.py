"""Oracles that keep books a second time: of timers, of RmProxy, of what a resource manager has said.

Each speaks up at a planted defect.
"""

from typing import NamedTuple

import pytest

from yunikorn_actors.drivers.simulator.checkers import facts_in
from yunikorn_actors.drivers.simulator.simulator import Checker, Simulator
from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.harness import Oracle
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.oracles.rm_proxy_oracle import Proxied
from yunikorn_actors.lab.oracles.run_oracles import Idle, Rest, oracles
from yunikorn_actors.lab.oracles.timer_oracle import Timers
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.lab.tapes.tape import parse_tape
from yunikorn_actors.messages.base import CONTEXT, Delivery
from yunikorn_actors.state.facts import AllocationReleased, AskRemoved


class Planted(NamedTuple):
    mutant: str
    words: str
    """Of what is wrong with it."""
    steps: str
    entries: tuple[str, ...] = ()


DYNAMIC = (
    "{partitions: [{placementrules: [{name: provided, create: true}], "
    "queues: [{name: root, submitacl: '*'}]}]}"
)
ENFORCED = (
    "{partitions: [{preemption: {quotapreemptionenabled: true}, queues: [{name: root, "
    "submitacl: '*', queues: [{name: a, resources: {max: {vcore: 2}}, "
    "properties: {quota.preemption.delay: 1h}}]}]}]}"
)
LIMITED = (
    "{partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a, "
    "limits: [{limit: l, groups: [dev], maxapplications: 5}]}]}]}]}"
)
UNLIMITED = "{partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]}"
GANG = """
- create_node: {id: n1, capacity: {vcore: 9}}
- add_app: {id: app-1, placeholder_ask: {vcore: 2}}
- ask: {app: app-1, key: ph, count: 2, resource: {vcore: 1}, placeholder: true, task_group: tg}
- ask: {app: app-1, key: a, resource: {vcore: 1}, task_group: tg}
- confirm: all
"""
RELEASE = "{rmID: rm-1, releases: {allocationsToRelease: [{UUID: scenario-3, terminationType: 1}]}}"
TIME = (
    Planted(
        "M153",
        "placeholder of app-1 is armed",
        """
- add_app: {id: app-1, placeholder_ask: {vcore: 3}, tags: {yunikorn.apache.org/creationTime: '1767225590'}}
- create_node: {id: n1, capacity: {vcore: 9}, allocations: [{key: ph, app: app-1, resource: {vcore: 1}, task_group: tg, placeholder: true}]}
""",
    ),
    Planted(
        "M152",
        "execution of app-1 is armed",
        """
- create_node: {id: n1, capacity: {vcore: 9}}
- add_app: {id: app-1, timeout: 5s}
- ask: {app: app-1, key: a, resource: {vcore: 1}}
- advance: 1s
- release: {app: app-1, key: a}
- advance: 9s
- ask: {app: app-1, key: b, resource: {vcore: 1}}
""",
    ),
    Planted(
        "M241",
        "to be cleaned away",
        """
- config: {queues: {partitions: [{queues: [{name: root, submitacl: '*', queues: [{name: b}]}]}]}}
- advance: 20s
""",
    ),
    Planted(
        "M243",
        "is reported 592000000000 ns too late",
        """
- create_node: {id: n1, capacity: {vcore: 9}}
- add_app: {id: app-1}
- ask: {app: app-1, key: a, resource: {vcore: 1}, timeout: 1s}
- ask: {app: app-1, key: b, resource: {vcore: 1}, timeout: 9s}
- advance: 11m
""",
    ),
    Planted(
        "M310",
        "is cleaned away 9000000000 ns too early",
        f"""
- config: {{queues: {DYNAMIC}}}
- add_app: {{id: app-1, queue: root.new}}
- remove_app: app-1
- advance: 10s
- add_app: {{id: app-2, queue: root.new}}
- remove_app: app-2
- advance: 1s
""",
        ("hold QueueCleaningDue(root.new) from timer to context until after step 7",),
    ),
    Planted(
        "M311",
        "paused/rm-1 is armed 290000000000 ns too late",
        """
- register: {rm: rm-1, extra: {rm.pausedTimeout: 10s}}
- lose_rm: rm-1
""",
    ),
    Planted(
        "M312",
        "maximum of root.a is exceeded by force",
        f"""
- config: {{queues: {ENFORCED}}}
- create_node: {{id: n1, capacity: {{vcore: 9000}}}}
- add_app: {{id: app-1, queue: root.a}}
- bind: {{app: app-1, key: a, node: n1, resource: {{vcore: 1000}}}}
- bind: {{app: app-1, key: a, node: n1, resource: {{vcore: 3000}}}}
""",
    ),
)
PROXY = (
    Planted(
        "M211",
        "registered are",
        """
- register: {rm: rm-1}
- register: {rm: rm-1}
""",
        ("lose manager rm-1 after RegistrationRequested(step 2) from gateway to rm_proxy",),
    ),
    Planted(
        "M306",
        "is kept as asked back from rm-1, and is not",
        """
- create_node: {id: n1, capacity: {vcore: 9}}
- add_app: {id: app-1}
- ask: {app: app-1, key: a, resource: {vcore: 1}, timeout: 1s}
- advance: 1s
- release: {app: app-1, key: a, type: TIMEOUT}
""",
        (
            "hold ApplicationTimerDue(app-1 allocation:scenario-1) from timer to context until after step 5",
        ),
    ),
    Planted(
        "M307",
        "group 'rm-1' has a configuration and no members",
        """
- register: {rm: rm-1}
- unregister: rm-1
""",
    ),
    Planted(
        "M308",
        "[rm-2]more is not held",
        f"""
- raw: {{call: register_resource_manager, request: {{rmID: rm-1, policyGroup: g, config: "{UNLIMITED}"}}}}
- raw: {{call: register_resource_manager, request: {{rmID: rm-2, policyGroup: g}}}}
- lose_rm: rm-2
- raw: {{call: update_configuration, request: {{rmID: rm-1, policyGroup: g, config: "{{partitions: [{{name: more, queues: [{{name: root}}]}}]}}"}}}}
""",
    ),
)
ENDS = (
    Planted(
        "M313",
        "app-1 is Running, and its last work has ended",
        f"{GANG}- raw: {{call: update_allocation, request: {RELEASE}}}\n",
    ),
    Planted(
        "M314",
        "app-1 counts in group dev, which has no limit any more",
        f"""
- config: {{queues: {LIMITED}}}
- create_node: {{id: n1, capacity: {{vcore: 9}}}}
- add_app: {{id: app-1, queue: root.a, groups: [dev]}}
- ask: {{app: app-1, key: a, resource: {{vcore: 1}}}}
- config: {{queues: {UNLIMITED}}}
""",
    ),
)
WISHES = (
    Planted(
        "M301",
        "",
        """
- create_node: {id: n1, capacity: {vcore: 9}}
- add_app: {id: app-1}
- ask: {app: app-1, key: a, resource: {vcore: 1}}
- bind: {app: app-1, key: b, node: n1, resource: {vcore: 2}, uuid: scenario-1}
""",
    ),
    Planted(
        "M302",
        "release STOPPED_BY_RM of scenario-1 (a of app-1): it has not ended that",
        """
- create_node: {id: n1, capacity: {vcore: 9}}
- add_app: {id: app-1}
- ask: {app: app-1, key: a, resource: {vcore: 1}}
- release_ask: {app: app-1}
""",
    ),
    Planted(
        "M303",
        "of n1 ready is True, reported False",
        """
- create_node: {id: n1, capacity: {vcore: 9}}
- update_node: {id: n1, attributes: {ready: 'false'}}
- update_node: {id: n1, attributes: {zone: a}}
""",
    ),
    Planted(
        "M304",
        "",
        """
- create_node: {id: n1, capacity: {vcore: 9}}
- add_app: {id: app-1}
- bind: {app: app-1, key: b, node: n1, resource: {vcore: 2}, uuid: scenario-1}
- ask: {app: app-1, key: a, resource: {vcore: 1}}
""",
    ),
    Planted(
        "M305",
        "",
        """
- create_node: {id: n1, capacity: {vcore: 9}}
- add_app: {id: app-1, placeholder_ask: {vcore: 9}, timeout: 10s}
- ask: {app: app-1, key: ph, resource: {vcore: 1}, placeholder: true, task_group: tg}
- advance: 10s
- bind: {app: app-1, key: late, node: n1, resource: {vcore: 1}, placeholder: true, task_group: tg}
- confirm: all
""",
    ),
    Planted(
        "M315",
        "1 proposals are unresolved",
        """
- create_node: {id: n1, capacity: {vcore: 9}}
- predicate: {deny: [{key: a, node: n1, raises: true}]}
- add_app: {id: app-1}
- ask: {app: app-1, key: a, resource: {vcore: 1}}
""",
    ),
    Planted(
        "M316",
        "['b'] have to go, and ['b', 'a'] were agreed to",
        """
- create_node: {id: n1, capacity: {vcore: 2}}
- predicate: {victims: 1}
- add_app: {id: app-1}
- ask: {app: app-1, key: a, resource: {vcore: 1}}
- ask: {app: app-1, key: b, resource: {vcore: 1}}
- add_app: {id: app-2}
- ask: {app: app-2, key: c, resource: {vcore: 1}, required_node: n1}
- advance: 1m
""",
    ),
)


class EndsTogether(Oracle):
    """In which order something real ended and an ask was withdrawn in one message."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, ...]] = []

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT:
            for facts in facts_in(simulator.effects).values():
                ends = tuple(
                    type(fact).__name__
                    for fact in facts
                    if isinstance(fact, AllocationReleased | AskRemoved)
                )
                self.orders += [ends] if len(set(ends)) > 1 else []


def violation(planted: Planted, *judges: Checker, is_planted: bool) -> str:
    text = f"name: planted\nrm: {{confirm: manual}}\nsteps:{planted.steps}"
    case = parse_case(text, "planted.yaml")
    tape = parse_tape("\n".join((case.tape().header(), *planted.entries)))
    if not is_planted:
        found = play(case, tape, judges).violation
    else:
        with BY_ID[planted.mutant].applied():
            found = play(case, tape, judges).violation
    return "" if found is None else found.text


@pytest.mark.parametrize("planted", TIME, ids=lambda it: it.mutant)
def test_a_timer_that_is_wrong(planted: Planted) -> None:
    assert violation(planted, Timers(), is_planted=False) == ""
    assert planted.words in violation(planted, Timers(), is_planted=True)


@pytest.mark.parametrize("planted", PROXY, ids=lambda it: it.mutant)
def test_what_is_taken_for_another(planted: Planted) -> None:
    assert violation(planted, Proxied(), is_planted=False) == ""
    assert planted.words in violation(planted, Proxied(), is_planted=True)


@pytest.mark.parametrize("planted", ENDS, ids=lambda it: it.mutant)
def test_an_application_that_idles(planted: Planted) -> None:
    assert violation(planted, Idle(), Rest(), is_planted=False) == ""
    assert planted.words in violation(planted, Idle(), Rest(), is_planted=True)


@pytest.mark.parametrize("last", ["parked", "waits"])
def test_an_application_whose_last_ask_is_withdrawn_idles_by_right(last: str) -> None:
    """Together with the end of its last allocation, before it: the ask was still there (R-029)."""
    ask = "{app: app-1, key: b, resource: {vcore: 1}, task_group: tg}"
    if last == "waits":
        ask = "{app: app-1, key: b, resource: {vcore: 99}}"
    both = "[{UUID: scenario-3, terminationType: 1}, {allocationKey: b, terminationType: 1}]"
    steps = f"""{GANG}
- ask: {ask}
- raw: {{call: update_allocation, request: {{rmID: rm-1, releases: {{allocationsToRelease: {both}}}}}}}
"""
    text = f"name: last\nrm: {{confirm: manual}}\nsteps:{steps}"
    case = parse_case(text, "last.yaml")
    together = EndsTogether()
    assert play(case, case.tape(), (*oracles(), together)).violation is None
    assert together.orders == [("AllocationReleased", "AskRemoved")], "vacuous: not in one message"


@pytest.mark.parametrize("planted", WISHES, ids=lambda it: it.mutant)
def test_what_was_not_asked_for(planted: Planted) -> None:
    assert violation(planted, *oracles(), is_planted=False) == ""
    assert planted.words in violation(planted, *oracles(), is_planted=True)
