"""An ask is followed to its placeholder and back: asked back, given back, parked, swapped."""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from ganging import PREEMPTED, REPLACED, STOPPED, ask_members, confirm, gang_lab, preempt_for_daemon
from recordings import Tape

from yunikorn_actors.cli import main
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.codec import MESSAGE_TYPES, PARTS, decoded
from yunikorn_actors.messages.rm_events import (
    AnnouncedRelease,
    AskedBack,
    ReleaseItem,
    RMReleaseAllocation,
    RMUpdateAllocation,
)
from yunikorn_actors.state.facts import AllocationReleased
from yunikorn_actors.trace.filters import FilterOptions
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.story import story
from yunikorn_actors.trace.text.draw import draw

BEFORE = Path(__file__).parent / "recorded" / "before-confirmations.msgpack"


@pytest.fixture(params=TOPOLOGIES)
def swap(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """One placeholder is swapped; then a daemon preempts the member and the other placeholder."""
    topology: TopologyName = request.param
    path = tmp_path / "swap.trace"
    tape = Tape(path, topology, 0)
    lab = gang_lab(2, topology=topology, checkers=(tape,))
    ask_members(lab, "real")
    lab.settle()
    confirm(lab, "ph-1", type_=REPLACED)
    lab.settle()
    preempt_for_daemon(lab, 10)
    lab.advance(5)
    confirm(lab, "ph-2", type_=PREEMPTED)
    lab.settle()
    lab.release("real", termination_type=STOPPED)
    lab.settle()
    assert lab.running() == ["d"], "vacuous: nobody was preempted"
    tape.end(lab.simulator)
    return path


END = (
    "AllocationReleased gives back app-1 real from n1 core-3 PREEMPTED_BY_SCHEDULER, "
    "confirmed as STOPPED_BY_RM"
)
STEPS = (
    "AllocationsRequested asks real",
    "RMReleaseAllocation asks back ph-1 PLACEHOLDER_REPLACED",
    "ReleaseRequested asks back app-1 ph-1 PLACEHOLDER_REPLACED",
    "AskParked app-1 real parked for core-1 on n1",
    "CallUpdateAllocation asks back ph-1",
    "AllocationsRequested gives back ph-1",
    "RMUpdateAllocation gives back ph-1",
    "RMNewAllocations new real -> n1",
    "SwapCompleted app-1 real swapped for ph-1 on n1",
    "CallUpdateAllocation new real -> n1",
)


@pytest.mark.parametrize("name", ["real", "ph-1", "core-1", "core-3"])
def test_a_drawing_about_either_side_has_every_step_of_the_swap(swap: Path, name: str) -> None:
    lines = list(draw(swap, FilterOptions(about=(name,))))
    text = "\n".join(lines)
    assert [] == [step for step in STEPS if step not in text]
    assert "AskAdded app-1 ph-2" not in text
    assert "gives back ph-2" not in text


@pytest.mark.parametrize("name", ["real", "ph-1", "core-1", "core-3"])
def test_a_story_of_either_side_has_every_step_that_is_told(swap: Path, name: str) -> None:
    _, told = story(swap, name)
    lines = [f"{it.what} {it.text}" for it in told]
    steps = [
        "ReleaseRequested asks back app-1 ph-1 PLACEHOLDER_REPLACED",
        "AskParked app-1 real parked for core-1 on n1",
        "CallUpdateAllocation asks back ph-1",
        "AllocationsRequested gives back ph-1",
        "SwapCompleted app-1 real swapped for ph-1 on n1, core-3 for core-1",
        "CallUpdateAllocation new real -> n1",
        END,
    ]
    places = [lines.index(step) for step in steps]
    assert all(one < other for one, other in pairwise(places))
    assert len(lines) == len(set(lines))


def test_what_is_preempted_is_asked_back_and_given_back(swap: Path) -> None:
    _, told = story(swap, "ph-2")
    text = "\n".join(f"{it.what} {it.text}" for it in told)
    assert "ReleaseRequested asks back app-1 ph-2 PREEMPTED_BY_SCHEDULER" in text
    assert "AllocationReleased gives back app-1 ph-2 from n1 core-2 PREEMPTED_BY_SCHEDULER" in text


# -- a recording from before


def test_a_recording_that_does_not_tell_confirmations_apart_is_read() -> None:
    with TraceReader(BEFORE) as trace:
        messages = [it.message for it in trace]
    releases = [
        item for it in messages if isinstance(it, RMUpdateAllocation) for item in it.releases
    ]
    released = [
        (type(item), item.type.name)
        for it in messages
        if isinstance(it, RMReleaseAllocation)
        for item in it.released
    ]
    assert {ReleaseItem} == {type(item) for item in releases}
    assert {
        (AskedBack, "PLACEHOLDER_REPLACED"),
        (AskedBack, "PREEMPTED_BY_SCHEDULER"),
        (AskedBack, "TIMEOUT"),
        (AnnouncedRelease, "STOPPED_BY_RM"),
    } == set(released)
    ends = [
        fact
        for it in messages
        for fact in getattr(it, "facts", ())
        if isinstance(fact, AllocationReleased)
    ]
    assert {None} == {fact.given_back for fact in ends}
    assert PARTS <= MESSAGE_TYPES.keys()


def test_it_replays(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "replay", str(BEFORE)]) == 0
    assert "identical" in capsys.readouterr().out


def test_a_recording_of_now_does_not_replay_where_a_confirmation_is_taken_for_a_wish(
    swap: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What old recordings lack is forgiven them alone."""
    assert main(["trace", "replay", str(swap)]) == 0
    monkeypatch.setattr(
        "yunikorn_actors.machines.rm_proxy.asked_back.RequestedBack.announce", lambda *_: None
    )
    assert main(["trace", "replay", str(swap)]) == 1
    assert "asked: recorded 4, replayed nothing" in capsys.readouterr().out


@pytest.mark.parametrize("releases", [7, [7], {"a": 1}, [{"uuid": 1}]])
def test_releases_that_are_none_are_refused_as_damaged(releases: object) -> None:
    payload = msgspec.Raw(msgspec.msgpack.encode({"rm_id": "rm-1", "releases": releases}))
    with pytest.raises(msgspec.ValidationError):
        decoded("RMUpdateAllocation", payload)
