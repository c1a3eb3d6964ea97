"""A tape plays what comes, and names what was not there."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from runpy import run_path

import pytest

from yunikorn_actors.cli import lab as command
from yunikorn_actors.cli import main
from yunikorn_actors.lab.case import Case, parse_case
from yunikorn_actors.lab.explanation import Explainer
from yunikorn_actors.lab.hunt import Lab, NotPlayed, Wishes
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.lab.tapes.tape import parse_tape
from yunikorn_actors.lab.user_program import Trial

Jobs = run_path(str(Path(__file__).parents[1] / "formats" / "program.py"))["Jobs"]
TEXT = """\
name: one job
steps:
  - create_node: {id: n1, capacity: {vcore: 4000}}
  - add_app: {id: app-1, queue: root.default}
  - ask: {app: app-1, key: k, resource: {vcore: 1000}}
  - release: {app: app-1, key: k}
"""
CAME = (
    "hold RMNewAllocations(new k) from context to rm_proxy until after the end",
    "hold RMNewAllocations(new k) from context to rm_proxy until after step 4",
    "join RMNewAllocations(new k) from context to rm_proxy",
    "fail at ProposeAllocations(Allocate k) from scheduler to context",
    "do step 4 after ProposeAllocations(Allocate k) from scheduler to context",
    "repeat step 3 after step 3",
    "flap node n1 after step 3",
    "bounce application app-1 after step 2",
    "reload queues of rm-1 after step 2",
    "register rm-1 again after step 2",
    "freeze scheduler after step 2",
    "propose to admit app-1 after FactsAppended(ApplicationAdded app-1) from context to scheduler",
)
ABSENT = {
    "hold RMNewAllocations(new x) from context to rm_proxy until after the end": "did not come",
    "hold RMNewAllocations(new k) from context to rm_proxy until after step 3 waits": "",
    "hold RMNewAllocations(new k) from context to rm_proxy until after step 9": "did not happen",
    "join RMNewAllocations(new x) from context to rm_proxy": "did not come",
    "fail at ProposeAllocations(Allocate x) from scheduler to context": "did not come",
    "fail after ProposeAllocations(Allocate x) from scheduler to context": "did not come",
    "do step 4 after step 9": "did not happen",
    "do step 2 after step 4": "nothing to do it to",
    "flap node n9 after step 3": "nothing to do it to",
    "drain node n9 after step 3": "nothing to do it to",
    "open node n9 after step 3": "nothing to do it to",
    "shrink node n9 after step 3": "nothing to do it to",
    "bounce application app-9 after step 2": "nothing to do it to",
    "reload queues of rm-9 after step 2": "nothing to do it to",
    "register rm-9 again after step 2": "nothing to do it to",
    "freeze rm-9 after step 2": "nothing to do it to",
    "thaw scheduler after step 2": "nothing to do it to",
    "fire PlanningDue(step 9) to scheduler after step 2": "nothing to do it to",
    "confirm x twice": "no such release",
    "confirm x after step 4": "nothing to do it to",
    "confirm x after step 9": "did not happen",
    "propose to admit app-9 after step 2": "nothing to do it to",
}


@pytest.fixture(scope="module")
def case() -> Case:
    return parse_case(TEXT, "one.yaml")


def not_played(case: Case, entry: str) -> tuple[str, ...]:
    outcome = play(case, parse_tape(f"{case.tape().header()}; {entry}"), oracles())
    assert outcome.ok, outcome.violation
    return outcome.not_played


@pytest.mark.parametrize("entry", CAME)
def test_what_came_is_played(case: Case, entry: str) -> None:
    assert () == not_played(case, entry)


@pytest.mark.parametrize("entry", ABSENT)
def test_what_did_not_come_is_named_with_the_reason(case: Case, entry: str) -> None:
    (line,) = not_played(case, entry)
    assert line.startswith(f"{entry}: ")
    assert ABSENT[entry] in line


def test_the_commands_show_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Most of the time would go into the point of no return.
    monkeypatch.setattr(command, "Explainer", partial(Explainer, suffixes=2))
    path = tmp_path / "one.yaml"
    path.write_text(TEXT)
    tape = f"tape 2 of {path} sha256 000000000000 on proposing; flap node n9 after step 3"
    line = "flap node n9 after step 3: there was nothing to do it to"
    assert main(["lab", "replay", tape]) == 0
    assert f"      not played:\n        {line}\n" in capsys.readouterr().out
    assert main(["lab", "replay", tape, "--json"]) == 0
    assert [line] == json.loads(capsys.readouterr().out)["not_played"]
    assert main(["lab", "explain", tape]) == 0
    assert f"      not played:\n        {line}\n" in capsys.readouterr().out


def asks(*keys: str) -> Callable[[Trial], None]:
    def workload(trial: Trial) -> None:
        jobs = Jobs(trial.core)
        jobs.start()
        for key in keys:
            jobs.ask(key)

    return workload


def test_the_test_of_a_program_warns_of_it() -> None:
    header = "tape 2 of t sha256 000000000000 on proposing, without ask z"
    entry = "do step ask y after step ask a"
    with pytest.warns(NotPlayed) as caught:
        Lab("t", Wishes(tape=f"{header}; {entry}")).explore(asks("a", "b"))
    (line,) = (str(it.message) for it in caught)
    assert "without ask z: there was no such step" in line
    assert f"{entry}: the program did step ask b then" in line
    Lab("t", Wishes(tape=f"{header}; {entry}".replace("z", "b"))).explore(asks("a", "b", "y"))
