"""Changes that a core would take no notice of, or would not carry out, are refused with the place."""

from typing import Any

import pytest
from msgspec import structs
from support import RM

from tests.what_if.test_simulate import asks, busy, node
from yunikorn_actors import InvalidRequest, VirtualCore, si
from yunikorn_actors.scenario.change_steps import parse_changes
from yunikorn_actors.what_if import Change, Reconfigure
from yunikorn_actors.what_if.core_state import state_of
from yunikorn_actors.what_if.least_change import Wanted, least_changes


@pytest.fixture(scope="module")
def core() -> VirtualCore:
    return busy("proposing")


ASK = "ask: {app: app, key: k, resource: {vcore: 1}"
CONFIG = (
    "config: {partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [%s]}]}]}"
)
REFUSED = {
    "drain_node: nope": "node nope: it is not there: bring it by a change before, or name another; "
    "there is n1, n2",
    "undrain_node: nope": "node nope: it is not there",
    "undrain_node: n1": "node n1: it is not drained: leave this change out, or name another node",
    "remove_node: n11": "node n11: it is not there",
    "update_node: {id: nope, capacity: {vcore: 1}}": "node nope: it is not there",
    "update_node: {id: n1}": "node n1: nothing of it is changed: write its new capacity",
    "update_node: {id: n1, capacity: {vcore: -1}}": "node n1: vcore is negative: -1",
    "create_node: {id: n3, capacity: {vcore: -1}}": "node n3: vcore is negative: -1",
    "create_node: {id: n3}": "node n3: it has no capacity",
    "create_node: {id: n3, count: 0, capacity: {vcore: 1}}": "nodes: it names none",
    "ask: {app: app, key: k, resource: {vcore: -1}}": "ask app/k: vcore is negative: -1",
    "ask: {app: app, key: k}": "ask app/k: it asks for nothing",
    f"{ASK}, count: -1}}": "asks: it names none",
    f"{ASK}, max_allocations: 0}}": "ask app/k: it repeats 0 times",
    "ask: {app: app, key: '1', resource: {vcore: 1}}": "ask app/1: it runs already, so the core ",
    f"{ASK}, tags: {{yunikorn-actors/runtime: soon}}}}": "'soon' is no number of seconds",
    f"{ASK}, partition: other}}": "partition: 'other' is not there: there is default",
    f"{ASK}, rm: other}}": "rm_id: 'other' is not registered in this state; there is rm-1",
    "ask: {app: nope, key: k, resource: {vcore: 1}}": "ask nope/k: its application 'nope' is not "
    "there",
    "remove_app: nope": "application nope: it is not there",
    "release: {app: app, key: nope}": "release of app/nope: the key 'nope' is not there: bring it "
    "by a change before, or name another; there is ",
    "release: {key: nope}": "release of nope: the key 'nope' is not there",
    "release_ask: {app: nope}": "release of nope: its application 'nope' is not there",
    "bind: {app: app, key: k, node: nope, resource: {vcore: 1}}": "its node 'nope' is not there",
    "reconfigure: {queue: root.nope, max: {vcore: 1}}": "queue: 'root.nope' is not configured",
    "reconfigure: {queue: root.a}": "queue root.a: nothing of it is changed",
    "reconfigure: {queue: root.a, max: {vcore: -1}}": "queue root.a: vcore is negative: -1",
    "reconfigure: {queue: root.a, user: ann, template: true, max: {vcore: 1}}": "a template has no",
    "reconfigure: {queue: root.a, template: true, max: {vcore: 1}}": "root.a is a leaf",
    "reconfigure: {queue: root, template: true, properties: {priority.offset: much}}": "is no value",
    "reconfigure: {queue: root.a, max_applications: -1}": "max_applications is negative: -1",
    "reconfigure: {queue: root.a, guaranteed: {vcore: 5000}}": "root.a: guaranteed resource {vcore: "
    "5000} is larger than maximum resource {vcore: 4000} of the queue (lower guaranteed",
    "reconfigure: {queue: root, max: {vcore: 1}}": "root queue must not have resource limits set",
    "reconfigure: {queue: root.a, properties: {application.sort.policy: nope}}": "'nope' is no "
    "value for it",
    "reconfigure: {queue: root.a, properties: {aplication.sort.policy: fifo}}": "did you mean "
    "'application.sort.policy'?",
    "reconfigure: {queue: root.a, user: ann, group: g, max: {vcore: 1}}": "name one of the two",
    "reconfigure: {queue: root.a, user: ann, guaranteed: {vcore: 1}}": "has neither guaranteed nor",
    CONFIG % "{name: b}, {name: b}": "root: duplicate queue name 'b'",
    CONFIG % "{name: a, properties: {application.sort.policy: nope}}": "'nope' is no value for it",
    "config: {partitions: 3}": "the configuration cannot be loaded: line 1: partitions: '3' where",
}


