"""Messages that were handled together: how a trace has them, shows them and repeats them."""

import io
from pathlib import Path
from typing import Any

import pytest
from recordings import (
    INSTANCE,
    Tape,
    ask,
    handled_together,
    node,
    records,
    register,
    release,
    rewrite,
    submit,
)

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.drivers.simulator.choosers import Fifo, chooser_of
from yunikorn_actors.drivers.simulator.simulator import Simulator
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.machines.topology import TOPOLOGIES, Topology, TopologyName
from yunikorn_actors.messages.base import CONTEXT, Cause
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.origins.message_parts import texts_in
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import ReplayOutcome, replay
from yunikorn_actors.trace.story import story
from yunikorn_actors.trace.text.draw import draw
from yunikorn_actors.trace.text.show import Look, show

Record = dict[str, Any]


class Together(Fifo):
    """As many as there are."""

    def joins(self) -> bool:
        return True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def replayed(path: Path) -> ReplayOutcome:
    with TraceReader(path) as trace:
        return replay(trace)


def burst(core: Simulator | SchedulerCore, first: int = 0) -> None:
    for number in range(first, first + 6):
        ask(core, "app-1", f"k{number}")
        release(core, "app-1", f"k{number - 4}")


def simulated(
    path: Path, topology: TopologyName = "proposing", chooser: Fifo | None = None
) -> Path:
    tape = Tape(path, topology, 0)
    core = Simulator(
        Topology(topology, settings=Settings(), instance=INSTANCE),
        chooser=chooser or Together(),
        checkers=(tape,),
    )
    register(core)
    node(core, "n1", si.ActionFromRM.CREATE, 8)
    submit(core, "app-1")
    core.settle()
    for first in (0, 10):
        burst(core, first)
        core.settle()
    tape.end(core)
    return path


def joined(recorded: list[Record]) -> list[int]:
    return [place for place, record in enumerate(recorded) if record.get("joined")]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_simulated_run_is_repeated(path: Path, topology: TopologyName) -> None:
    recorded = records(simulated(path, topology))
    assert 22 == len(joined(recorded))
    outcome = replayed(path)
    assert outcome.report().endswith("mailboxes: identical")
    assert outcome.states > 0


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_line_of_a_life_names_the_message_that_was_about_it(
    path: Path, topology: TopologyName
) -> None:
    """And not the last of those that were handled together with it."""
    simulated(path, topology)
    with TraceReader(path) as trace:
        messages = {Cause(it.mailbox, it.step): it for it in trace}
    others = 0
    for number in (*range(6), *range(10, 16)):
        for line in story(path, f"app-1/k{number}")[1]:
            named = messages[line.step]
            if line.what in {"AskAdded", "AllocationReleased"}:
                assert f"k{number}" in texts_in(named.message)
                after = messages.get(Cause(line.step.mailbox, line.step.step + 1))
                others += after is not None and after.joined
    assert others > 10, "vacuous: each was the last that was handled"


@pytest.mark.parametrize("seed", range(1, 6))
def test_whatever_the_chooser_says_is_repeated(path: Path, seed: int) -> None:
    recorded = records(simulated(path, chooser=chooser_of(seed)))
    assert 0 < len(joined(recorded)) < 22
    assert replayed(path).difference is None


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_a_run_on_threads_is_repeated(path: Path, topology: TopologyName) -> None:
    with SchedulerCore(topology=topology, trace=path) as core:
        register(core)
        node(core, "n1", si.ActionFromRM.CREATE, 8)
        submit(core, "app-1")
        handled_together(core, lambda: burst(core))
    assert joined(records(path)), "vacuous: nothing was handled together"
    outcome = replayed(path)
    assert outcome.report().endswith("mailboxes: identical")


def test_another_mailbox_may_be_at_work_meanwhile(path: Path) -> None:
    """What it handles stands between those that were handled together."""
    recorded = records(simulated(path))
    moved = 0
    for place in joined(recorded):
        before = place - 1
        while recorded[before]["mailbox"] == CONTEXT:
            before -= 1
        other = recorded[before]
        follows = [it["cause"] for it in recorded[before + 1 : place + 1]]
        if [other["mailbox"], other["step"]] in follows:
            continue
        recorded.insert(place - 1, recorded.pop(before))
        moved += 1
    assert moved > 0, "vacuous: nothing stands between them"
    rewrite(path, recorded)
    outcome = replayed(path)
    assert outcome.difference is None
    assert outcome.states > 0


def test_a_recording_that_ends_among_them_is_repeated(path: Path) -> None:
    recorded = records(simulated(path))
    rewrite(path, recorded[: joined(recorded)[2]])
    outcome = replayed(path)
    assert (outcome.complete, outcome.difference) == (False, None)


# -- what was changed is found


def found(path: Path, recorded: list[Record]) -> str:
    rewrite(path, recorded)
    difference = replayed(path).difference
    assert difference is not None
    return difference.what


def test_one_that_was_handled_alone(path: Path) -> None:
    recorded = records(simulated(path))
    del recorded[joined(recorded)[3]]["joined"]
    assert found(path, recorded) == "is not the same"


def test_one_that_is_joined_to_nothing(path: Path) -> None:
    recorded = records(simulated(path))
    place = next(n for n, it in enumerate(recorded) if it.get("type") == "RMUpdateAllocation")
    recorded[place]["joined"] = True
    assert found(path, recorded) == "is joined to nothing"


@pytest.mark.parametrize("change", [{"at_ns": 1}, {"type": "RMUpdateNode"}], ids=str)
def test_one_that_cannot_be_handled_with_the_others(path: Path, change: Record) -> None:
    recorded = records(simulated(path))
    place = joined(recorded)[0]
    if "type" in change:
        nodes = next(it for it in recorded if it.get("type") == "RMUpdateNode")
        change = change | {"payload": nodes["payload"]}
    assert "joined to what" in found_at(path, recorded, place, change)


def found_at(path: Path, recorded: list[Record], place: int, change: Record) -> str:
    """Change a record, and its sending with it: what was sent is compared first."""
    recorded[place] |= change
    if "type" not in change:
        return found(path, recorded)
    recorded[place] |= {"sender": "gateway", "cause": ["gateway", 0]}
    return found(path, recorded)


# -- how it looks


def test_it_is_marked_where_it_is_shown_and_drawn(path: Path) -> None:
    recorded = records(simulated(path))
    out = io.StringIO()
    with TraceReader(path) as trace:
        show(trace, out, FilterOptions(type=("RMUpdateAllocation",)), Look())
    assert 22 == sum(" + " in line for line in out.getvalue().splitlines())
    lines = list(draw(path, FilterOptions(mailbox=(CONTEXT,))))
    arrows = [line for line in lines if "RMUpdateAllocation" in line]
    assert 24 == len(arrows)
    assert 22 == sum("-+" in line for line in arrows)
    assert 24 == sum(it.get("type") == "RMUpdateAllocation" for it in recorded)


def test_nothing_is_added_to_a_record_that_is_not_joined(path: Path) -> None:
    """So digests of runs in which nothing is handled together stay what they were."""
    recorded = records(simulated(path, chooser=Fifo()))
    assert not any("joined" in record for record in recorded)
