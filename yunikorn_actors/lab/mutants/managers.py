"""Defects that take what belongs to one resource manager, or one registration, for another's."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.machines.context.registry import Registry
from yunikorn_actors.machines.rm_proxy.asked_back import RequestedBack
from yunikorn_actors.machines.rm_proxy.questions import Questions
from yunikorn_actors.machines.rm_proxy.rm_proxy import RmProxy
from yunikorn_actors.machines.rm_proxy.turns import Turns

MANAGERS = (
    Mutant(
        id="M130",
        kind=Kind.MANAGERS,
        source="the last for all",
        wrong="Of several planners that got a no only the last learns when it is lifted.",
        where=Questions._note,
        old="self._refused.setdefault(rm_id, {})[asker] = None",
        new="self._refused[rm_id] = {asker: None}",
    ),
    Mutant(
        id="M131",
        kind=Kind.MANAGERS,
        source="a condition left out",
        wrong="A mark of a former callback counts for the present one.",
        where=RmProxy._on_responses_delivered,
        old=" or deliveries.callback != message.callback",
        new="",
        held_by="tests/machines/test_marks.py::test_a_mark_of_a_former_callback_says_nothing_of_the_present_one",
        unseen="A callback has to be slow while its resource manager registers anew.",
    ),
    Mutant(
        id="M132",
        kind=Kind.MANAGERS,
        source="a condition left out",
        wrong="When a resource manager leaves, all registrations on their way are forgotten.",
        where=RmProxy._on_rm_gone,
        old=" if manager == rm_id]",
        new="]",
    ),
    Mutant(
        id="M133",
        kind=Kind.MANAGERS,
        source="a step left out",
        wrong="Parts of an answer to a former registration are put before the next answer.",
        where=RmProxy._cut,
        old="    self._parts.pop(rm_id, None)\n",
        new="",
    ),
    Mutant(
        id="M211",
        kind=Kind.MANAGERS,
        source="a step left out",
        wrong="A registration on its way is taken though its resource manager has left since.",
        where=RmProxy._on_rm_gone,
        old="del self._coming[callback]",
        new="pass",
        held_by="tests/races/test_lost_while_registering.py::test_everybody_sees_one_order",
        unseen="No world loses a resource manager before its registration is answered.",
    ),
    Mutant(
        id="M212",
        kind=Kind.MANAGERS,
        source="a condition left out",
        wrong="Requests of a former registration wait for what the present one is sent.",
        where=RmProxy._on_requests_handled,
        old=" or deliveries.callback != message.callback",
        new="",
    ),
    Mutant(
        id="M213",
        kind=Kind.MANAGERS,
        source="a part left out",
        wrong="Questions that were late are still known when their callback has gone.",
        where=Questions.cut,
        old="(*line.handed, *line.late)",
        new="line.handed",
        held_by="tests/machines/test_predicates.py::test_a_callback_that_is_gone_leaves_no_question_open",
        unseen="A callback has to go while it is too late with a question; few worlds do that.",
    ),
    Mutant(
        id="M214",
        kind=Kind.MANAGERS,
        source="a condition left out",
        wrong="When one member of a policy group leaves, the group loses its configuration.",
        where=Registry.leave,
        old="if not self.members(group) and",
        new="if",
    ),
    Mutant(
        id="M215",
        kind=Kind.MANAGERS,
        source="a condition left out",
        wrong="The release of all in one partition confirms what was asked back in the others.",
        where=RequestedBack._holders,
        old=" if holder[0] == partition]",
        new="]",
    ),
    Mutant(
        id="M216",
        kind=Kind.MANAGERS,
        source="a queue passed by",
        wrong="A request overtakes those of its resource manager that wait for their turn.",
        where=Turns.send,
        old="if waiting is not None:",
        new="if waiting:",
    ),
)
