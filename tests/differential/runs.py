"""Running scripts under the judge, and making a failing one small."""

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from yunikorn_actors.drivers.simulator.checkers import default_checkers
from yunikorn_actors.lab.model.follower import Follower
from yunikorn_actors.lab.model.judge import Judge
from yunikorn_actors.lab.scenario_documents import Document
from yunikorn_actors.lab.shrinking.shrink_document import DocumentShrinker
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.scenario.document import Scenario, ScenarioError, parse_scenario
from yunikorn_actors.scenario.runner import RunOptions, run_scenario


class Verdict(NamedTuple):
    difference: str
    """Empty where there is none."""
    checks: Counter[str]
    undecided: Counter[str]


def judged(script: Document, topology: TopologyName, seed: int = 0) -> Verdict:
    """Run a script once; the seed chooses how its messages interleave."""
    scenario = _read(json.dumps(bounded(script, seed)))
    judge = Judge(scenario.settings, is_fused=topology == "fused")
    options = RunOptions(
        seeds=(seed,), topology=topology,
        checkers=lambda: (*default_checkers(), Follower(judge)),
    )  # fmt: skip
    outcome = run_scenario(scenario, options)
    difference = "; ".join(map(str, (failure.actual for failure in outcome.failures)))
    return Verdict(difference, judge.run.checks, judge.run.undecided)


def bounded(script: Document, seed: int) -> Document:
    """Let some seeds make few decisions in one plan, so that what is left over of one shows."""
    if seed % 6 != 1:
        return script
    few = {"cycle_max": 1 + seed % 3, "inflight_max": 1 + seed % 2}
    return {**script, "settings": few}


@lru_cache(maxsize=1)
def _read(text: str) -> Scenario:
    """Read a script, once for both topologies: that takes as long as to judge it."""
    return parse_scenario(text, "script.yaml")


def kind_of(difference: str) -> str:
    """Say what is alike in differences: the words without names, numbers and where it was."""
    words = re.sub(r"; repeat:.*|\[.*?\]", "", difference)
    return re.sub(r"[\w./-]*\d[\w./-]*|root[.\w]*", "_", words)[:100]


def shrunk(script: Document, fails: Callable[[Document], bool]) -> Document:
    """Leave out what the difference does not need."""

    def still(smaller: Document, _: object) -> bool:
        try:
            return fails(smaller)
        except ScenarioError:
            return False

    shrinker = DocumentShrinker(script, still)
    shrinker.shrink()
    return shrinker.document
