"""What stands against a victim is said by one list of rules, and the search goes by another."""

import random
from collections import Counter

from msgspec.structs import replace
from written import Written

from yunikorn_actors.planning.preemption.claimant import Claimant, Victim
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.preemption.victim_rules import ExpectedUsage
from yunikorn_actors.planning.why.victim_objections import OfGuarantee, against
from yunikorn_actors.state.termination import TerminationType
from yunikorn_actors.values.durations import SECOND

NOW_NS = 1_000 * SECOND
OF_RULES = {
    "on its way out already",
    "bound to its node",
    "of the same queue",
    "out of its reach: fenced off, or of a queue that gives nothing",
    "of no use to it",
    "more important",
    "in the cooldown of its queue",
}
PARENTS = ("root.a", "root.b")
LEAVES = ("root.c", "root.a.x", "root.a.y", "root.b.z")
ASKING = "root.a.x"
DRAWN = 60


def _properties(rng: random.Random) -> dict[str, str]:
    drawn = {
        "priority.offset": str(rng.randint(-1, 2)),
        "priority.policy": "fence",
        "preemption.policy": rng.choice(("fence", "disabled")),
        "preemption.cooldown": "50s",
    }
    return {name: value for name, value in drawn.items() if rng.random() < 0.25}


def _drawn(rng: random.Random) -> Written:
    """Draw queues with fences, offsets and cooldowns, and work in all of them."""
    made = Written(LEAVES[0])
    for parent in PARENTS:
        made.queue(parent, leaf=False, properties=_properties(rng))
    made.node("n1", vcore=1_000, memory=1_000)
    for number, leaf in enumerate(LEAVES):
        guaranteed = {"vcore": 900} if leaf == ASKING else None
        if number:
            made.queue(leaf, guaranteed=guaranteed, properties=_properties(rng))
        name = f"app-{number}"
        made.add(name, queue=leaf)
        for key in range(3):
            kind = rng.choice(("vcore", "vcore", "memory"))
            made.recover(f"w-{key}", "n1", name, **{kind: rng.randint(1, 3)})
    made.ask("a", "app-1", vcore=1, priority=1)
    # Behind all facts, after each of which the books are compared.
    for app in made.state.applications.values():
        for held in app.allocations.values():
            held.allocated_ns = NOW_NS - rng.choice((1, 100)) * SECOND
            required = "n1" if rng.random() < 0.1 else ""
            held.spec = replace(held.spec, priority=rng.randint(0, 3), required_node=required)
            if rng.random() < 0.1:
                held.releasing = TerminationType.TIMEOUT
    return made


def test_the_search_and_the_explanation_go_by_the_same_rules() -> None:
    seen: Counter[str] = Counter()
    for seed in range(DRAWN):
        made = _drawn(random.Random(seed))  # noqa: S311 - which states, no secrets
        state, throttle = made.state, Throttle(made.state, NOW_NS)
        leaf, spec = state.queues[ASKING], made.application("app-1").asks["a"].spec
        claimant = Claimant(state, ExpectedUsage(), throttle, leaf, spec)
        for app in state.applications.values():
            for uuid, allocation in app.allocations.items():
                others = [it for it in state.owners if it != uuid]
                (objection,) = against(state, OfGuarantee(state, claimant, throttle), others)
                may_go = claimant.may_be_victim(Victim(state, (allocation,)))
                assert may_go is (objection not in OF_RULES), f"seed {seed}, {uuid}: {objection}"
                seen[objection] += 1
    assert seen.keys() >= OF_RULES, f"vacuous: only {dict(seen)}"
    assert seen.keys() > OF_RULES, "vacuous: nobody may go"
