"""Defects of machines: failures, registrations, reloads, and what a planner keeps in mind."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.machines.context import config_changes as configuration
from yunikorn_actors.machines.context import context, partitions
from yunikorn_actors.planning import apply_fact as follow
from yunikorn_actors.planning.stages import allocate as placing
from yunikorn_actors.planning.stages import gangs
from yunikorn_actors.state import ledger as books

MACHINES = (
    Mutant(
        id="M75",
        source="R-143 YUNIKORN-2681",
        wrong="Proposals of a Scheduler that failed are taken after it was replaced.",
        where=context.Context._on_propose_allocations,
        old="partition.schedulers.get(scheduler_of(message.proposals[0].proposal_id))",
        new="next(iter(partition.schedulers.values()))",
        held_by="tests/machines/test_replacement.py::test_a_proposal_of_a_former_life_is_refused",
        unseen=(
            "What a Scheduler has sent comes before the news of its failure, as both are in one "
            "channel."
        ),
    ),
    Mutant(
        id="M76",
        kind=Kind.MANAGERS,
        source="H-19 R-104",
        wrong="Messages of a former registration reach the partition of the present one.",
        where=partitions.Partitions.current,
        old="if partition is None or partition.epoch != epoch:",
        new="if partition is None:",
    ),
    Mutant(
        id="M77",
        source="R-090 YUNIKORN-1197",
        wrong="A Scheduler that replaces another forgets the placeholders that wait.",
        where=follow._adopt_application,
        old="        if ask.remaining:",
        new="        if ask.remaining and not ask.spec.placeholder:",
    ),
    Mutant(
        id="M78",
        source="R-091 YUNIKORN-1161",
        wrong="A Scheduler that replaces another does not know which placeholders may be swapped.",
        where=follow._adopt_application,
        old="            model.gangs.offer(view, allocation)",
        new="            pass",
        held_by="tests/machines/test_replacement.py::test_every_ask_is_placed_as_often_as_it_should",
        unseen=(
            "A Scheduler has to fail between the placeholders of a gang and its members; few do."
        ),
    ),
    Mutant(
        id="M79",
        source="R-124 YUNIKORN-2209",
        wrong="What a refused decision took is not given back.",
        where=placing.Placer.reject,
        old="self._let_go(flight)",
        new="self._resolve(flight)",
    ),
    Mutant(
        id="M80",
        source="R-036 YUNIKORN-169",
        wrong="An ask whose decision lost a race is never tried again.",
        where=placing.Placer.reject,
        old="if not ask.gone:",
        new="if False:",
    ),
    Mutant(
        id="M81",
        source="R-014 in the planner",
        wrong="A placeholder whose swap was refused is offered again while it is on its way out.",
        where=gangs.Swapper.reject,
        old="if still_there and placeholder.may_be_released:",
        new="if still_there:",
        held_by="tests/races/test_r010_r016_two_reasons_for_one_end.py::test_r014_a_placeholder_that_goes_is_offered_to_no_member_again",
        unseen=(
            "A swap has to be refused while its placeholder goes for another reason; few "
            "runs do that."
        ),
    ),
    Mutant(
        id="M82",
        kind=Kind.TIMERS,
        source="R-051 with registrations",
        wrong="The timer of a resource manager that was lost removes the one that came back.",
        where=context.Context._on_rm_partitions_remove,
        old="if manager is None or manager.generation != message.generation:",
        new="if manager is None:",
    ),
    Mutant(
        id="M83",
        source="R-102 YUNIKORN-2527",
        wrong="A queue that leaves the configuration and comes back goes on draining.",
        where=configuration._put,
        old="if queue.state is not QueueState.ACTIVE:",
        new="if False:",
    ),
    Mutant(
        id="M84",
        source="H-25 R-110",
        wrong="A queue is cleaned away although an application came into it.",
        where=configuration.clean,
        old="while queue is not None and queue.is_to_be_cleaned:",
        new="while queue is not None and (queue.is_to_be_cleaned or not queue.spec.managed):",
    ),
    Mutant(
        id="M85",
        kind=Kind.QUOTA,
        source="R-118 YUNIKORN-1893",
        wrong="What an application used stays charged to the group that it leaves.",
        where=books.relink,
        old="            discharge(usage.amounts, amount)",
        new="            pass",
        held_by="tests/races/test_r118_r124_users_and_groups.py::test_r122_a_group_that_is_limited_elsewhere_counts_there_alone",
        unseen="A limit of a group has to go while the group uses something; few runs do that.",
    ),
    Mutant(
        id="M86",
        kind=Kind.QUOTA,
        source="R-121 YUNIKORN-1641",
        wrong="What a user has in a queue is still listed when nobody uses it any more.",
        where=books.detach,
        old="        usage.attached -= 1\n",
        new="        usage.attached -= app.state.value != 'Failing'\n",
        held_by="tests/races/test_r118_r124_users_and_groups.py"
        "::test_r121_what_a_user_had_goes_with_an_application_that_fails",
        unseen="An application has to be removed while it fails; few runs bring that about.",
    ),
)
