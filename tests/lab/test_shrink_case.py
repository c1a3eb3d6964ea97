"""A failing case gets small together with its tape, and fails in the same way still."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.lab.case import parse_case
from yunikorn_actors.lab.explore import Budget, Options, Search
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import play
from yunikorn_actors.lab.scenario_documents import Document, document_of, written
from yunikorn_actors.lab.shrinking.shrink import Effort
from yunikorn_actors.lab.shrinking.shrink_case import CaseShrinker, Failing, with_document
from yunikorn_actors.lab.shrinking.shrink_document import DocumentShrinker
from yunikorn_actors.lab.tapes.tape import parse_tape

LARGE = """\
name: a node leaves while much work comes
about: more than it takes
settings: {placeholder_timeout: 40s}
queues:
  partitions:
  - name: default
    queues:
    - name: root
      submitacl: "*"
      queues:
      - name: a
        queues:
        - {name: x, maxapplications: 7, resources: {max: {vcore: 90}}}
        - {name: y}
rm: {confirm: manual}
steps:
  - add_app: {id: other, queue: root.a.y, user: ann}
  - create_node: {ids: [n1, n2, n3], capacity: {vcore: 4000}}
  - together:
    - add_app: {id: app-1, queue: root.a.x}
    - ask: {app: other, key: o, count: 3, resource: {vcore: 500}}
  - expect: {}
  - ask: {app: app-1, key: k, count: 6, resource: {vcore: 1500}, priority: 3}
  - advance: 1s
  - remove_node: n1
  - confirm: all
