"""An answer that begins at a checkpoint is the one that begins at the beginning."""

from pathlib import Path

import msgspec
import pytest
import ranges
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from moves import Move, scripts
from playing import Player, settings_of
from recordings import Tape, in_service, records, rewrite, simulate

import yunikorn_actors.trace.recording
from yunikorn_actors.config.model import NodeSortConfig
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.messages.base import CONTEXT, Cause
from yunikorn_actors.recording import packed
from yunikorn_actors.trace import checkpointed_replay as module
from yunikorn_actors.trace.causes import Answer, why, why_of
from yunikorn_actors.trace.checkpointed_replay import Checkpoint, CheckpointedReplay, Checkpoints
from yunikorn_actors.trace.filters import Moment
from yunikorn_actors.trace.origins.stimuli import Stimuli
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import DifferentError
from yunikorn_actors.trace.state_at import states_at

EVERY = 10


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.trace"


def run_once(path: Path) -> Checkpoints:
    """Run all of it once."""
    checkpoints = Checkpoints(EVERY)
    with TraceReader(path) as trace:
        for _ in CheckpointedReplay(trace, checkpoints).run():
            pass
        assert len(checkpoints.of(trace.files)) == trace.messages // EVERY > 1, (
            "vacuous: no checkpoints"
        )
    return checkpoints


def whole(path: Path) -> Answer:
    with TraceReader(path) as trace:
        return why(trace, lambda *_: True)


def kept(path: Path, checkpoints: Checkpoints) -> dict[int, Checkpoint]:
    with TraceReader(path) as trace:
        return checkpoints.of(trace.files)


