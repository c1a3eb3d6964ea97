"""Defects of preemption: budgets, cooldowns, units, and the order of what hurts gangs."""

from yunikorn_actors.config import PreemptionBudget
from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.planning.preemption import required_node, throttle, victim_units
from yunikorn_actors.planning.preemption.throttle import Throttle
from yunikorn_actors.planning.stages import guarantees
from yunikorn_actors.state.queues import Queue

PREEMPTION = (
    Mutant(
        id="M501",
        kind=Kind.GUARANTEE,
        source="a step left out",
        wrong="What a budget has spent is forgotten at each victim.",
        where=Queue.note_preempted,
        old="self.preempted.get(at_ns, 0) + 1",
        new="0",
    ),
    Mutant(
        id="M502",
        kind=Kind.GUARANTEE,
        source="a condition left out",
        wrong="A cooldown is over after a quarter of its time.",
        where=throttle.cooled_ns,
        old="allocation.allocated_ns + leaf.properties.preemption_cooldown_ns",
        new="allocation.allocated_ns + leaf.properties.preemption_cooldown_ns // 4",
    ),
    Mutant(
        id="M503",
        kind=Kind.GUARANTEE,
        source="one amount for another",
        wrong="The victims of one decision are not counted together in a budget.",
        where=Throttle.take,
        old="self._going.get(leaf.path, 0) + count",
        new="self._going.get(leaf.path, 0) * count",
    ),
    Mutant(
        id="M504",
        kind=Kind.GUARANTEE,
        source="a rounding",
        wrong="A share of a few allocations is none, so nobody may ever go.",
        where=PreemptionBudget.of,
        old="-(-running * self.most // PERCENT_MAX)",
        new="running * self.most // PERCENT_MAX",
    ),
    Mutant(
        id="M505",
        kind=Kind.TIMERS,
        source="a step left out",
        wrong="When a budget or a cooldown ends, nobody looks again.",
        where=guarantees._again_ns,
        old="return max(tried.at_ns + PAUSE_NS, tried.again_ns)",
        new="return NEVER_NS",
        held_by=(
            "tests/races/test_throttle.py::"
            "test_a_gang_whose_claim_a_budget_refused_claims_when_it_ends"
        ),
        unseen="In drawn worlds something else happens before that time.",
    ),
    Mutant(
        id="M506",
        kind=Kind.GANG,
        source="a condition left out",
        wrong="A unit that a queue sets by hand binds no work but that of hard gangs.",
        where=victim_units.goes_as_one,
        old="return unit is PreemptionUnit.APPLICATION",
        new="return unit is PreemptionUnit.APPLICATION and app.spec.is_hard",
    ),
    Mutant(
        id="M507",
        kind=Kind.GANG,
        source="the rule of former versions",
        wrong="Members of a hard gang that is whole go one by one.",
        where=victim_units.goes_as_one,
        old="        return app.spec.is_gang and app.spec.is_hard\n",
        new="        return False\n",
        held_by=(
            "tests/planning/test_victim_policies.py::test_of_whole_gangs_too_as_few_as_will_do"
        ),
        unseen="G32 sees it, but in drawn worlds a claim seldom reaches a whole hard gang alone.",
    ),
    Mutant(
        id="M508",
        kind=Kind.GANG,
        source="a rule that holds in one place of two",
        wrong="For a required node and a quota a part goes of what a queue binds together.",
        where=victim_units.is_set_to_go_as_one,
        old="is PreemptionUnit.APPLICATION",
        new="is None",
    ),
    Mutant(
        id="M509",
        kind=Kind.GANG,
        source="the rule of former versions",
        wrong=(
            "A placeholder that can run on one node alone has victims there though another of its "
            "gang has no room."
        ),
        where=required_node.room_for_bound,
        old="                return None\n            picked",
        new="                break\n            picked",
        held_by=(
            "tests/machines/test_gangs_that_claim.py::"
            "test_nothing_goes_on_one_node_where_another_has_no_room"
        ),
        unseen="Drawn gangs hardly have placeholders that are bound to nodes.",
    ),
)
