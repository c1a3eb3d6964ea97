"""Defects of gangs: placeholders, swaps, admission, and the time that a gang may take."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.machines.context import asks, endings, gangs, lifecycle, releases, timeouts
from yunikorn_actors.machines.context import config_changes as configuration
from yunikorn_actors.planning import apply_fact as follow
from yunikorn_actors.state import facts as f
from yunikorn_actors.state import gangs as gang
from yunikorn_actors.state.facts import asks as ask_facts

GANGS = (
    Mutant(
        id="M03",
        source="R-004 YUNIKORN-1900",
        wrong="The swap of the only placeholder completes the application, and it stays so.",
        where=lifecycle.work_started,
        old="        advance(unit, app, ApplicationEvent.RUN)",
        new=(
            "        _completes = len(app.allocations) == 1 and app.task_groups\n"
            "        event = ApplicationEvent.COMPLETE if _completes else ApplicationEvent.RUN\n"
            "        advance(unit, app, event)"
        ),
    ),
    Mutant(
        id="M05",
        source="R-014 YUNIKORN-2146",
        wrong="A member takes over a placeholder that was asked back for another reason.",
        where=gangs.check_replace,
        old="placeholder is None or not placeholder.may_be_released or not",
        new="placeholder is None or not",
    ),
    Mutant(
        id="M08",
        source="R-016 YUNIKORN-3190",
        wrong="Whoever wants an allocation back asks for it, whether or not another has done so.",
        where=endings.request_release,
        old="if not allocation.may_be_released:",
        new="if False:",
    ),
    Mutant(
        id="M11",
        source="R-005 YUNIKORN-2562",
        wrong="A placeholder that is reported after a restart is not counted in its task group.",
        where=f.AllocationRecovered.change,
        old="if spec.placeholder:",
        new="if False:",
    ),
    Mutant(
        id="M12",
        source="R-007 YUNIKORN-2953",
        wrong="A placeholder that its timeout ended is counted twice.",
        where=f.AllocationReleased.change,
        old="timed_out += 1",
        new="timed_out += 1 + (self.type.name == 'TIMEOUT')",
    ),
    Mutant(
        id="M13",
        source="R-035 YUNIKORN-222",
        wrong="An application with a swap in flight counts as one without work.",
        where=lifecycle._has_no_work,
        old=" or app.swaps)",
        new=")",
    ),
    Mutant(
        id="M19",
        source="R-107 in gangs: koordinator 872",
        wrong="A gang is admitted to room that is committed to another gang already.",
        where=gangs.commitments,
        old="commit_room(committed, other, commitment_of(other))",
        new="commitment_of(other)",
    ),
    Mutant(
        id="M20",
        source="Volcano 6010",
        wrong="A member is swapped in although placeholders of its gang still wait.",
        where=gangs._check_member,
        old="if app.waiting_placeholders else None",
        new="if False else None",
    ),
    Mutant(
        id="M25",
        source="R-012 YUNIKORN-1395",
        wrong="A placeholder that is lost with its node still counts as alive.",
        where=f.AllocationReleased.change,
        old="if allocation.spec.placeholder:",
        new="if allocation.spec.placeholder and self.type.value:",
    ),
    Mutant(
        id="M26",
        source="R-011 YUNIKORN-1242",
        wrong="A member waits for a placeholder although its group has none left.",
        where=gang.waits_for_swap,
        old="group.alive > 0",
        new="group.count > 0",
    ),
    Mutant(
        id="M27",
        source="H-01",
        wrong="A swap is not called off when the node of the real one leaves.",
        where=gangs.unpark,
        old="    unit.record(",
        new="    if frees: unit.record(",
    ),
    Mutant(
        id="M28",
        source="H-02",
        wrong="The end of a placeholder completes its swap only if its type says so.",
        where=gangs.end_allocation,
        old="if swap is None:",
        new="if swap is None or type_.name != 'PLACEHOLDER_REPLACED':",
    ),
    Mutant(
        id="M29",
        source="H-03",
        wrong="The room that a parked ask holds on another node is never given back.",
        where=f.AskUnparked.change,
        old="if swap.crosses:",
        new="if False:",
    ),
    Mutant(
        id="M30",
        source="H-04",
        wrong="An ask that is withdrawn while it is parked stays in its swap.",
        where=asks.remove_ask,
        old='    unpark_ask(unit, app, ask, "the ask is gone")\n',
        new='    if not ask.parked:\n        unpark_ask(unit, app, ask, "the ask is gone")\n',
    ),
    Mutant(
        id="M31",
        source="H-15",
        wrong="A parked ask that is sent again with another size stays parked, fitting or not.",
        where=asks._unpark_what_no_longer_suits,
        old="if not still_suits(unit.state, app, swap, spec):",
        new="if False:",
    ),
    Mutant(
        id="M32",
        source="H-16",
        wrong="A placeholder that has become smaller than its parked ask keeps it.",
        where=asks._resize,
        old="if swap is not None and not fits_in(",
        new="if False and not fits_in(",
    ),
    Mutant(
        id="M33",
        source="H-15 across nodes",
        wrong="What a parked ask holds on another node does not follow its new size.",
        where=ask_facts.resize_incoming,
        old="swap.key == spec.key and swap.crosses",
        new="False",
    ),
    Mutant(
        id="M34",
        kind=Kind.TIMERS,
        source="H-22",
        wrong="A timer that was cancelled or armed anew acts all the same when it fires.",
        where=lifecycle.current_timer,
        old="timer is not None and timer.generation == message.generation",
        new="True",
        held_by="tests/races/test_r027_r051_stale_timers.py::test_a_new_ask_against_the_completing_timer",
        unseen=(
            "A timer has to come after its application was woken and has work again; "
            "the runs hardly bring that about."
        ),
    ),
    Mutant(
        id="M35",
        source="R-026 YUNIKORN-582",
        wrong="An application whose gang was dissolved stays Resuming after the last placeholder.",
        where=lifecycle.work_gone,
        old="        _resumed(unit, app, work_ended=work_ended)",
        new="        return",
    ),
    Mutant(
        id="M36",
        source="R-023 YUNIKORN-577",
        wrong="Placeholders that wait survive the timeout of a soft gang.",
        where=timeouts._expire_gang,
        old="(fails or ask.spec.placeholder)",
        new="fails",
    ),
    Mutant(
        id="M37",
        kind=Kind.TIMERS,
        source="R-022 YUNIKORN-460",
        wrong="The timer of a gang ends with the first placeholder that goes, not with the last.",
        where=lifecycle.stop_placeholder_timer,
        old="if not app.has_placeholders:",
        new="if True:",
    ),
    Mutant(
        id="M38",
        source="R-059 YUNIKORN-854",
        wrong="The planner keeps its copy of the room that a called-off swap held on a node.",
        where=follow._on_ask_unparked,
        old="        model.amounts.free_node(node, fact.resource)\n",
        new="",
    ),
    Mutant(
        id="M39",
        source="H-31",
        wrong="An ask that is parked and reported as running elsewhere stays in its swap, too.",
        where=asks._take_report,
        old='unpark(unit, app, swaps_of(app, known)[0], "it runs already")',
        new="pass",
    ),
    Mutant(
        id="M40",
        kind=Kind.TIMERS,
        source="H-22 with commitments",
        wrong="The time of an admitted gang is not watched again when its last placeholder goes.",
        where=lifecycle.stop_placeholder_timer,
        old="        watch_commitment(unit, app)\n",
        new=(
            "        if app.serial not in unit.state.admitted:\n"
            "            watch_commitment(unit, app)\n"
        ),
    ),
    Mutant(
        id="M313",
        kind=Kind.GANG,
        source="a flag that is not handed on",
        wrong="A gang whose last member has ended waits until its placeholders time out.",
        where=releases._release_one,
        old="work_ended=not allocation.spec.placeholder",
        new="work_ended=False",
        held_by="tests/lab/test_keeping_oracles.py::test_an_application_that_idles[M313]",
        unseen="In no case a gang has placeholders left when its last member ends.",
    ),
    Mutant(
        id="M314",
        kind=Kind.QUOTA,
        source="a step left out",
        wrong="After a reload applications count in groups that have no limit any more.",
        where=configuration.configure,
        old="    yield from relink_groups(unit)\n",
        new="",
        held_by="tests/lab/test_keeping_oracles.py::test_an_application_that_idles[M314]",
        unseen="No case reloads limits of groups.",
    ),
)
