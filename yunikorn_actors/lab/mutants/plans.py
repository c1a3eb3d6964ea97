"""Defects of gangs and of the planner that need no certain order of messages."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.machines.context import lifecycle
from yunikorn_actors.planning.stages.allocate import Placer

PLANS = (
    Mutant(
        id="M162",
        kind=Kind.GANG,
        source="a step left out",
        wrong="An application whose gang was dissolved counts as Accepted though members run.",
        where=lifecycle._resumed,
        old="if any(app.allocated.values()):",
        new="if False:",
    ),
    Mutant(
        id="M251",
        kind=Kind.GANG,
        source="a condition left out",
        wrong="The first placeholder of a gang lets it run.",
        where=lifecycle.run_if_complete,
        old="app.spec.is_gang and equals(app.placeholders, app.spec.placeholder_ask)",
        new="app.spec.is_gang",
    ),
    Mutant(
        id="M163",
        kind=Kind.PLANNER,
        source="all for one",
        wrong="With its first decision an ask of several repeats is shut altogether.",
        where=Placer._decide,
        old="model.asks.shut(ask, 1)",
        new="model.asks.shut(ask, ask.waiting + 1)",
    ),
    Mutant(
        id="M164",
        kind=Kind.PLANNER,
        source="a case left out",
        wrong="A gang whose commitment has lapsed never has its turn again.",
        where=Placer.plan,
        old=" or (admitter.lapsed and admitter.offer_lapsed())",
        new="",
    ),
    Mutant(
        id="M165",
        kind=Kind.PLANNER,
        source="a condition left out",
        wrong="What was committed in another size counts as it was decided.",
        where=Placer.resolve,
        old="flight.resource == fact.resource and flight",
        new="flight",
    ),
)
