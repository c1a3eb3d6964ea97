"""A recording in which members of hard gangs went one by one, as they did before they went whole.

What was decided is a fact, and a state made from facts is as it was. Decided anew it is another, and
a replay says where, and which version recorded it.
"""

from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.lab.mutants.mutant import Kind, Mutant
from yunikorn_actors.messages.scheduling import ProposeAllocations
from yunikorn_actors.planning.preemption import victim_units
from yunikorn_actors.planning.stages.guarantees import Guarantees
from yunikorn_actors.recording import recorder
from yunikorn_actors.state.proposals import Preempt
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay

FILE = Path(__file__).parents[1] / "scenarios/preemption/080-one-gang-goes-whole.yaml"
ONE_BY_ONE = Mutant(
    id="",
    source="the rule of former versions",
    wrong="",
    kind=Kind.GANG,
    where=victim_units.goes_as_one,
    old="        return app.spec.is_gang and app.spec.is_hard\n",
    new="        return False\n",
)


def recorded(path: Path) -> None:
    """Record it as a version that picked members; its checks would find that."""
    text = FILE.read_text("utf-8").partition("  - expect:\n      apps:\n        one:")[0]
    script = path.with_suffix(".yaml")
    script.write_text(text, "utf-8")
    main(["scenario", "run", "--topology", "proposing", "--trace", str(path), str(script)])


def test_a_recording_of_this_version_replays(tmp_path: Path) -> None:
    path = tmp_path / "new.trace"
    recorded(path)
    with TraceReader(path) as trace:
        assert replay(trace).difference is None


def test_a_recording_of_a_former_version_says_where_it_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.trace"
    with ONE_BY_ONE.applied(), monkeypatch.context() as former:
        former.setattr(recorder, "VERSION", "0.0.9")
        recorded(path)
    with TraceReader(path) as trace:
        outcome = replay(trace)
    assert outcome.difference is not None
    report = outcome.report()
    assert report.startswith("recorded by 0.0.9, replayed by ")
    assert "victims" in report


NOT_NAMED = Mutant(
    id="",
    source="the rule of former versions",
    wrong="",
    kind=Kind.GANG,
    where=Guarantees._try_gang,
    old="gang: int | None = None",
    new="gang: int | None = 0",
)


@pytest.mark.parametrize(
    "name", ["097-all-victims-of-a-gang-at-once", "hard-gang-ends-with-victims-on-the-way"]
)
def test_a_recording_whose_decisions_name_no_gang_replays(name: str, tmp_path: Path) -> None:
    """They stood each for itself then; what else was decided is compared as ever."""
    path = tmp_path / "old.trace"
    script = FILE.with_name(f"{name}.yaml")
    with NOT_NAMED.applied():
        main(["scenario", "run", "--topology", "proposing", "--trace", str(path), str(script)])
    with TraceReader(path) as trace:
        proposals = [
            it
            for delivery in trace
            if isinstance(delivery.message, ProposeAllocations)
            for it in delivery.message.proposals
            if isinstance(it, Preempt)
        ]
    assert proposals
    assert not any(it.gang for it in proposals)
    with TraceReader(path) as trace:
        assert replay(trace).difference is None
