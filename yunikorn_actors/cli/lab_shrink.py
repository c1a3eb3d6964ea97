"""`lab shrink`: make a failing scenario and its tape small, so that a person reads both at once."""

import argparse
import json
import time
from functools import partial
from typing import Any

from yunikorn_actors.cli import INTERRUPTED
from yunikorn_actors.lab.oracles.judges import judges_of
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.lab.shrinking.shrink import Effort
from yunikorn_actors.lab.shrinking.shrink_case import CaseShrinker, Failing
from yunikorn_actors.lab.tapes.tape_files import case_of, keep_case, read_tape, source_of


def run(options: argparse.Namespace) -> int:
    tape, source = read_tape(options.tape), source_of(options.tape)
    failing = Failing(case_of(tape, source, options.scenario), tape)
    judges = partial(judges_of, tape)
    violation = play(failing.case, tape, judges()).violation
    if violation is None:
        print(f"ok    {source}: nothing is wrong, so there is nothing to make small")
        return 0
    begun = time.perf_counter()
    shrinker = CaseShrinker(failing, violation.kind, judges, Effort(seconds=options.shrink_seconds))
    status = 1
    try:
        small = shrinker.shrink()
    except KeyboardInterrupt:
        small, status = shrinker.best, INTERRUPTED
    outcome = shrinker.play(small)
    assert outcome.violation is not None, "what was made small does not fail any more"
    wrong = outcome.violation.text
    saved = () if options.save is None else keep_case(options.save, small.case, small.tape, wrong)
    shown: dict[str, Any] = {
        "violation": wrong,
        "steps_before": len(failing.case.left(tape)),
        "deviations_before": len(tape.entries),
        "steps": len(small.case.left(small.tape)),
        "deviations": len(small.tape.entries),
        "stimuli": outcome.stimuli,
        "messages": outcome.messages,
        "plays": shrinker.effort.plays,
        "seconds": round(time.perf_counter() - begun, 3),
        "saved": [str(path) for path in saved],
        "scenario": small.case.text,
        "tape": small.tape.line(),
    }
    print(json.dumps(shown) if options.json else _as_text(source, small, shown), flush=True)
    return status


def _as_text(source: str, small: Failing, shown: dict[str, Any]) -> str:
    sizes = (
        f"of {shown['steps_before']} steps and {shown['deviations_before']} deviations "
        f"{shown['steps']} and {shown['deviations']} are left ({shown['stimuli']} stimuli, "
        f"{shown['messages']} messages), after {shown['plays']} plays in {shown['seconds']:.1f} s"
    )
    lines = [
        f"FAIL  {source}: {shown['violation']}",
        f"      {sizes}",
        *(f"      kept in {path}" for path in shown["saved"]),
        "",
        *_indented(small.case.text),
        "",
        *_indented(str(small.case.explained(small.tape))),
    ]
    return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return [f"      {line}" for line in text.splitlines()]