def agrees_everywhere(path: Path) -> int:
    """Ask for some asks, and for states all along; return how many asks there are."""
    checkpoints, answer = run_once(path), whole(path)
    for it in answer.waits[:: 1 + len(answer.waits) // 8]:
        (found,) = [
            waits
            for waits in why_of(path, {f"{it.application_id}/{it.key}"}, checkpoints).waits
            if waits.partition == it.partition
        ]
        assert found == it
    with TraceReader(path) as trace:
        messages = sum(1 for _ in trace)
    moments = [Moment(record=number) for number in range(2, messages + 2, 1 + messages // 12)]
    with TraceReader(path) as trace:
        states = states_at(trace, moments)
    for moment, state in zip(moments, states, strict=True):
        with TraceReader(path) as trace:
            assert states_at(trace, [moment], checkpoints) == [state]
    return len(answer.waits)


@pytest.mark.parametrize("topology", ranges.first(TOPOLOGIES, 1))
def test_of_a_run_on_threads(path: Path, topology: TopologyName) -> None:
    in_service(path, topology)
    assert agrees_everywhere(path) > 5


def test_requests_that_were_handled_before_a_checkpoint_are_known_behind_it(
    tmp_path: Path,
) -> None:
    """Behind messages that were handled together a stimulus alone names a stranger.

    Drawn runs, not threads: how often threads leave messages to be handled together depends on the
    computer, and on a fast one it may be never.
    """
    without = sum(
        _wrong_without_what_was_before(simulate(tmp_path / f"{number}.trace", seed=number))
        for number in range(3)
    )
    assert without, "vacuous: nothing before a checkpoint mattered"


def _wrong_without_what_was_before(path: Path) -> int:
    """Look on from each checkpoint; return from how many it is wrong without what was before."""
    checkpoints = run_once(path)

    def stimuli_behind(record: int, keeps: bool) -> list[set[str]]:
        found = []
        with TraceReader(path) as trace:
            again = CheckpointedReplay(trace, checkpoints, lambda it: it.record <= record)
            stimuli = again.course.stimuli if keeps else Stimuli()
            for step in again.run():
                for it in step.deliveries if not keeps else ():
                    stimuli.note(it)
                found.append(stimuli.of_all(step.deliveries[-1]))
        return found

    whole_run = stimuli_behind(0, True)
    without = 0
    for record in kept(path, checkpoints):
        behind = stimuli_behind(record, True)
        assert behind == whole_run[len(whole_run) - len(behind) :]
        without += stimuli_behind(record, False) != behind
    return without


def test_of_random_runs(path: Path) -> None:
    @settings(
        max_examples=4,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @seed(5)
    @given(scripts(15), st.sampled_from(TOPOLOGIES), st.integers(0, 2**32 - 1))
    def play(script: list[Move], topology: TopologyName, number: int) -> None:
        tape = Tape(path, topology, number, settings=msgspec.to_builtins(settings_of(number)))
        player = Player(topology, number, settles=True, checkers=(tape,))
        for move in script:
            player.play(move)
        tape.end(player.simulator)
        if tape.messages > 2 * EVERY:
            agrees_everywhere(path)

    play()


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_end_is_the_recorded_one(path: Path, topology: TopologyName) -> None:
    """The digests of all states are compared there, defaults left out or not."""
    simulate(path, topology)
    checkpoints = run_once(path)
    with TraceReader(path) as trace:
        again = CheckpointedReplay(trace, checkpoints, lambda checkpoint: checkpoint.record < 30)
        assert 0 < again.rerun.messages < 30
        assert list(again.run())
        assert trace.footer is not None
        assert trace.footer.states


@pytest.mark.parametrize(
    "of", [lambda n: Moment(record=n), lambda n: Moment(step=Cause(CONTEXT, n // 5))]
)
def test_a_state_is_looked_for_behind_the_checkpoints_before_it(path: Path, of: object) -> None:
    simulate(path)
    checkpoints = run_once(path)
    moments = [of(number) for number in range(10, 60, 3)]  # type: ignore[operator]
    with TraceReader(path) as trace:
        states = states_at(trace, moments)
    for moment, state in zip(moments, states, strict=True):
        with TraceReader(path) as trace:
            assert states_at(trace, [moment], checkpoints) == [state]


def test_a_time_that_has_passed_is_before_a_checkpoint(path: Path) -> None:
    in_service(path)
    checkpoints = run_once(path)
    with TraceReader(path) as trace:
        begin = trace.header.start_ns
        times = [it.at_ns - begin for it in trace]
    times = times[:: 1 + len(times) // 12]
    for after_ns in times:
        states = []
        for given_ones in (None, checkpoints):
            with TraceReader(path) as trace:
                states += states_at(trace, [Moment(after_ns=after_ns)], given_ones)
        assert states[0] == states[1] is not None


def test_a_second_question_begins_behind_the_first(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_service(path)
    monkeypatch.setattr(yunikorn_actors.trace.recording, "Checkpoints", lambda: Checkpoints(EVERY))
    recording = yunikorn_actors.trace.open(path)
    keys = list(dict.fromkeys(it.key for it in whole(path).waits))
    first, again = recording.why(keys[-1]), recording.why(keys[-1])
    assert first == again != ()
    read: list[int] = []
    reader = TraceReader.go_behind
    monkeypatch.setattr(TraceReader, "go_behind", lambda *it: (read.append(it[1]), reader(*it))[0])
    recording.why(keys[-1])
    recording.at("context/30")
    assert recording.why("nobody") == ()
    assert len(read) == 3
    assert min(read) >= EVERY


def test_another_file_has_no_checkpoints(path: Path) -> None:
    in_service(path)
    checkpoints = run_once(path)
    assert kept(path, checkpoints)
    simulate(path)
    assert not kept(path, checkpoints)
    assert run_once(path)


def test_a_difference_is_met_again(path: Path) -> None:
    recorded = records(simulate(path))
    place = next(n for n, it in enumerate(recorded) if it.get("type") == "ProposeAllocations")
    recorded[place]["payload"]["proposals"][0]["node_id"] = "n9"
    rewrite(path, recorded)
    checkpoints = Checkpoints(EVERY)
    found = []
    for _ in range(2):
        with TraceReader(path) as trace, pytest.raises(DifferentError) as told:
            list(CheckpointedReplay(trace, checkpoints, lambda _: True).run())
        found.append((told.value.cause, told.value.what, told.value.record))
    assert found[0] == found[1]
    assert kept(path, checkpoints)


def test_fields_of_any_type_may_be_around(path: Path) -> None:
    """The annotation of one may be no expression: it is not evaluated."""

    class Other(msgspec.Struct):
        it: "nothing[int]"  # type: ignore[name-defined]  # noqa: F821

    packed._dispatch_table.cache_clear()
    simulate(path)
    assert run_once(path)
    del Other


def test_a_default_is_the_same_text_in_a_copy() -> None:
    """An encoder omits a default, and writes what only reads like one."""
    default = NodeSortConfig()
    alike = NodeSortConfig(policy=str(b"fair", "ascii"))
    written = [msgspec.json.encode(it) for it in (default, alike)]
    assert written[0] != written[1]
    copies = packed.unpacked(packed.packed([default, alike]))
    assert written == [msgspec.json.encode(it) for it in copies]


def test_there_is_an_end_to_what_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_service(path)
    monkeypatch.setattr(module, "BYTES_MAX", 1)
    checkpoints = Checkpoints(EVERY)
    with TraceReader(path) as trace:
        for _ in CheckpointedReplay(trace, checkpoints).run():
            pass
        assert len(checkpoints.of(trace.files)) == 1
    for it in whole(path).waits[::20]:
        assert it in why_of(path, {f"{it.application_id}/{it.key}"}, checkpoints).waits