@pytest.mark.parametrize("step", REFUSED)
def test_what_would_change_nothing_is_refused(core: VirtualCore, step: str) -> None:
    place = f"f:1: step 1: {step.partition(':')[0]}: "
    with pytest.raises(InvalidRequest) as found:
        core.simulate(*parse_changes(f"- {step}", "f"))
    assert str(found.value).startswith(place)
    assert REFUSED[step] in str(found.value)


ADVANCE = "- advance: 1s"
CONTRADICTORY = {
    "- drain_node: n3\n- create_node: {id: n3, capacity: {vcore: 1}}": (1, "node n3"),
    f"- remove_node: n1\n{ADVANCE}\n- drain_node: n1": (3, "node n1"),
    f"- {ASK.replace('app: app', 'app: b')}}}\n- add_app: {{id: b, queue: root.a}}": (1, "'b'"),
    "- drain_node: n1\n- drain_node: n1": (2, "node n1: it is drained already: leave this"),
    f"- remove_app: app\n- {ASK}}}": (2, "its application 'app' is not there"),
    f"- release: {{app: app, key: '1'}}\n{ADVANCE}\n- release: {{app: app, key: '1'}}": (3, "'1'"),
}


@pytest.mark.parametrize("steps", CONTRADICTORY)
def test_changes_in_a_contradictory_order(core: VirtualCore, steps: str) -> None:
    number, what = CONTRADICTORY[steps]
    with pytest.raises(InvalidRequest, match=rf"f:{number}: step {number}: .*{what}"):
        core.simulate(*parse_changes(steps, "f"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "f:1: the list is empty"),
        (ADVANCE, "f:1: advance: no change stands behind it.* give --until 1 "),
        (f"{ADVANCE}\n- advance: 90s", "give --until 91 "),
        ("- drain_node: n1\n---\n- drain_node: n2", "f:2: a second document"),
    ],
)
def test_steps_that_nobody_would_look_at(text: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        parse_changes(text, "f")


def test_what_an_earlier_change_brings_is_there(core: VirtualCore) -> None:
    steps = f"""
- add_app: {{id: b, queue: root.a}}
- create_node: {{id: n3, capacity: {{vcore: 4000}}}}
- {ASK.replace("app: app", "app: b")}}}
{ADVANCE}
- drain_node: n3
- undrain_node: n3
- drain_node: n3
- release: {{app: b, key: k}}
- remove_app: b
- remove_node: n3
"""
    assert core.simulate(*parse_changes(steps, "f"), until=2).course.refused == ()


def test_what_is_there_is_listed_in_its_order(core: VirtualCore) -> None:
    """That of a set is another one in each process."""
    keys = ("w5", "w1", "w9", "w3", "w7")
    brought = [f"- {ASK.replace('app: app, key: k', f'app: b, key: {it}')}}}" for it in keys]
    steps = "\n".join(
        ("- add_app: {id: b, queue: root.a}", *brought, "- release: {app: b, key: none}")
    )
    with pytest.raises(InvalidRequest, match="there is w5, w1, w9 and 2 more"):
        core.simulate(*parse_changes(steps, "f"))


def test_raises_of_one_moment_count_together(core: VirtualCore) -> None:
    """A limit may not be above its queue: both are raised, in any order."""
    quota = Reconfigure(queue="root.a", max={"vcore": 6_000})
    limit = Reconfigure(queue="root.a", user="ann", max={"vcore": 6_000})
    for both in ((quota, limit), (limit, quota)):
        assert len(core.simulate(*both, asks("3"), until=0).course.placed) == 1
    with pytest.raises(
        InvalidRequest, match=r"change 1: root.a: limit of .* is larger than the max"
    ):
        core.simulate(limit, Change(quota, after_s=1))


def test_what_a_program_gives(core: VirtualCore) -> None:
    uuid = si.AllocationRelease(application_id="app", uuid="nope")
    release = si.AllocationReleasesRequest(allocations_to_release=(uuid,))
    refused: list[tuple[Any, Any, str]] = [
        (Change(node("n3", 1), after_s=20), 10, "change 1: it is made after 20 s, behind until=10"),
        *(
            (Change(node("n3", 1), after_s=it), None, "change 1: after_s: must be seconds from 0 ")
            for it in (float("nan"), float("inf"), 1e300, -1, "1")
        ),
        (node("n3", 1), "10", "until: must be seconds"),
        (si.AllocationRequest(rm_id=RM), None, "change 1: asks: it names none"),
        (si.AllocationRequest(rm_id=RM, releases=release), None, "no allocation has this uuid"),
        (
            Reconfigure(queue=None, max={"vcore": 1}),
            None,
            "Expected `str`, got `null` - at `[$].queue`",
        ),  # type: ignore[arg-type]
        (
            Reconfigure(queue="root.a", max={5: 4}),
            None,
            "Expected `str`, got `int` - at `key` in `[$].max`",
        ),  # type: ignore[dict-item]
        (
            Reconfigure(queue="root.a", properties={"priority.offset": 7}),  # type: ignore[dict-item]
            None,
            "Expected `str`, got `int` - at `[$].properties",
        ),
        (
            Reconfigure(queue="root.a", max={"vcore": "4"}),
            None,
            "Expected `int`, got `str` - at `[$].max",
        ),  # type: ignore[dict-item]
    ]
    for change, until, words in refused:
        with pytest.raises(InvalidRequest, match=words):
            core.simulate(change, until=until)


def test_a_property_that_has_no_effect_is_named(core: VirtualCore) -> None:
    step = f"- {CONFIG % '{name: a, properties: {sort: x}}'}"
    assumed = core.simulate(*parse_changes(step, "f"), until=0).assumptions
    assert any(
        it.startswith("f:1: step 1: config: ") and "root.a: unknown property 'sort'" in it
        for it in assumed
    )


def test_a_least_change_is_asked_for_what_is_there(core: VirtualCore) -> None:
    state = state_of(core._simulator)
    with pytest.raises(InvalidRequest, match="change 1: ask app/4: vcore is negative"):
        least_changes(state, Wanted((asks("4", vcore=-1),)))
    with pytest.raises(InvalidRequest, match="least change: ask app/nope: it neither waits"):
        least_changes(state, Wanted((asks("4"),), (("app", "4"), ("app", "nope"))))
    for within in (-1.0, float("inf")):
        with pytest.raises(InvalidRequest, match=r"within: must be seconds from 0 to 1e.09, not"):
            least_changes(state, Wanted((asks("4"),), within_s=within))


def test_a_limit_that_others_share_is_named(core: VirtualCore) -> None:
    """Whoever asks for the limit of one would not understand that others start, too."""
    own = Reconfigure(queue="root.a", user="ann", max={"vcore": 4_000})
    assert not [it for it in core.simulate(own, until=0).assumptions if "share" in it]
    steps = (
        "limits: [{limit: '', users: [ann, bob], maxresources: {vcore: 3}}, "
        "{limit: '', users: ['*'], groups: [dev], maxresources: {vcore: 2}}]"
    )
    config = parse_changes(f"- {CONFIG % f'{{name: a, {steps}}}'}", "f")
    for whose, words in (
        ({"user": "ann"}, "ann and bob"),
        ({"user": "cid"}, "every other user (*) and dev"),
        ({"group": "dev"}, "dev and every other user (*)"),
    ):
        limit = Reconfigure(queue="root.a", max={"vcore": 4_000}, **whose)  # type: ignore[arg-type]
        noted = core.simulate(*config, Change(limit, after_s=1), until=2).assumptions
        assert f"change 2: it changes the limit of {words}, which they share" in noted


ANOTHER = "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]"


def test_who_makes_a_change_that_names_no_manager_is_in_the_answer() -> None:
    core = busy("proposing")
    change = structs.replace(node("n9", 1_000), rm_id="")
    note = f"changes that name no resource manager are made by {RM}, the first"
    assert note not in core.simulate(change, until=0).assumptions
    other = si.RegisterResourceManagerRequest(rm_id="rm-2", config=ANOTHER, policy_group="two")
    core.register_resource_manager(other, si.ResourceManagerCallback())
    core.run_until_idle()
    assert note in core.simulate(change, until=0).assumptions
    assert note not in core.simulate(node("n9", 1_000), until=0).assumptions