"""


@pytest.fixture
def found(nodes_unchecked: None) -> Failing:  # noqa: ARG001 - the defect that is found
    return _race()


@cache
def _race() -> Failing:
    """Find a race that takes a deviation, in a large case."""
    case = parse_case(LARGE.replace("  - expect: {}\n", ""), "large.yaml")
    options = Options(budget=Budget(runs=500), shrinks=False, faults=("fire", "confirm"))
    finding = Search(case, options).run().finding
    assert finding is not None
    assert finding.found.entries, "vacuous: it fails in any order"
    return Failing(case, finding.found)


def test_both_get_small(found: Failing) -> None:
    before = play(found.case, found.tape, oracles()).violation
    assert before is not None
    shrinker = CaseShrinker(found, before.kind, oracles)
    small = shrinker.shrink()
    outcome = shrinker.play(small)
    assert outcome.violation is not None
    assert before.kind == outcome.violation.kind
    document = document_of(small.case.text)
    assert {"name", "steps"} == document.keys()
    assert ["create_node", "add_app", "ask", "remove_node"] == [
        word for step in document["steps"] for word in step
    ]
    assert 1 == len(small.tape.entries)
    assert small.tape.steps is None
    # What is written is what was played.
    again = parse_case(written(document), "small.yaml")
    assert outcome.violation == play(again, parse_tape(small.tape.line()), oracles()).violation


def test_what_is_not_there_falls_away(small: str) -> None:
    """The tape names steps; without them it is a tape still, of what is left."""
    text = Path(small).read_text()
    case = parse_case(text, small)
    held = "hold AllocationsRequested(ask k) from gateway to rm_proxy until after"
    lines = (
        case.tape().header(),
        "do step 4 after step 2",
        "repeat step 3 after step 4",
        "repeat step 3 after step 2",
        f"{held} step 4",
        f"{held} step 2",
        "fire PlanningDue(step 4) to scheduler after step 2",
    )
    tape = parse_tape("\n".join(lines))
    document = document_of(text)
    document["steps"] = document["steps"][1:3]
    left = with_document(Failing(case, tape), document, (1, 2))
    assert [
        "repeat step 2 after step 1", f"{held} the end", f"{held} step 1",
    ] == list(map(str, left.tape.entries))  # fmt: skip
    assert play(left.case, left.tape).messages > 0, "it can be played"


@pytest.mark.parametrize("plays", [1, 5, 20])
def test_there_is_an_end_to_it(found: Failing, plays: int) -> None:
    effort = Effort(plays)
    shrinker = CaseShrinker(found, None, oracles, effort)
    small = shrinker.shrink()
    assert plays == effort.plays
    assert shrinker.play(small).violation is not None


def test_no_time_leaves_it_as_it_is(found: Failing) -> None:
    assert found == CaseShrinker(found, None, oracles, Effort(seconds=0)).shrink()


@pytest.mark.parametrize("plays", [1, 10, 60])
def test_who_interrupts_it_has_the_best_so_far(
    found: Failing, plays: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    effort = Effort(plays)

    def interrupted(_: Effort) -> bool:
        effort.plays += 1
        if effort.plays > plays:
            raise KeyboardInterrupt
        return True

    monkeypatch.setattr(Effort, "spend", interrupted)
    shrinker = CaseShrinker(found, None, oracles, effort)
    with pytest.raises(KeyboardInterrupt):
        shrinker.shrink()
    assert shrinker.play(shrinker.best).violation is not None
    assert plays < 60 or len(shrinker.best.case.text) < len(LARGE) // 2


def shrunk(document: Document, *needed: str) -> Document:
    """Leave out all that the written document does not need to hold these words."""
    shrinker = DocumentShrinker(document, lambda it, _: all(word in written(it) for word in needed))
    shrinker.shrink()
    return shrinker.document


def test_a_document_keeps_what_it_needs() -> None:
    steps = [
        {"ask": {"key": f"k{number}", "count": 900, "tags": ["a", "b"]}} for number in range(9)
    ]
    document = {"name": "x", "rm": {"confirm": "manual"}, "steps": steps}
    assert {"name": "x", "steps": [{"ask": {"key": "k7"}}]} == shrunk(document, "k7")
    assert {"name": "x", "steps": [{"ask": {"tags": ["b"]}}]} == shrunk(document, "tags", "b]")
    assert {"name": "x", "steps": [{"ask": {"count": 1}}]} == shrunk(document, "count:")


@pytest.mark.parametrize(("least", "plain"), [(1, 1), (7, 8), (333, 500), (900, 900)])
def test_numbers_get_plain(least: int, plain: int) -> None:
    document = {"name": "x", "steps": [{"a": 900}, {"b": "900s"}]}
    shrinker = DocumentShrinker(
        document,
        lambda it, _: (
            len(it["steps"]) == 2
            and it["steps"][0].get("a", 0) >= least
            and int(it["steps"][1].get("b", "0s")[:-1]) >= least
        ),
    )
    shrinker.shrink()
    assert [{"a": plain}, {"b": f"{plain}s"}] == shrinker.document["steps"]


def leaves(document: Document) -> Iterator[str]:
    """Yield what is configured as a leaf, with its path."""
    for partition in document.get("queues", {}).get("partitions", ()):
        open_ = [("root", queue) for queue in partition.get("queues", ())]
        while open_:
            path, queue = open_.pop()
            below = [it for it in queue.get("queues", ()) if "name" in it]
            open_ += [(f"{path}.{it['name']}", it) for it in below]
            if not below:
                yield path


def test_queues_get_plain() -> None:
    document = document_of(LARGE)

    def holds(smaller: Document, _: object) -> bool:
        """Whether all applications are in leaves below root that are configured."""
        wanted = {step.get("add_app", {}).get("queue") for step in smaller["steps"]}
        return wanted - {None} != set() and wanted - {None} <= set(leaves(smaller))

    shrinker = DocumentShrinker(document, holds)
    shrinker.shrink()
    assert {"partitions": [{"queues": [{"queues": [{"name": "a"}]}]}]} == shrinker.document[
        "queues"
    ]
    assert [{"add_app": {"queue": "root.a"}}] == shrinker.document["steps"]
    assert "queues" not in shrunk(document, "queue:")


@pytest.mark.usefixtures("nodes_unchecked")
@pytest.mark.slow
def test_the_command(
    found: Failing,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("large.yaml").write_text(found.case.text)
    Path("large.tape").write_text(str(found.tape))
    assert 1 == main(("lab", "shrink", "large.tape", "--save", "kept", "--json"))
    told = json.loads(capsys.readouterr().out)
    assert (5, 1) == (told["steps"], told["deviations"])  # with the registration
    assert told["steps_before"] > 8
    scenario, tape = map(Path, told["saved"])
    assert told["scenario"] == scenario.read_text()
    assert 1 == main(("lab", "replay", str(tape)))
    assert told["violation"] in capsys.readouterr().out
    assert 1 == main(("lab", "shrink", str(tape)))
    assert "of 5 steps and 1 deviations 5 and 1 are left" in capsys.readouterr().out


def test_what_does_not_fail_is_left_alone(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    tape = parse_case(Path(small).read_text(), small).tape()
    assert 0 == main(("lab", "shrink", tape.line()))
    assert "nothing is wrong" in capsys.readouterr().out
