"""An explanation names the race, the moment from which all is lost, and the nearest passing run."""

from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.lab.case import Case, read_case
from yunikorn_actors.lab.explanation import (
    Explainer,
    Explanation,
    Race,
    explanation_lines,
    mermaid,
    race_of,
    save_trace,
)
from yunikorn_actors.lab.tapes.tape import Tape, parse_tape
from yunikorn_actors.trace.read import TraceReader

A, B, C = (f"M({name}) from x to box" for name in "abc")
ELSEWHERE = "M(d) from x to other"


def test_the_race_is_of_one_mailbox_and_rather_of_a_suspect() -> None:
    failing, passing = (B, ELSEWHERE, A, C), (A, ELSEWHERE, C, B)
    assert Race(mailbox="box", first=B, second=A) == race_of(failing, passing, ("", ""))
    assert Race(mailbox="box", first=B, second=C) == race_of(failing, passing, (C, ""))
    assert race_of((A, ELSEWHERE), (ELSEWHERE, A), ("", "")) is None


def test_steps_race_with_the_callback_of_the_user() -> None:
    hears = "CallUpdateNode(x) from rm_proxy to rm-1"
    failing, passing = ("step 2", hears), (hears, "step 2")
    assert race_of(failing, passing, ("", "")) is None
    expected = Race(mailbox="rm-1", first="step 2", second=hears)
    assert expected == race_of(failing, passing, ("", ""), steps=True)


@pytest.mark.usefixtures("nodes_unchecked")
def test_the_point_of_no_return_is_behind_each_prefix_that_passed(
    small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one prefix behind it one continuation passes: only the curve has looked there."""
    case = read_case(Path(small))
    explainer = Explainer(case, failing_tape(case), suffixes=5)

    def fails(_: Explainer, events: int, number: int) -> bool:
        return events >= 53 and (events, number) != (60, 0)

    monkeypatch.setattr(Explainer, "_fails", fails)
    found = explainer._no_return(70)
    assert found is not None
    assert found > 60
    points = explainer._curve(found)
    assert [it.share for it in points if it.events >= found] == [1.0] * len(
        [it for it in points if it.events >= found]
    )
    assert (60, 0.8) in [(it.events, it.share) for it in points]


def explained(small: str) -> Explanation:
    case = read_case(Path(small))
    return Explainer(case, failing_tape(case), suffixes=5).explain()


def failing_tape(case: Case) -> Tape:
    message = "ProposeAllocations(Allocate k) from scheduler to context"
    return parse_tape(
        f"{case.tape().header()}; hold {message} until after RMUpdateNode(decomission n1) from "
        "rm_proxy to context; do step 4 after RunCycle(step 3) from scheduler to scheduler"
    )


@pytest.mark.usefixtures("nodes_unchecked")
def test_a_planted_race_is_explained_drawn_and_recorded(small: str, tmp_path: Path) -> None:
    it = explained(small)
    check_words(it)
    check_drawing(it)
    check_trace(it, tmp_path)


def check_words(explained: Explanation) -> None:
    assert explained.outcome.violation is not None
    assert explained.race is not None
    assert "context" == explained.race.mailbox
    assert {"RMUpdateNode(decomission n1)", "ProposeAllocations(Allocate k)"} == {
        event.partition(" from ")[0] for event in (explained.race.first, explained.race.second)
    }
    assert explained.divergence is not None
    assert explained.divergence.here != explained.divergence.there
    shares = [point.share for point in explained.curve]
    assert shares[0] < 1, "vacuous: every order fails"
    told = "\n".join(explanation_lines(explained))
    assert "the race, at context:" in told
    assert "the point of no return: " in told


def check_drawing(explained: Explanation) -> None:
    drawn = mermaid(explained)
    assert drawn.startswith("sequenceDiagram\n    participant p0 as the program\n")
    assert "->>" in drawn
    assert 1 == drawn.count(": first of the race\n") == drawn.count(": second of the race\n")


def check_trace(explained: Explanation, tmp_path: Path) -> None:
    save_trace(explained, tmp_path / "run.trace")
    with TraceReader(tmp_path / "run.trace") as trace:
        assert explained.outcome.messages == len(list(trace))
        assert trace.footer is not None
        assert trace.footer.failure == explained.outcome.violation.text  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.usefixtures("nodes_unchecked")
def test_the_command(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = read_case(Path(small))
    files = ("--mermaid", "run.mmd", "--trace", "run.trace")
    assert 1 == main(("lab", "explain", failing_tape(case).line(), *files))
    assert "the race, at context:" in capsys.readouterr().out
    assert (tmp_path / "run.mmd").read_text().startswith("sequenceDiagram")
    assert 0 == main(("trace", "show", "run.trace"))
    assert 0 == main(("lab", "explain", case.tape().line()))
    assert "nothing is wrong" in capsys.readouterr().out
