"""Defects that show only where a bound is reached: a full plan, a burst, a history of one."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.machines.context import asks, lifecycle, unit_of_work
from yunikorn_actors.machines.context.partition_context import Rejections
from yunikorn_actors.machines.planning_loop import PlanningLoop
from yunikorn_actors.machines.rm_proxy.flow_control import Deliveries, ManagerTurns
from yunikorn_actors.planning.stages.allocate import Placer

BOUNDS = (
    Mutant(
        id="M120",
        kind=Kind.BOUND,
        source="a step left out",
        wrong="After a plan that was cut short nothing asks for the next.",
        where=PlanningLoop._on_run_cycle,
        old="effects.extend(self._come_back(now_ns))",
        new="pass",
    ),
    Mutant(
        id="M121",
        kind=Kind.BOUND,
        source="a step left out",
        wrong="What waits for its turn behind two parts is lost.",
        where=ManagerTurns.handled,
        old="    if waiting:\n        self._waiting[rm_id] = waiting\n",
        new="",
    ),
    Mutant(
        id="M122",
        kind=Kind.BOUND,
        source="off by one",
        wrong="Backpressure that has begun at a bound of one never ends.",
        where=Deliveries.taken,
        old="< self._max:",
        new="< self._max - 1:",
    ),
    Mutant(
        id="M124",
        kind=Kind.BOUND,
        source="the wrong end",
        wrong="Above its bound the history forgets the newest application.",
        where=lifecycle.remember,
        old="next(iter(finished))",
        new="next(reversed(finished))",
    ),
    Mutant(
        id="M125",
        kind=Kind.BOUND,
        source="too much at once",
        wrong="Above their bound all rejections are forgotten.",
        where=Rejections.note,
        old="del self._known[next(iter(self._known))]",
        new="self._known.clear()",
        held_by="tests/machines/test_explained.py::test_rejections_are_remembered_up_to_a_number",
        unseen="Nothing is decided by what is remembered, so no oracle judges it.",
    ),
    Mutant(
        id="M126",
        kind=Kind.BOUND,
        source="a condition left out",
        wrong="A run in which an ask stands twice counts as shorter: its last is taken again.",
        where=asks._gather,
        old="spec.key in run or ",
        new="",
        held_by="tests/machines/test_runs.py::test_a_request_is_taken_as_one_ask_after_the_other",
        unseen="No world asks for the same twice in one request.",
    ),
    Mutant(
        id="M127",
        kind=Kind.BOUND,
        source="off by one",
        wrong="Where one decision may be in flight none is made.",
        where=PlanningLoop._next_cycle,
        old=">= self._settings.inflight_max",
        new=">= self._settings.inflight_max - 1",
    ),
    Mutant(
        id="M207",
        kind=Kind.BOUND,
        source="off by one",
        wrong="An answer in parts is delivered before its last part.",
        where=unit_of_work.in_parts,
        old="if left:",
        new="if left > items_max:",
    ),
    Mutant(
        id="M208",
        kind=Kind.BOUND,
        source="a step left out",
        wrong="A lower bound for responses has no mark sent, though the last may be too long ago.",
        where=Deliveries.bound,
        old="return self._mark()",
        new="return []",
    ),
    Mutant(
        id="M209",
        kind=Kind.BOUND,
        source="one for all",
        wrong="A run of asks takes one number for all of them.",
        where=asks._add,
        old="take_sequences(len(specs))",
        new="take_sequences(1)",
    ),
    Mutant(
        id="M210",
        kind=Kind.BOUND,
        source="a step left out",
        wrong="What goes first to the room of a placeholder loses that where the plan is full.",
        where=Placer.place_first,
        old="self._model.requeue.goes_first((ask.app, ask.ask.spec.key))",
        new="break",
    ),
)
