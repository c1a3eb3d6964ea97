"""Running scripts under the judge, and making a failing one small."""

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from yunikorn_actors.domain.facts import Fact, parts_of
from yunikorn_actors.lab.shrink_document import DocumentShrinker
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Cause, Delivery, is_callback
from yunikorn_actors.messages.scheduling import FactsAppended, ProposeAllocations, ReportWaiting
from yunikorn_actors.scenario.document import Scenario, ScenarioError, parse_scenario
from yunikorn_actors.scenario.runner import RunOptions, run_scenario
from yunikorn_actors.sim.checkers import default_checkers
from yunikorn_actors.sim.simulator import Simulator

from .judge import Judge
from .scripts import Script


class Follower:
    """Hands the facts to the judge, in their order, and tells it when the core is at rest."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self._news = 0
        """The planner must have seen this revision to know all that no proposal made."""
        self._since_rest = False

    def delivered(self, simulator: Simulator, delivery: Delivery) -> None:
        if delivery.mailbox == CONTEXT:
            self._follow(simulator, delivery)
        if is_callback(delivery.mailbox):
            self.judge.hear(delivery.message)
        if not simulator._channels and self._since_rest:
            self._since_rest = False
            self.judge.now = simulator.now_ns
            self.judge.rest()

    def _follow(self, simulator: Simulator, delivery: Delivery) -> None:
        judge, message = self.judge, delivery.message
        judge.now = simulator.now_ns
        self._since_rest = True
        is_plan = isinstance(message, ProposeAllocations | ReportWaiting)
        plan = message if isinstance(message, ProposeAllocations) else None
        as_of = plan.as_of if plan is not None else None
        news = _appended(simulator, Cause(delivery.mailbox, delivery.step))
        judge.begin(as_of, is_stale=as_of is not None and as_of < self._news)
        for appended in news:
            judge.revision = appended.first_revision - 1
            for fact in _parts(appended):
                judge.follow(fact)
            if not is_plan:
                self._news = max(self._news, judge.revision)
        if plan is not None and _is_refused(plan, news):
            # The planner hears of it after what was done of the plan, and until then it counts
            # the refused decision as made; so only a plan that knows of more is sure to know it.
            self._news = judge.revision + 1


def _is_refused(plan: ProposeAllocations, news: list[FactsAppended]) -> bool:
    """Whether Context did not do something of a plan."""
    done = {getattr(fact, "proposal_id", 0) for appended in news for fact in _parts(appended)}
    return any(proposal.proposal_id not in done for proposal in plan.proposals)


def _parts(appended: FactsAppended) -> list[Fact]:
    """A run is judged part by part: it has to be what one decision after the other would be."""
    return [part for fact in appended.facts for part in parts_of(fact)]


def _appended(simulator: Simulator, cause: Cause) -> list[FactsAppended]:
    """Return what Context recorded while it handled the message that is the cause."""
    return [
        envelope.message
        for (_, to), queue in simulator._channels.items()
        if to == EVENT_PUBLISHER
        for _, envelope in queue
        if envelope.cause == cause and isinstance(envelope.message, FactsAppended)
    ]


class Verdict(NamedTuple):
    difference: str
    """Empty where there is none."""
    checks: Counter[str]
    undecided: Counter[str]


def judged(script: Script, topology: TopologyName, seed: int = 0) -> Verdict:
    """Run a script once; the seed chooses how its messages interleave.

    With some seeds few decisions are made in one plan, so that what is left over of one shows.
    """
    scenario = _read(json.dumps(script))
    if seed % 6 == 1:
        few = replace(scenario.settings, cycle_max=1 + seed % 3, inflight_max=1 + seed % 2)
        scenario = replace(scenario, settings=few)
    judge = Judge(scenario.settings)
    judge.is_fused = topology == "fused"
    options = RunOptions(
        seeds=(seed,), topology=topology,
        checkers=lambda: (*default_checkers(), Follower(judge)),
    )  # fmt: skip
    outcome = run_scenario(scenario, options)
    difference = "; ".join(map(str, (failure.actual for failure in outcome.failures)))
    return Verdict(difference, judge.checks, judge.undecided)


@lru_cache(maxsize=1)
def _read(text: str) -> Scenario:
    """Read a script, once for both topologies: that takes as long as to judge it."""
    return parse_scenario(text, "script.yaml")


def kind_of(difference: str) -> str:
    """Say what is alike in differences: the words without names, numbers and where it was."""
    words = re.sub(r"; repeat:.*|\[.*?\]", "", difference)
    return re.sub(r"[\w./-]*\d[\w./-]*|root[.\w]*", "_", words)[:100]


def shrunk(script: Script, fails: Callable[[Script], bool]) -> Script:
    """Leave out what the difference does not need."""

    def still(smaller: Script, _: object) -> bool:
        try:
            return fails(smaller)
        except ScenarioError:
            return False

    shrinker = DocumentShrinker(script, still)
    shrinker.shrink()
    return shrinker.document
