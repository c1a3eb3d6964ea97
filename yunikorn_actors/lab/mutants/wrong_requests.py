"""Defects of what requests bring: names, reports, and what ends by a wish."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.machines.context import asks, nodes, releases
from yunikorn_actors.machines.predicate_gate import PredicateGate
from yunikorn_actors.messages import callbacks

REQUESTS = (
    Mutant(
        id="M301",
        kind=Kind.REQUEST,
        source="a condition left out",
        wrong="A report under the UUID of another allocation of its application resizes that one.",
        where=asks._belongs_to_another,
        old="return app.allocations[item.uuid].spec.key != item.spec.key",
        new="return False",
        held_by="tests/lab/test_keeping_oracles.py::test_what_was_not_asked_for[M301]",
        unseen="No case reports work under the UUID of other work.",
    ),
    Mutant(
        id="M302",
        kind=Kind.REQUEST,
        source="a wish taken for another",
        wrong="Who withdraws all asks of an application ends what runs of it, too.",
        where=releases.release_asks,
        old="allocated_too=bool(item.key)",
        new="allocated_too=True",
    ),
    Mutant(
        id="M303",
        kind=Kind.REQUEST,
        source="a default for what is not named",
        wrong="An update of a node that says nothing of it makes the node ready.",
        where=nodes._replace_attributes,
        old="otherwise=node.ready",
        new="otherwise=True",
        held_by="tests/lab/test_keeping_oracles.py::test_what_was_not_asked_for[M303]",
        unseen="No case has a node that is not ready.",
    ),
    Mutant(
        id="M304",
        kind=Kind.REQUEST,
        source="a step left out",
        wrong="A UUID that was brought by a report is issued once more.",
        where=asks._recover,
        old="    unit.partition.uuids.avoid(item.uuid)\n",
        new="",
        held_by="tests/lab/test_keeping_oracles.py::test_what_was_not_asked_for[M304]",
        unseen="No case reports work under a UUID that the core gives next.",
    ),
    Mutant(
        id="M305",
        kind=Kind.REQUEST,
        source="a state passed by",
        wrong="A placeholder that is reported while its gang is dissolved is never asked back.",
        where=asks._take_report,
        old="    if comes_too_late:\n",
        new="    if comes_too_late and known is not None:\n",
        held_by="tests/lab/test_keeping_oracles.py::test_what_was_not_asked_for[M305]",
        unseen="No case reports a placeholder of a gang that is dissolved.",
    ),
    Mutant(
        id="M315",
        kind=Kind.REQUEST,
        source="a row left out",
        wrong="A predicate that raises has no answer.",
        where=callbacks.call_back,
        old="None if instead is None else instead(call, error)",
        new="None",
        held_by="tests/lab/test_keeping_oracles.py::test_what_was_not_asked_for[M315]",
        unseen="In no case a predicate raises.",
    ),
    Mutant(
        id="M316",
        kind=Kind.REQUEST,
        source="an answer passed by",
        wrong="Victims that the resource manager wants to go besides stay.",
        where=PredicateGate._with_further,
        old="asked.further[:count]",
        new="asked.further[:0]",
        held_by="tests/lab/test_keeping_oracles.py::test_what_was_not_asked_for[M316]",
        unseen="In no case a resource manager is asked about victims.",
    ),
)
