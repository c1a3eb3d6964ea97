"""Oracles that keep timers and RmProxy's books a second time: each speaks up at a planted defect."""

from typing import NamedTuple

import pytest

from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.play import play
from yunikorn_actors.lab.proxied import Proxied
from yunikorn_actors.lab.tape import parse_tape
from yunikorn_actors.lab.timing import Timers


class Planted(NamedTuple):
    mutant: str
    words: str
    """Of what is wrong with it."""
    steps: str
    entries: tuple[str, ...] = ()


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
)


def violation(planted: Planted, oracle: Timers | Proxied, *, is_planted: bool) -> str:
    text = f"name: planted\nrm: {{confirm: manual}}\nsteps:{planted.steps}"
    case = parse_case(text, "planted.yaml")
    tape = parse_tape("\n".join((case.tape().header(), *planted.entries)))
    if not is_planted:
        found = play(case, tape, (oracle,)).violation
    else:
        with BY_ID[planted.mutant].applied():
            found = play(case, tape, (oracle,)).violation
    return "" if found is None else found.text


@pytest.mark.parametrize("planted", TIME, ids=lambda it: it.mutant)
def test_a_timer_that_is_wrong(planted: Planted) -> None:
    assert violation(planted, Timers(), is_planted=False) == ""
    assert planted.words in violation(planted, Timers(), is_planted=True)


@pytest.mark.parametrize("planted", PROXY, ids=lambda it: it.mutant)
def test_what_is_taken_for_another(planted: Planted) -> None:
    assert violation(planted, Proxied(), is_planted=False) == ""
    assert planted.words in violation(planted, Proxied(), is_planted=True)
