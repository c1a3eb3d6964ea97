"""Defects of what stands between a proposal and the truth: old views, limits, guarantees."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.machines.context import commit
from yunikorn_actors.planning.preemption import required_node as required
from yunikorn_actors.planning.preemption import victim_rules as rules
from yunikorn_actors.state import allocations as allocation
from yunikorn_actors.state import eligibility

GATES = (
    Mutant(
        id="M07",
        source="R-078 YUNIKORN-3003",
        wrong="What is preempted already may be preempted once more.",
        where=allocation.Allocation.may_be_released,
        old="return self.releasing is None",
        new="return self.releasing is None or self.beneficiary is not None",
    ),
    Mutant(
        id="M06",
        source="R-013 R-015 YUNIKORN-2141 YUNIKORN-3188",
        wrong="What was asked back for another reason can be a victim, or be asked back once more.",
        where=allocation.Allocation.may_be_released,
        old="return self.releasing is None",
        new="return self.releasing is not TerminationType.PREEMPTED_BY_SCHEDULER",
    ),
    Mutant(
        id="M64",
        kind=Kind.QUOTA,
        source="R-107 YUNIKORN-2632",
        wrong="A decision is held to the maximum of its leaf alone.",
        where=eligibility.check_quotas,
        old="in queues:",
        new="in queues[:1]:",
        held_by="tests/machines/test_commit.py::test_the_maximum_of_each_queue_above_holds",
        unseen="The planner asks the same; a wrong proposal has to meet a full queue above.",
    ),
    Mutant(
        id="M65",
        kind=Kind.QUOTA,
        source="R-076 YUNIKORN-1986",
        wrong="A decision is not held to the amounts of its user and group.",
        where=eligibility.check_limits,
        old="if not has_room(limit.max_resources, usage.amounts, resource.items()):",
        new="if False:",
    ),
    Mutant(
        id="M68",
        kind=Kind.GUARANTEE,
        source="R-080 YUNIKORN-2769",
        wrong="Preemption takes a queue below its guarantee.",
        where=rules.may_give,
        old="return not is_named or (",
        new="return True or (",
        held_by="tests/machines/test_commit_of_preemption.py::test_one_reason_to_refuse_a_guarantee",
        unseen=(
            "The planner spares the guarantee as well unless a Scheduler proposes wrongly; "
            "few runs do."
        ),
    ),
    Mutant(
        id="M69",
        kind=Kind.GUARANTEE,
        source="R-079",
        wrong="Preemption reaches beyond a queue that keeps its asks in.",
        where=rules.fence_of,
        old="if level.properties.preemption_policy is PreemptionPolicy.FENCE:",
        new="if False:",
    ),
    Mutant(
        id="M70",
        source="R-077 YUNIKORN-1434",
        wrong="An ask has more victims go before those before them are gone.",
        where=required.is_dying_for,
        old="return any(item.beneficiary == beneficiary for item in node.allocations.values())",
        new="return False",
        held_by="tests/machines/test_commit_of_preemption.py::test_nobody_else_goes_while_others_are_on_their_way_out",
        unseen=(
            "A wrong proposal has to come while the victims of another one go; few runs do that."
        ),
    ),
    Mutant(
        id="M62",
        source="R-061 H-33",
        wrong="A decision is taken for a node that was drained since.",
        where=commit._allocate,
        old="check_allocate(state, proposal)",
        new="None if (it := check_allocate(state, proposal)) is Refusal.NODE_DRAINING else it",
    ),
    Mutant(
        id="M63",
        source="R-019 YUNIKORN-2788",
        wrong="A decision is taken for a node that was filled since.",
        where=commit._allocate,
        old="check_allocate(state, proposal)",
        new="None if (found := check_allocate(state, proposal)) is Refusal.NODE_FULL else found",
    ),
    Mutant(
        id="M66",
        kind=Kind.QUOTA,
        source="R-053 YUNIKORN-790",
        wrong="An application starts without a place among those that may run.",
        where=commit._allocate,
        old="check_allocate(state, proposal)",
        new="None if (found := check_allocate(state, proposal)) is Refusal.APP_LIMIT else found",
    ),
    Mutant(
        id="M67",
        kind=Kind.MANAGERS,
        source="R-140",
        wrong="A decision is taken for a resource manager that is away.",
        where=commit._allocate,
        old="check_allocate(state, proposal)",
        new="None if (found := check_allocate(state, proposal)) is Refusal.RM_PAUSED else found",
    ),
    Mutant(
        id="M71",
        source="R-071 YUNIKORN-2976",
        wrong="A decision is taken for a node that was kept for another since.",
        where=commit._allocate,
        old="check_allocate(state, proposal)",
        new="None if (it := check_allocate(state, proposal)) is Refusal.NODE_RESERVED else it",
        held_by="tests/machines/test_commit.py::test_what_is_refused_is_not_committed",
        unseen=(
            "A proposal has to be under way while its node is kept for another; few runs do that."
        ),
    ),
    Mutant(
        id="M72",
        source="R-090 YUNIKORN-1197",
        wrong="A placeholder is taken for a gang that is not admitted any more.",
        where=commit._allocate,
        old="check_allocate(state, proposal)",
        new="None if (found := check_allocate(state, proposal)) is Refusal.GANG_HELD else found",
    ),
)
